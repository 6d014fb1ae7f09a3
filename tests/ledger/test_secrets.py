"""Secrets: both formats, the sources of the passphrase, and `odf secret`. No error contains a secret."""

from __future__ import annotations

import json
import os

import pytest
from click.testing import CliRunner, Result

from opendataflow_dagster.cli.main import odf
from opendataflow_dagster.model.errors import SecretUnreadable
from opendataflow_dagster.protocol.secret import rotate
from opendataflow_dagster.secrets import cipher
from opendataflow_dagster.secrets.passphrase import VARIABLES
from tests.factories import Flow

#: Passphrase, secret and ciphertext, from upstream's own program.
VECTORS = [
    ("plugh", "mysecret", "bWyH69XYondjzPYw6rQMJmvFIKq4GP91904Ie8EtBSvUV8Sk"),
    ("k", "", "nyL+nQ+Q5cMRD0gXLfeKi4k2pL+R1TPe9Ihz5Q=="),
]


@pytest.fixture
def flow(emptied_flow: Flow) -> Flow:
    return emptied_flow


@pytest.fixture(autouse=True)
def _no_passphrase(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


# ---- formats


# ---- where the passphrase comes from


# ---- the commands


def run(flow: Flow, *words: str, given: str | bytes | None = None, phrase: str = "phrase", **env: str) -> Result:
    environment = {"ODF_DATABASE_URL": flow.url, "ODF_PASSPHRASE": phrase, **env}
    return CliRunner().invoke(odf, ["secret", *words], input=given, env=environment)


def stored(flow: Flow, datasetid: str) -> str:
    found = flow.psql.execute(
        "select encryptedpass from dataflow.dataset where datasetid = %s", (datasetid,)
    ).fetchone()
    assert found is not None
    return str(found[0])


def test_a_password_is_set_from_stdin_verified_and_decrypted(flow: Flow) -> None:
    flow.register("load: -> raw, tidy")
    assert run(flow, "verify").output == "No DataSet has a stored password.\n"
    done = run(flow, "set", "raw", given="hush 'quoted'\n")
    assert (done.exit_code, done.output) == (0, "Stored the password of DataSet raw.\n")
    assert cipher.decrypt("phrase", stored(flow, "raw"), "raw") == "hush 'quoted'"
    assert run(flow, "decrypt", "raw").output == "hush 'quoted'\n"
    assert json.loads(run(flow, "decrypt", "raw", "--json").output) == {"datasetid": "raw", "password": "hush 'quoted'"}
    assert json.loads(run(flow, "set", "tidy", "--json", given="x").output) == {"dry_run": False, "datasetid": "tidy"}
    verified = run(flow, "verify")
    assert (verified.exit_code, verified.output.split()[:6]) == (
        0,
        ["DataSet", "format", "readable", "raw", "odf1", "yes"],
    )
    other = run(flow, "verify", "--json", phrase="another")
    assert other.exit_code == 1
    assert json.loads(other.output)["secrets"][0] == {"datasetid": "raw", "format": "odf1", "readable": False}


def test_a_dry_run_stores_nothing(flow: Flow) -> None:
    flow.register("load: -> raw")
    assert run(flow, "set", "raw", "--dry-run", given="hush").output.startswith("Dry run, nothing was changed")
    assert stored(flow, "raw") == "None"


def test_encrypt_prints_a_ciphertext_in_our_format_or_in_upstreams(flow: Flow) -> None:
    printed = run(flow, "encrypt", "raw", given="hush\n").output.strip()
    assert cipher.decrypt("phrase", printed, "raw") == "hush"
    theirs = json.loads(run(flow, "encrypt", "--upstream", "--json", given="hush").output)["encrypted"]
    assert cipher.is_upstream(theirs)
    assert run(flow, "decrypt", "--ciphertext", theirs).output == "hush\n"
    assert run(flow, "decrypt", "--ciphertext", VECTORS[0][2], phrase="plugh").output == "mysecret\n"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["set", "nobody"], 64, "DataSet nobody is not registered"),
        (["decrypt", "nobody"], 64, "DataSet nobody is not registered"),
        (["decrypt", "raw"], 64, "DataSet raw has no stored password; set one with: odf secret set raw"),
        (["decrypt"], 64, "missing DATASET: pass one, or use --ciphertext"),
        (["encrypt"], 64, "missing DATASET: a secret is bound to its DataSet"),
        (["decrypt", "tidy", "--ciphertext", cipher.encrypt("phrase", "hush", "raw")], 142, "cannot be decrypted"),
        (["decrypt", "--ciphertext", cipher.encrypt("phrase", "hush", "raw")], 64, "name the DataSet, too"),
        (["rotate"], 64, "cannot prompt for the new passphrase without a terminal"),
        (["set", "raw", "hush"], 64, "unexpected extra argument"),
    ],
)
def test_refusals_are_one_sentence_with_their_exit_code(flow: Flow, words: list[str], code: int, message: str) -> None:
    flow.register("load: -> raw")
    done = run(flow, *words, given="hush")
    assert (done.exit_code, done.stdout) == (code, "")
    assert message in " ".join(done.stderr.split())


@pytest.mark.parametrize("verb", ["set", "decrypt"])
def test_a_misspelt_dataset_gives_the_nearest_name(flow: Flow, verb: str) -> None:
    flow.register("load: -> orders, orders_old")
    assert "DataSet ordres is not registered; did you mean orders" in run(flow, verb, "ordres", given="hush").stderr
    run(flow, "set", "orders", given="hush")
    error = run(flow, "decrypt", "orders_old").stderr
    assert "DataSet orders_old has no stored password; did you mean orders?" in error


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (b"", "no password on stdin"),
        (b"\n", "no password on stdin"),
        (b"caf\xe9", "the password on stdin is not valid UTF-8"),
        (b"hush\0hush", "contains a NUL character"),
    ],
)
def test_an_invalid_password_is_not_stored(flow: Flow, given: bytes, message: str) -> None:
    flow.register("load: -> raw")
    for words in (["set", "raw"], ["encrypt", "raw"], ["encrypt", "--upstream"]):
        done = run(flow, *words, given=given)
        assert (done.exit_code, done.stdout) == (64, "")
        assert message in done.stderr
    assert stored(flow, "raw") == "None"


@pytest.mark.parametrize("words", [["encrypt"], ["encrypt", "--upstream"], ["decrypt", "--ciphertext", VECTORS[0][2]]])
@pytest.mark.parametrize("name", ["", "a\nb", "x" * 201])
def test_a_secret_needs_a_valid_dataset_name(flow: Flow, words: list[str], name: str) -> None:
    done = run(flow, *words, name, given="hush", phrase="plugh")
    assert (done.exit_code, done.stdout) == (64, "")
    assert "DataSet name" in done.stderr


def test_rotating_many_passwords_needs_confirmation(flow: Flow) -> None:
    flow.register(f"load: -> {', '.join(f'set_{number}' for number in range(21))}")
    encrypted = cipher.encrypt_as_upstream("phrase", "hush")
    flow.type("update dataflow.dataset set encryptedpass = %s", encrypted)
    asked = run(flow, "rotate", ODF_NEW_PASSPHRASE="new")
    assert (asked.exit_code, asked.stdout) == (64, "")
    assert "this would re-encrypt 21 passwords; check with --dry-run, then pass --yes" in asked.stderr
    assert stored(flow, "set_7") == encrypted
    assert run(flow, "rotate", "--yes", ODF_NEW_PASSPHRASE="new").exit_code == 0
    assert cipher.decrypt("new", stored(flow, "set_7"), None) == "hush"


def test_rotate_reencrypts_every_password_in_its_own_format_or_none(flow: Flow) -> None:
    flow.register("load: -> raw, tidy, page")
    run(flow, "set", "raw", given="one")
    run(flow, "set", "tidy", "--upstream", given="two")
    before = stored(flow, "raw"), stored(flow, "tidy")
    rehearsed = run(flow, "rotate", "--dry-run", "--json", ODF_NEW_PASSPHRASE="new")
    assert json.loads(rehearsed.output) == {"dry_run": True, "rotated": ["raw", "tidy"]}
    assert (stored(flow, "raw"), stored(flow, "tidy")) == before
    done = run(flow, "rotate", ODF_NEW_PASSPHRASE="new")
    assert (done.exit_code, done.output[:25]) == (0, "Re-encrypted 2 passwords.")
    assert (cipher.is_upstream(stored(flow, "raw")), cipher.is_upstream(stored(flow, "tidy"))) == (False, True)
    assert cipher.decrypt("new", stored(flow, "tidy"), "tidy") == "two"
    run(flow, "rotate", "--upgrade", phrase="new", ODF_NEW_PASSPHRASE="newer")
    assert not cipher.is_upstream(stored(flow, "tidy"))
    flow.type("update dataflow.dataset set encryptedpass = %s where datasetid = 'page'", VECTORS[0][2])
    before = stored(flow, "raw"), stored(flow, "tidy")
    with pytest.raises(SecretUnreadable, match="of DataSet page cannot be decrypted"):
        rotate(flow.ledger, "newer", "newest", by="test")
    assert (stored(flow, "raw"), stored(flow, "tidy")) == before


def test_no_secret_is_in_any_table_in_clear(flow: Flow) -> None:
    flow.register("load: -> raw")
    secret, phrase = "hush-hush-hush", "the-passphrase"
    run(flow, "set", "raw", given=secret, phrase=phrase)
    run(flow, "rotate", phrase=phrase, ODF_NEW_PASSPHRASE="the-new-one")
    tables = flow.psql.execute("select tablename from pg_tables where schemaname = 'dataflow'").fetchall()
    for (table,) in tables:
        text = str(flow.psql.execute(f"select t::text from dataflow.{table} t".encode()).fetchall())
        assert table == "dataset" or "odf1." not in text, "its ciphertext is for the DataSet's row alone"
        assert secret not in text
        assert phrase not in text
        assert "the-new-one" not in text
    assert "ODF_PASSPHRASE" not in os.environ
