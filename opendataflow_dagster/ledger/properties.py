"""`dataflow.properties` of an upstream installation: which database is its ledger.

Found as upstream's programs find it, in the current folder; or anywhere, named by ODF_PROPERTIES.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, quote, urlencode

from ..model.errors import InvalidInput, SecretUnreadable
from ..secrets.cipher import decrypt
from ..secrets.passphrase import passphrase

VARIABLE: Final = "ODF_PROPERTIES"
FILE_NAME: Final = "dataflow.properties"

_JDBC: Final = "jdbc:postgresql:"
# Options of upstream's driver that libpq has, too; the others are about the driver itself.
_OPTIONS: Final = {
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "connectTimeout": "connect_timeout",
}


def properties_file() -> Path | None:
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser()
    here = Path(FILE_NAME)
    return here if here.is_file() else None


def url_of(path: Path) -> str:
    """The database as a url, with its password: it is never part of an error."""
    import javaproperties

    try:
        with path.open("rb") as file:
            found: dict[str, str] = javaproperties.load(file)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be read ({type(error).__name__}); correct it, or {VARIABLE}") from None
    if (platform := found.get("platform", "postgres")) not in ("postgres", "postgresql"):
        raise InvalidInput(
            f"{path} is of platform {platform}, and the ledger needs a Postgres; copy its three tables into the schema "
            f"dataflow of one, correct url and platform, and run: odf schema install"
        )
    if (schema := found.get("schema", "dataflow")) != "dataflow":
        raise InvalidInput(
            f"{path} names the schema {schema}, and the ledger's is dataflow; in psql: "
            f'alter schema "{schema}" rename to dataflow; then correct the file'
        )
    url = found.get("url", "")
    if not url.startswith(_JDBC):
        raise InvalidInput(f"{path} has no url of a Postgres; write it as url=jdbc:postgresql://host:5432/database")
    return _libpq_url(url.removeprefix(_JDBC), found.get("user"), _password(path, found))


def _password(path: Path, found: dict[str, str]) -> str | None:
    # Upstream's own format, and so not bound to anything; ours may be used by the name of the file.
    encrypted = found.get("encrypted")
    if not encrypted:
        return found.get("password")
    phrase = passphrase()
    try:
        return decrypt(phrase, encrypted, path.name)
    except SecretUnreadable:
        raise SecretUnreadable(
            f"the password that {path} has as `encrypted` does not fit the passphrase; correct the passphrase, or "
            f"encrypt the password anew: odf secret encrypt --upstream"
        ) from None


def _libpq_url(rest: str, user: str | None, password: str | None) -> str:
    """`//host:port/database?options`, or the database alone, which is on this machine."""
    address, _, query = rest.partition("?")
    host, _, database = address.removeprefix("//").partition("/") if address.startswith("//") else ("", "", address)
    given = dict(parse_qsl(query))
    options = {ours: given[theirs] for theirs, ours in _OPTIONS.items() if theirs in given}
    if given.get("ssl", "false") != "false":
        options.setdefault("sslmode", "verify-full")
    user, password = user or given.get("user"), password or given.get("password")
    login = quote(user, safe="") if user else ""
    login += f":{quote(password, safe='')}" if password else ""
    return (
        f"postgresql://{login}{'@' if login else ''}{host or 'localhost'}/{database or quote(user or '', safe='')}"
        f"{'?' if options else ''}{urlencode(options)}"
    )
