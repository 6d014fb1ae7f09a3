"""set, verify and rotate the passwords of DataSets. What goes into the ledger is encrypted; clear text stays here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..ledger.database import Ledger, Transaction
from ..model.errors import SecretUnreadable, UnknownName
from ..model.ids import DatasetId, dataset_id
from ..secrets import cipher


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """A stored password, without the password."""

    datasetid: DatasetId
    format: Literal["odf1", "upstream"]
    readable: bool


def set_secret(
    ledger: Ledger,
    datasetid: str,
    secret: str,
    passphrase: str,
    *,
    as_upstream: bool = False,
    by: str,
    reason: str = "",
) -> None:
    name = dataset_id(datasetid)
    made = _encrypted(passphrase, secret, name, as_upstream=as_upstream)
    with ledger.transaction(actor=by, reason=reason) as transaction:
        if not _store(transaction, {name: made}):
            raise UnknownName(f"DataSet {name} is not registered; register it, or correct its name")


def stored(ledger: Ledger, datasetid: str) -> str:
    """The ciphertext."""
    name = dataset_id(datasetid)
    with ledger.statement() as statement:
        found = statement.rows("stored_secret", datasetid=name)
    if not found:
        raise UnknownName(f"DataSet {name} is not registered; register it, or correct its name")
    if not (ciphertext := found[0]["encryptedpass"]):
        raise UnknownName(f"DataSet {name} has no stored password; set one with: odf secret set {name}")
    return str(ciphertext)


def verify(ledger: Ledger, passphrase: str) -> list[Stored]:
    """Which of the stored passwords this passphrase reads."""
    with ledger.statement() as statement:
        found = statement.rows("stored_secrets")
    return [_tried(passphrase, DatasetId(row["datasetid"]), row["encryptedpass"]) for row in found]


def count(ledger: Ledger) -> int:
    """How many passwords are stored."""
    with ledger.statement() as statement:
        return len(statement.rows("stored_secrets"))


def rotate(ledger: Ledger, old: str, new: str, *, upgrade: bool = False, by: str, reason: str = "") -> list[DatasetId]:
    """All of them with the new passphrase, each in the format it has (`upgrade`: in ours), or none."""
    with ledger.transaction(actor=by, reason=reason) as transaction:
        made: dict[DatasetId, str] = {}
        for row in transaction.rows("lock_secrets"):
            name, ciphertext = DatasetId(row["datasetid"]), row["encryptedpass"]
            clear = cipher.decrypt(old, ciphertext, name)
            made[name] = _encrypted(new, clear, name, as_upstream=cipher.is_upstream(ciphertext) and not upgrade)
        _store(transaction, made)
    return list(made)


def _encrypted(passphrase: str, secret: str, name: DatasetId, *, as_upstream: bool) -> str:
    return cipher.encrypt_as_upstream(passphrase, secret) if as_upstream else cipher.encrypt(passphrase, secret, name)


def _store(transaction: Transaction, made: dict[DatasetId, str]) -> int:
    return transaction.run("store_secrets", datasetids=list(made), encryptedpasses=list(made.values()))


def _tried(passphrase: str, name: DatasetId, ciphertext: str) -> Stored:
    try:
        cipher.decrypt(passphrase, ciphertext, name)
        readable = True
    except SecretUnreadable:
        readable = False
    return Stored(datasetid=name, format="upstream" if cipher.is_upstream(ciphertext) else "odf1", readable=readable)
