"""Encryption of stored passwords, and the sources of the passphrase."""
