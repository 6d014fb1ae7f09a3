"""Encryption of a stored secret. The passphrase is never stored.

    odf1.MEMORY.PASSES.LANES.SALT.DATA   this system: Argon2id, AES-256-GCM; the header and the DataSet's name are
                                         authenticated, so a ciphertext copied to another row is refused
    DATA                                 upstream OpenDataFlow: the first 32 bytes of SHA-512, AES-256-GCM

DATA is base64 of a 12-byte nonce, the ciphertext and a 16-byte tag; SALT is base64url.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from functools import cache
from typing import Final

from ..model.errors import InvalidInput, SecretUnreadable

VERSION: Final = "odf1"

# What OWASP recommends for Argon2id: 19 MiB, two passes. Each guess costs an attacker about 50 ms.
_COST: Final = (19_456, 2, 1)
# The limits for a stored header: it is data, and must not make decryption take arbitrarily long.
_MOST: Final = (1_048_576, 16, 16)
_SALT_BYTES: Final = 16
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16


def encrypt(passphrase: str, secret: str, datasetid: str) -> str:
    # One salt for each process, so that its secrets share the slow key derivation.
    header = ".".join([VERSION, *map(str, _COST), _salt_of_this_process()])
    return f"{header}.{_seal(_slow_key(passphrase, header), secret, _bound_to(header, datasetid))}"


def encrypt_as_upstream(passphrase: str, secret: str) -> str:
    """For upstream's clients. Weaker: a fast key derivation, and not bound to the DataSet."""
    return _seal(_upstream_key(passphrase), secret, None)


def decrypt(passphrase: str, stored: str, datasetid: str | None) -> str:
    """Reads both formats. Only upstream's needs no DataSet."""
    if is_upstream(stored):
        return _open(_upstream_key(passphrase), stored, None, datasetid)
    if datasetid is None:
        raise InvalidInput("this secret is bound to a DataSet; name the DataSet, too")
    header, _, data = stored.rpartition(".")
    return _open(_slow_key(passphrase, header), data, _bound_to(header, datasetid), datasetid)


def is_upstream(stored: str) -> bool:
    return not stored.startswith(f"{VERSION}.")


@cache
def _salt_of_this_process() -> str:
    return base64.urlsafe_b64encode(os.urandom(_SALT_BYTES)).decode()


@cache
def _slow_key(passphrase: str, header: str) -> bytes:
    """Cached, so that `odf run --all` derives it once and not for each chunk."""
    from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

    try:
        version, *numbers, salt = header.split(".")
        memory, passes, lanes = (int(number) for number in numbers)
        if version != VERSION or any(cost > most for cost, most in zip((memory, passes, lanes), _MOST, strict=True)):
            raise ValueError
        derivation = Argon2id(
            salt=base64.urlsafe_b64decode(salt), length=32, iterations=passes, lanes=lanes, memory_cost=memory
        )
    except (ValueError, binascii.Error):
        raise SecretUnreadable(
            "a stored secret has a header that this version cannot read; install the version that wrote it, "
            "or set the secret again (odf secret set)"
        ) from None
    return derivation.derive(passphrase.encode())


def _upstream_key(passphrase: str) -> bytes:
    return hashlib.sha512(passphrase.encode()).digest()[:32]


def _bound_to(header: str, datasetid: str) -> bytes:
    # Names contain no NUL, so this is unambiguous.
    return f"{header}\0{datasetid}".encode()


def _seal(key: bytes, secret: str, bound_to: bytes | None) -> str:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = os.urandom(_NONCE_BYTES)
    return base64.b64encode(nonce + AESGCM(key).encrypt(nonce, secret.encode(), bound_to)).decode()


def _open(key: bytes, data: str, bound_to: bytes | None, datasetid: str | None) -> str:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    whose = f"of DataSet {datasetid} " if datasetid else ""
    try:
        raw = base64.b64decode("".join(data.split()), validate=True)
        if len(raw) < _NONCE_BYTES + _TAG_BYTES:
            raise binascii.Error
    except (binascii.Error, ValueError):
        raise SecretUnreadable(
            f"the stored password {whose}is not a ciphertext; set it again (odf secret set)"
        ) from None
    try:
        return AESGCM(key).decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], bound_to).decode()
    except (InvalidTag, UnicodeDecodeError):
        raise SecretUnreadable(
            f"the stored password {whose}cannot be decrypted: the passphrase is wrong, or the password was copied from "
            f"another DataSet; correct the passphrase, or set the password again (odf secret set)"
        ) from None
