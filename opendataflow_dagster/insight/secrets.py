"""secrets: which passwords are stored, in which format, and whether a passphrase decrypts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..ledger import passwords
from ..ledger.database import Ledger
from ..ledger.retry import gives_way
from ..model.errors import SecretUnreadable, UnknownName
from ..model.ids import DatasetId, dataset_id
from ..model.text import did_you_mean
from ..secrets import cipher


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifiedSecret:
    """A stored password, without the password."""

    datasetid: DatasetId
    format: Literal["odf1", "upstream"]
    readable: bool


@gives_way
def stored_ciphertext(ledger: Ledger, datasetid: str) -> str:
    name = dataset_id(datasetid)
    with ledger.statement() as statement:
        ciphertext = passwords.ciphertext(statement, name)
        if ciphertext is None:
            advice = did_you_mean(name, passwords.ciphertexts(statement), f"set one with: odf secret set {name}")
            raise UnknownName(f"DataSet {name} has no stored password; {advice}")
    return ciphertext


@gives_way
def count_secrets(ledger: Ledger) -> int:
    with ledger.statement() as statement:
        return len(passwords.ciphertexts(statement))


@gives_way
def verify_secrets(ledger: Ledger, passphrase: str) -> list[VerifiedSecret]:
    """Try the passphrase on every stored password."""
    with ledger.statement() as statement:
        ciphertexts = passwords.ciphertexts(statement)
    return [
        VerifiedSecret(
            datasetid=name,
            format="upstream" if cipher.is_upstream(ciphertext) else "odf1",
            readable=_decrypts(passphrase, ciphertext, name),
        )
        for name, ciphertext in ciphertexts.items()
    ]


def _decrypts(passphrase: str, ciphertext: str, name: DatasetId) -> bool:
    try:
        cipher.decrypt(passphrase, ciphertext, name)
    except SecretUnreadable:
        return False
    return True
