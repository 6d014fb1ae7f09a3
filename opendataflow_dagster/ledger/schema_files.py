"""The files of which the schema is made, and the checksums that an up-to-date ledger has recorded of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

#: The record of all files in routines/.
ROUTINES = "routines"

#: The tables of 0.1.0, as that release recorded them: fifteen files, which 0001_baseline replaces.
RELEASE_0_1_0 = MappingProxyType(
    {
        "0001_registry": "1e9b321c5071b469246367f5e40d4e37e530a32ecc66de171bfb550c516152cd",
        "0002_chunks": "de39fa8cd072f189f969be2d05ca42b0780c3272adab452ea907bc7112851661",
        "0003_questions": "36be0b16d4b3c601ec07f3379b4d7499bb76487aa8948a6957e0b3cb362691d4",
        "0004_runnable": "4e93f0c1e3e7598bc97e38b85153a01a2b4a233ca410eb8595b7cea1de13ed40",
        "0005_locks": "a71cb36ba706127dce5833d06d1ce985f9e6147018ce8e5dfc0bc90765262673",
        "0006_triggers": "09a1f5fc729ebeb6f5ae67ee11ae94550b7547c5c0cb7b6d06c982ab1a1c09a1",
        "0007_registry_triggers": "9cfe397b35c30471a8f9ee9968edae78fe67cda2675d454595100b12f863657b",
        "0008_claim": "6e653e20df7812534b9f9a2b2a903bb50e50994a224f6b848344bd41ba75de84",
        "0009_publish": "b77b737304aaa9c356a1d7ab63d74e611865bcdf0f8b71b44f7a02fba2e268cb",
        "0010_see": "d631ed36f8d7ea6376832cd331a865f52d9b7ddcf567b69374c55c6f266bef9a",
        "0011_steering": "8ac6bf6f67d98b3b31d490bf254c437b9ab06b3d9b420f03e5d6c02e513b9bce",
        "0012_reported": "15da023ff8fd3c87455109ef63b84accecc4b05906a9d8007622a2fac315dc27",
        "0013_sweep": "c6db7200648b4151a5355f58b70f9a8df65e28293ab81168cf049c068cf6e66e",
        "0014_terms": "db4efe37c04245a252257a4289d53f9191eb7fe413f534be5c96ff08db3efe69",
        "0015_registry_history": "99299864517f9cfb63d36b34d4b54703b3200b6767e6c57dd45150bfee25306b",
    }
)
BASELINE = "0001_baseline"


@cache
def tables() -> Mapping[str, str]:
    """The text of each file in tables/, in order."""
    return MappingProxyType(texts("tables"))


@cache
def wanted() -> Mapping[str, str]:
    """What an up-to-date ledger has recorded: the checksum of each table file, and of all routines together."""
    routines = "".join(texts("routines").values())
    return MappingProxyType(
        {**{name: _checksum(text) for name, text in tables().items()}, ROUTINES: _checksum(routines)}
    )


def texts(folder: str) -> dict[str, str]:
    found = sorted(files(__package__).joinpath(folder).iterdir(), key=lambda file: file.name)
    return {file.name.removesuffix(".sql"): file.read_text() for file in found if file.name.endswith(".sql")}


def file_text(path: str) -> str:
    return files(__package__).joinpath(*path.split("/")).read_text()


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
