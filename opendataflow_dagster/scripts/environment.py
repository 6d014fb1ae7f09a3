"""The environment of a script: its chunk, its DataSets with their passwords, and the Job's own variables.

Everything is looked up, decrypted and measured before a chunk is claimed, so that a value which does not fit into an
environment fails no chunk.
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

#: Our own secrets, which a script does not inherit: the passphrase, and URLs with a password or a token.
HIDDEN: Final = passphrases.VARIABLES | SECRET_VARIABLES

#: A shell or the dynamic loader would execute these values; metadata must stay data.
_REFUSED: Final = frozenset({"BASH_ENV", "PS4", "LD_PRELOAD", "LD_AUDIT"})

# Linux limits one `NAME=value` to 128 KiB, including the final NUL.
_MAX_BYTES: Final = 131_072

# Beside its text and `=`, each variable takes a NUL and a pointer; the dataid and locations are added per chunk.
_POINTER_BYTES: Final = 10
_RESERVED_FOR_CHUNK: Final = 16_384

_NO_SHELL_NAME: Final = re.compile("[^A-Za-z0-9_]|^[0-9]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Provision:
    """The variables of a Job's scripts. None unsets an inherited variable. Values may be secret, so repr hides them."""

    jobid: JobId
    variables: Mapping[str, str | None] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    #: The root of each OUT DataSet. None: the script decides where it writes.
    roots: Mapping[DatasetId, str | None]

    def environment(self, claim: Claim, inherited: Mapping[bytes, bytes] | None = None) -> dict[bytes, bytes]:
        """The environment for one chunk: what the caller has, without our secrets, then what the ledger says."""
        environment = dict(os.environb if inherited is None else inherited)
        for name in HIDDEN:
            environment.pop(name.encode(), None)
        for variable, value in {**self.variables, **self._of_chunk(claim)}.items():
            if value is None:
                environment.pop(variable.encode(), None)
            else:
                environment[variable.encode()] = value.encode()
        return environment

    def refuse_too_much(self, command: Sequence[str], inherited: Mapping[bytes, bytes] | None = None) -> None:
        """The inherited and our variables and the command must together fit into one exec call."""
        environment = {**(os.environb if inherited is None else inherited)}
        environment |= {name.encode(): (value or "").encode() for name, value in self.variables.items()}
        words = [*(name + value for name, value in environment.items()), *map(os.fsencode, command)]
        size = sum(len(word) + _POINTER_BYTES for word in words) + _RESERVED_FOR_CHUNK
        if size > (most := os.sysconf("SC_ARG_MAX")):
            raise InvalidDefinition(
                f"job {self.jobid}: the environment and arguments of its script take {size:,} bytes, but this machine "
                f"allows {most:,}; put the largest values into files and pass their paths"
            )

    def places(self, claim: Claim) -> dict[DatasetId, str]:
        """The folder to write each output that has a root; it belongs to this output of this claim alone."""
        rooted = {output: root for output in claim.outputs if (root := self.roots.get(output)) is not None}
        if not rooted:
            return {}
        from ..warehouse.location import folder_of  # slow to import, and most scripts do not need it

        return {output: folder_of(root, output, claim.dataid, claim.claim_id) for output, root in rooted.items()}

    def _of_chunk(self, claim: Claim) -> dict[str, str]:
        inputs = {version.datasetid: version.location for version in claim.manifests if version.dataid == claim.dataid}
        places = {**inputs, **self.places(claim)}
        return {"dataid": claim.dataid, **{shell_name(f"{name}_location"): place for name, place in places.items()}}


def provision(ledger: Ledger, jobid: str, passphrase: Callable[[], str] = passphrases.passphrase) -> Provision:
    """`passphrase` is called only if there is a password to decrypt."""
    job = job_id(jobid)
    phrase = cache(passphrase)
    with ledger.statement() as statement:
        items = registry.job_items(statement, job)
        if not items:
            require_job(statement, job)
    passwords = {
        item.datasetid: cipher.decrypt(phrase(), item.encryptedpass, item.datasetid)
        for item in items
        if item.datasetid is not None and item.encryptedpass
    }
    variables: dict[str, str | None] = {}
    origin: dict[str, str] = {"dataid": "the chunk"}
    for source, name, value in _named(items, passwords):
        variable = shell_name(name)
        if (other := origin.setdefault(variable, source)) != source:
            raise InvalidDefinition(
                f"job {job}: {source} and {other} both set the variable {variable} of its scripts; rename one of them"
            )
        _refuse_unfit(job, source, variable, value)
        variables[variable] = value
    return Provision(
        jobid=job,
        variables=variables,
        secrets=tuple(passwords.values()),
        roots={
            item.datasetid: item.location for item in items if item.itemtype == "OUT" and item.datasetid is not None
        },
    )


def shell_name(name: str) -> str:
    """A name that is valid in every shell."""
    return _NO_SHELL_NAME.sub("_", name)


def _named(items: list[JobItem], passwords: Mapping[DatasetId, str]) -> Iterator[tuple[str, str, str | None]]:
    """The origin, the name before it is made valid for a shell, and the value."""
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
    """The message never contains the value, which may be a password."""
    if variable in _REFUSED:
        raise InvalidDefinition(
            f"job {job}: {source} would set {variable}, which a shell or the loader executes; choose another name"
        )
    if value is None:
        return
    if "\0" in value:
        raise InvalidDefinition(f"job {job}: the value of {variable} from {source} contains a NUL character; remove it")
    if (size := len(variable) + len(value.encode()) + 2) > _MAX_BYTES:
        raise InvalidDefinition(
            f"job {job}: {variable} from {source} takes {size:,} bytes, but a variable may take {_MAX_BYTES:,}; "
            f"put the value into a file and pass its path"
        )
