"""The home of a project (ODF_HOME), and the database of its ledger (ODF_DATABASE_URL, or upstream's
`dataflow.properties`)."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from ..model.errors import InvalidInput

HOME_VARIABLE = "ODF_HOME"
URL_VARIABLE = "ODF_DATABASE_URL"
DAGSTER_URL_VARIABLE = "ODF_DAGSTER_URL"
WEBHOOK_VARIABLE = "ODF_WEBHOOK_URL"
#: URLs that contain a password or a token.
SECRET_VARIABLES = frozenset({URL_VARIABLE, DAGSTER_URL_VARIABLE, WEBHOOK_VARIABLE})
PROJECT_FILES = ("pyproject.toml", "workspace.yaml", ".odf")


def home() -> Path:
    """ODF_HOME, or `.odf` in the project: the nearest parent folder that contains one of PROJECT_FILES."""
    if chosen := os.environ.get(HOME_VARIABLE):
        return Path(chosen).expanduser().resolve()
    here = Path.cwd()
    for folder in (here, *here.parents):
        if any((folder / name).exists() for name in PROJECT_FILES):
            return folder / ".odf"
    return here / ".odf"


def configured_url() -> str | None:
    """From ODF_DATABASE_URL, or from an upstream installation's dataflow.properties. It may contain a password, so it
    never appears in an error."""
    url = os.environ.get(URL_VARIABLE, "").strip()
    if not url:
        return _upstream_url()
    # SQLAlchemy, and so Dagster, accepts only the long form.
    if url.startswith("postgres://"):
        url = "postgresql://" + url.removeprefix("postgres://")
    if not url.startswith("postgresql://"):
        raise InvalidInput(
            f"{URL_VARIABLE} is not the URL of a Postgres; use the form postgresql://user:password@host:5432/database, "
            f"or unset it to use the embedded server"
        )
    try:
        # libpq allows several hosts with ports (a:5432,b:5432), which urlsplit cannot parse.
        parts = urlsplit(url)
        several = "," in parts.netloc.rpartition("@")[2]
        readable = several or parts.port is None or parts.port > 0
    except ValueError:
        readable = False
    if not readable:
        raise InvalidInput(
            f"{URL_VARIABLE} has an invalid host or port; write the port as a number, and "
            f"percent-encode special characters in the password (/ is %2F, @ is %40, # is %23)"
        )
    return url


def url_source() -> str:
    """The variable or file that `configured_url` reads."""
    from .properties import properties_file

    return URL_VARIABLE if os.environ.get(URL_VARIABLE, "").strip() else str(properties_file() or URL_VARIABLE)


def _upstream_url() -> str | None:
    from . import properties  # rarely needed

    path = properties.properties_file()
    return properties.url_of(path) if path is not None else None


def database_url() -> str:
    """The ledger's URL. If none is configured, that of the embedded server, which starts on first use."""
    if url := configured_url():
        return url
    from .embedded import EmbeddedPostgres  # not supported on every platform

    return EmbeddedPostgres(home()).start()
