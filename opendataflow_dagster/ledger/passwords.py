"""The encrypted passwords of DataSets. No clear text passes through here."""

from __future__ import annotations

from collections.abc import Mapping

from ..model.ids import DatasetId
from .database import Transaction
from .names import unknown_dataset


def ciphertexts(transaction: Transaction, *, lock: bool = False) -> dict[DatasetId, str]:
    """`lock`: nobody else can change them until the transaction ends."""
    datasets = transaction.rows("stored_passwords", lock=lock)
    return {DatasetId(row["datasetid"]): row["encryptedpass"] for row in datasets}


def ciphertext(transaction: Transaction, datasetid: DatasetId) -> str | None:
    dataset = transaction.rows("stored_password", datasetid=datasetid)
    if not dataset:
        raise unknown_dataset(transaction, datasetid)
    return dataset[0]["encryptedpass"] or None


def store(transaction: Transaction, encrypted: Mapping[DatasetId, str]) -> int:
    """How many of these DataSets are registered."""
    return transaction.run("store_passwords", datasetids=list(encrypted), encryptedpasses=list(encrypted.values()))
