"""set and rotate the passwords of DataSets. The ledger stores ciphertext only."""

from __future__ import annotations

from ..ledger import passwords
from ..ledger.database import Ledger
from ..ledger.names import unknown_dataset
from ..ledger.retry import gives_way
from ..model.ids import DatasetId, dataset_id
from ..secrets import cipher


@gives_way
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
    """`as_upstream`: in the weaker format that upstream clients can read."""
    name = dataset_id(datasetid)
    encrypted = _encrypt(passphrase, secret, name, as_upstream=as_upstream)
    with ledger.transaction(actor=by, reason=reason) as transaction:
        if not passwords.store(transaction, {name: encrypted}):
            raise unknown_dataset(transaction, name)


@gives_way
def rotate(ledger: Ledger, old: str, new: str, *, upgrade: bool = False, by: str, reason: str = "") -> list[DatasetId]:
    """Encrypt all passwords with the new passphrase, or none. Each keeps its format unless `upgrade` is set."""
    with ledger.transaction(actor=by, reason=reason) as transaction:
        encrypted = {
            name: _encrypt(
                new,
                cipher.decrypt(old, ciphertext, name),
                name,
                as_upstream=cipher.is_upstream(ciphertext) and not upgrade,
            )
            for name, ciphertext in passwords.ciphertexts(transaction, lock=True).items()
        }
        passwords.store(transaction, encrypted)
    return list(encrypted)


def _encrypt(passphrase: str, secret: str, name: DatasetId, *, as_upstream: bool) -> str:
    return cipher.encrypt_as_upstream(passphrase, secret) if as_upstream else cipher.encrypt(passphrase, secret, name)
