"""The ledger: the only place with SQL or a database driver."""
