"""Spark and files: the only package that calls either."""
