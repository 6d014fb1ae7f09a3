"""The database of an upstream installation, from its `dataflow.properties`.

The file is in the current folder, where upstream looks for it, or where ODF_PROPERTIES says.
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
# The options of upstream's JDBC driver that libpq has, too.
_OPTIONS: Final = {
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "connectTimeout": "connect_timeout",
    "targetServerType": "target_session_attrs",
}


def properties_file() -> Path | None:
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser()
    here = Path(FILE_NAME)
    return here if here.is_file() else None


def url_of(path: Path) -> str:
    """With the password, so it never appears in an error."""
    import javaproperties

    try:
        with path.open("rb") as file:
            settings: dict[str, str] = javaproperties.load(file)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be read ({type(error).__name__}); correct it, or {VARIABLE}") from None
    if (platform := settings.get("platform", "postgres")) not in ("postgres", "postgresql"):
        raise InvalidInput(
            f"{path} has platform {platform}, but the ledger needs Postgres; copy the three tables into the schema "
            f"dataflow of a Postgres database, correct url and platform, and run: odf schema install"
        )
    if (schema := settings.get("schema", "dataflow")) != "dataflow":
        raise InvalidInput(
            f"{path} has schema {schema}, but the ledger needs dataflow; in psql: "
            f'alter schema "{schema}" rename to dataflow; then correct the file'
        )
    url = settings.get("url", "")
    if not url.startswith(_JDBC):
        raise InvalidInput(f"{path} has no Postgres url; use the form url=jdbc:postgresql://host:5432/database")
    return _libpq_url(url.removeprefix(_JDBC), settings.get("user"), _password(path, settings))


def _password(path: Path, settings: dict[str, str]) -> str | None:
    # In upstream's format it is bound to nothing; in ours, to the name of the file.
    encrypted = settings.get("encrypted")
    if not encrypted:
        return settings.get("password")
    phrase = passphrase()
    try:
        return decrypt(phrase, encrypted, path.name)
    except SecretUnreadable:
        raise SecretUnreadable(
            f"{path}: the passphrase does not decrypt the password in `encrypted`; correct the passphrase, "
            f"or encrypt the password again: odf secret encrypt --upstream"
        ) from None


def _libpq_url(rest: str, user: str | None, password: str | None) -> str:
    """From `//host:port/database?options`, or from the name of a database on this machine."""
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
