"""The warehouse: the only place with Spark or file system calls."""
