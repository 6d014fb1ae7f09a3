"""Passwords of DataSets: how they are stored, and where the passphrase comes from."""
