"""`dataflow.properties` of an upstream installation leads to its database, and its password stays out of sight."""

from __future__ import annotations

from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from opendataflow_dagster.ledger.settings import configured_url
from opendataflow_dagster.model.errors import InvalidInput, SecretUnreadable
from opendataflow_dagster.secrets.cipher import encrypt_as_upstream

PASSWORD = "p@ss/w:rd#?%\u96ea"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("ODF_DATABASE_URL", "ODF_PROPERTIES", "ODF_PASSPHRASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PASSKEY", "plugh")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(**properties: str) -> Path:
    found = {
        "url": "jdbc:postgresql://db1:5433/flow",
        "user": "etl",
        "schema": "dataflow",
        "encrypted": encrypt_as_upstream("plugh", PASSWORD),
        "platform": "postgres",
        **properties,
    }
    path = Path("dataflow.properties")
    path.write_text("# of upstream\n" + "".join(f"{name} = {value}\n" for name, value in found.items() if value))
    return path.absolute()


def test_the_file_in_the_current_folder_is_the_ledger_with_its_password() -> None:
    assert configured_url() is None
    write()
    assert conninfo_to_dict(configured_url() or "") == {
        "host": "db1",
        "port": "5433",
        "dbname": "flow",
        "user": "etl",
        "password": PASSWORD,
    }


def test_a_named_file_is_taken_and_the_url_of_our_own_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    path = write().rename("elsewhere.properties")
    assert configured_url() is None
    monkeypatch.setenv("ODF_PROPERTIES", str(path.absolute()))
    assert (configured_url() or "").endswith("@db1:5433/flow")
    monkeypatch.setenv("ODF_DATABASE_URL", "postgresql://other/db")
    assert configured_url() == "postgresql://other/db"


@pytest.mark.parametrize(
    ("jdbc", "host", "options"),
    [
        ("jdbc:postgresql://db1/flow", "db1", {}),
        ("jdbc:postgresql:flow", "localhost", {}),
        ("jdbc:postgresql:///flow", "localhost", {}),
        ("jdbc:postgresql://a:1,b:2/flow?targetServerType=primary", "a,b",
         {"port": "1,2", "target_session_attrs": "primary"}),
        ("jdbc:postgresql://db1/flow?sslmode=require&ApplicationName=x&connectTimeout=3", "db1",
         {"sslmode": "require", "connect_timeout": "3"}),
        ("jdbc:postgresql://db1/flow?ssl=true", "db1", {"sslmode": "verify-full"}),
    ],
)  # fmt: skip
def test_every_form_of_its_url_is_understood(jdbc: str, host: str, options: dict[str, str]) -> None:
    write(url=jdbc, encrypted="", platform="", schema="")
    wanted = {"host": host, "dbname": "flow", "user": "etl", **options}
    assert conninfo_to_dict(configured_url() or "") == wanted


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"platform": "h2"}, "has platform h2"),
        ({"schema": "other"}, 'alter schema "other" rename to dataflow'),
        ({"url": "jdbc:h2:./dataflow"}, "has no Postgres url"),
        ({"url": ""}, "has no Postgres url"),
        ({"url": "\\u00zz"}, "cannot be read"),
    ],
)
def test_what_cannot_be_the_ledger_is_said_with_the_next_step(properties: dict[str, str], said: str) -> None:
    write(**properties)
    with pytest.raises(InvalidInput, match=said) as refused:
        configured_url()
    assert PASSWORD not in str(refused.value)


def test_a_missing_file_and_a_wrong_passphrase_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    write()
    monkeypatch.setenv("PASSKEY", "another")
    with pytest.raises(
        SecretUnreadable,
        match=r"dataflow\.properties: the passphrase does not decrypt the password in `encrypted`.*encrypt --upstream",
    ) as refused:
        configured_url()
    assert "DataSet" not in str(refused.value)
    monkeypatch.setenv("ODF_PROPERTIES", "nowhere.properties")
    with pytest.raises(InvalidInput, match=r"nowhere\.properties cannot be read"):
        configured_url()
