"""What a script finds in its environment: the chunk, its DataSets, their passwords, and the Job's own variables.

Everything is looked up, decrypted and measured before a chunk is claimed: what an environment cannot hold is an
error that costs nobody a chunk.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from ..ledger import registry
from ..ledger.database import Ledger
from ..ledger.registry import JobItem
from ..ledger.settings import SECRET_VARIABLES
from ..model.claim import Claim
from ..model.errors import InvalidDefinition
from ..model.ids import DatasetId, JobId, job_id
from ..protocol.gate import require_job
from ..secrets import cipher
from ..secrets import passphrase as passphrases

#: Secrets of ours that a script inherits from nobody: the passphrase, and urls that have a password or a token in them.
HIDDEN: Final = passphrases.VARIABLES | SECRET_VARIABLES

#: A shell or the loader would run what these hold; metadata is data.
_REFUSED: Final = frozenset({"BASH_ENV", "PS4", "LD_PRELOAD", "LD_AUDIT"})

# Linux takes 128 KiB for one `NAME=value`, with its end.
_MAX_BYTES: Final = 131_072

# Beside its text and `=`, each has an end and a pointer; dataid and locations come with the chunk.
_POINTER_BYTES: Final = 10
_ROOM_FOR_THE_CHUNK: Final = 16_384

_NO_SHELL_NAME: Final = re.compile("[^A-Za-z0-9_]|^[0-9]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Provision:
    """The variables of a Job's scripts; None unsets what the caller has. Values are secret: they are not shown."""

    jobid: JobId
    variables: Mapping[str, str | None] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    #: The root of each OUT DataSet; None: the script knows where it puts it.
    roots: Mapping[DatasetId, str | None]

    def environment(self, claim: Claim, inherited: Mapping[bytes, bytes] | None = None) -> dict[bytes, bytes]:
        """For one chunk. What the caller has, without secrets of ours, and then what the ledger says."""
        found = dict(os.environb if inherited is None else inherited)
        for name in HIDDEN:
            found.pop(name.encode(), None)
        for variable, value in {**self.variables, **self._of_chunk(claim)}.items():
            if value is None:
                found.pop(variable.encode(), None)
            else:
                found[variable.encode()] = value.encode()
        return found

    def refuse_too_much(self, command: Sequence[str], inherited: Mapping[bytes, bytes] | None = None) -> None:
        """Together with what the caller has, and the command itself, all must fit into one call of the kernel."""
        found = {**(os.environb if inherited is None else inherited)}
        found |= {name.encode(): (value or "").encode() for name, value in self.variables.items()}
        words = [*(name + value for name, value in found.items()), *(os.fsencode(one) for one in command)]
        size = sum(len(one) + _POINTER_BYTES for one in words) + _ROOM_FOR_THE_CHUNK
        if size > (most := os.sysconf("SC_ARG_MAX")):
            raise InvalidDefinition(
                f"job {self.jobid}: the environment and the arguments of its script have {size:,} bytes together, and "
                f"this machine allows {most:,}; put the largest values into files and give their paths"
            )

    def places(self, claim: Claim) -> dict[DatasetId, str]:
        """Where the script shall write each output that has a root: a folder that belongs to this claim alone."""
        rooted = {one: root for one in claim.outputs if (root := self.roots.get(one)) is not None}
        if not rooted:
            return {}
        from ..warehouse.location import folder_of  # slow to load, and most scripts need none

        return {one: folder_of(root, claim.dataid, claim.claim_id) for one, root in rooted.items()}

    def _of_chunk(self, claim: Claim) -> dict[str, str]:
        read = {one.datasetid: one.location for one in claim.manifests if one.dataid == claim.dataid}
        places = {**read, **self.places(claim)}
        return {"dataid": claim.dataid, **{shell_name(f"{one}_location"): where for one, where in places.items()}}


def provision(ledger: Ledger, jobid: str, passphrase: Callable[[], str] = passphrases.passphrase) -> Provision:
    """`passphrase` is asked for only if there is a password to decrypt."""
    job = job_id(jobid)
    phrase = cache(passphrase)
    with ledger.statement() as statement:
        items = registry.job_items(statement, job)
        if not items:
            require_job(statement, job)
    passwords = {
        one.datasetid: cipher.decrypt(phrase(), one.encryptedpass, one.datasetid)
        for one in items
        if one.datasetid is not None and one.encryptedpass
    }
    variables: dict[str, str | None] = {}
    origin: dict[str, str] = {"dataid": "the chunk"}
    for source, name, value in _named(items, passwords):
        variable = shell_name(name)
        if (other := origin.setdefault(variable, source)) != source:
            raise InvalidDefinition(
                f"job {job}: {source} and {other} both give its scripts the variable {variable}; rename one of them"
            )
        _refuse_unfit(job, source, variable, value)
        variables[variable] = value
    return Provision(
        jobid=job,
        variables=variables,
        secrets=tuple(passwords.values()),
        roots={one.datasetid: one.location for one in items if one.itemtype == "OUT" and one.datasetid is not None},
    )


def shell_name(name: str) -> str:
    """A name that every shell can hold."""
    return _NO_SHELL_NAME.sub("_", name)


def _named(items: list[JobItem], passwords: Mapping[DatasetId, str]) -> Iterator[tuple[str, str, str | None]]:
    """Where it comes from, the name before it is fit for a shell, the value."""
    for item in items:
        if item.datasetid is None:
            yield f"its item {item.itemtype}", item.itemtype, item.itemvalue
            continue
        source = f"DataSet {item.datasetid}"
        for suffix, value in (
            ("datasetid", item.datasetid),
            ("hostname", item.hostname),
            ("database", item.database),
            ("schemaname", item.schemaname),
            ("tablename", item.tablename),
            ("username", item.username),
            ("encryptedpass", item.encryptedpass),
            ("itemtype", item.itemtype),
            ("password", passwords.get(item.datasetid)),
            ("location", None),
        ):
            yield source, f"{item.datasetid}_{suffix}", value


def _refuse_unfit(job: JobId, source: str, variable: str, value: str | None) -> None:
    """The value is never in the message: it may be a password."""
    if variable in _REFUSED:
        raise InvalidDefinition(
            f"job {job}: {source} would set {variable}, which a shell or the loader runs; choose another name"
        )
    if value is None:
        return
    if "\0" in value:
        raise InvalidDefinition(
            f"job {job}: {source} has a NUL character in what becomes {variable}, and no environment holds that"
        )
    if (size := len(variable) + len(value.encode()) + 2) > _MAX_BYTES:
        raise InvalidDefinition(
            f"job {job}: {source} gives {variable} {size:,} bytes, and an environment holds {_MAX_BYTES:,} for each; "
            f"put it into a file and give its path"
        )
