"""Where this project keeps its things (ODF_HOME), and which database is its ledger (ODF_DATABASE_URL, or upstream's
`dataflow.properties`)."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from opendataflow_dagster.model.errors import InvalidInput

HOME_VARIABLE = "ODF_HOME"
URL_VARIABLE = "ODF_DATABASE_URL"
DAGSTER_URL_VARIABLE = "ODF_DAGSTER_URL"
WEBHOOK_VARIABLE = "ODF_WEBHOOK_URL"
#: Urls that have a password or a token in them.
SECRET_VARIABLES = frozenset({URL_VARIABLE, DAGSTER_URL_VARIABLE, WEBHOOK_VARIABLE})
PROJECT_MARKS = ("pyproject.toml", "workspace.yaml", ".odf")


def home() -> Path:
    """ODF_HOME, or `.odf` in the project: the nearest folder above with one of its marks."""
    if chosen := os.environ.get(HOME_VARIABLE):
        return Path(chosen).expanduser().resolve()
    here = Path.cwd()
    for folder in (here, *here.parents):
        if any((folder / mark).exists() for mark in PROJECT_MARKS):
            return folder / ".odf"
    return here / ".odf"


def configured_url() -> str | None:
    """The server that ODF_DATABASE_URL names, or an upstream installation's dataflow.properties, if any. An error
    never repeats it: it holds a password."""
    url = os.environ.get(URL_VARIABLE, "").strip()
    if not url:
        return _upstream_url()
    # SQLAlchemy, and so Dagster, knows only the long spelling.
    if url.startswith("postgres://"):
        url = "postgresql://" + url.removeprefix("postgres://")
    if not url.startswith("postgresql://"):
        raise InvalidInput(
            f"{URL_VARIABLE} is not the url of a Postgres; write it as "
            f"postgresql://user:password@host:5432/database, or unset it to use the embedded server"
        )
    try:
        # libpq allows several hosts (a:5432,b:5432), each with its own port; urlsplit knows one.
        parts = urlsplit(url)
        several = "," in parts.netloc.rpartition("@")[2]
        readable = several or parts.port is None or parts.port > 0
    except ValueError:
        readable = False
    if not readable:
        raise InvalidInput(
            f"{URL_VARIABLE} has a host or port that cannot be read; write the port as a number and "
            f"%-encode special characters of the password (/ is %2F, @ is %40, # is %23)"
        )
    return url


def url_source() -> str:
    """What names the server that `configured_url` gives."""
    from .properties import properties_file

    return URL_VARIABLE if os.environ.get(URL_VARIABLE, "").strip() else str(properties_file() or URL_VARIABLE)


def _upstream_url() -> str | None:
    from . import properties  # few have one

    path = properties.properties_file()
    return properties.url_of(path) if path is not None else None


def database_url() -> str:
    """The ledger's url. Without ODF_DATABASE_URL the embedded server, which starts on first use."""
    if url := configured_url():
        return url
    from .embedded import EmbeddedPostgres  # a configured server must not need the embedded one's platform

    return EmbeddedPostgres(home()).start()
