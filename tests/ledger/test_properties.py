"""`dataflow.properties` of an upstream installation leads to its database; its password is in no output."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner
from psycopg.conninfo import conninfo_to_dict

from opendataflow_dagster.cli.main import odf
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


def test_an_upstream_installation_is_upgraded_from_its_own_file(empty_url: str) -> None:
    parts = conninfo_to_dict(empty_url)
    with psycopg.connect(empty_url, autocommit=True) as connection:
        connection.execute("create schema dataflow")
        connection.execute(
            "create table dataflow.datastatus (datasetid varchar, jobid varchar, dataid varchar, locktype varchar,"
            " status varchar, modified timestamp, primary key (datasetid, jobid, dataid))"
        )
    write(
        url=f"jdbc:postgresql://{parts['host']}:{parts['port']}/{parts['dbname']}",
        user=str(parts["user"]),
        encrypted=encrypt_as_upstream("plugh", str(parts["password"])),
    )
    environment = {"PASSKEY": "plugh", "ODF_HOME": str(Path.cwd())}
    done = CliRunner().invoke(odf, ["schema", "install"], env=environment)
    assert (done.exit_code, done.output[:22]) == (0, "Applied adopt_upstream")
    assert str(parts["password"]) not in done.output
