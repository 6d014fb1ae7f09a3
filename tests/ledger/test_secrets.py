"""Secrets: both formats, where the passphrase comes from, and `odf secret`. No secret is ever in an error."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from opendataflow_dagster.cli.main import odf
from opendataflow_dagster.model.errors import InvalidInput, SecretUnreadable
from opendataflow_dagster.protocol.secret import rotate
from opendataflow_dagster.secrets import cipher
from opendataflow_dagster.secrets.passphrase import VARIABLES, passphrase
from tests.factories import Flow

#: Passphrase, secret, ciphertext; made by upstream's own program.
VECTORS = [
    ("plugh", "mysecret", "bWyH69XYondjzPYw6rQMJmvFIKq4GP91904Ie8EtBSvUV8Sk"),
    ("k", "", "nyL+nQ+Q5cMRD0gXLfeKi4k2pL+R1TPe9Ihz5Q=="),
]


@pytest.fixture
def url(emptied_url: str) -> str:
    return emptied_url


@pytest.fixture(autouse=True)
def _no_passphrase(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


# ---- formats


@pytest.mark.parametrize(("phrase", "secret", "ciphertext"), VECTORS)
def test_what_upstream_encrypted_can_be_read(phrase: str, secret: str, ciphertext: str) -> None:
    assert cipher.decrypt(phrase, ciphertext, None) == secret
    assert cipher.decrypt(phrase, f"{ciphertext[:20]}\n{ciphertext[20:]}\n", "raw") == secret


@pytest.mark.parametrize("secret", ["mysecret", "", "quotes'\"`$(id)\n\u96ea\x00", "x" * 100_000])
def test_what_we_encrypt_can_be_read_again_and_never_looks_the_same(secret: str) -> None:
    made = cipher.encrypt("phrase", secret, "raw")
    assert made.startswith("odf1.19456.2.1.")
    assert cipher.decrypt("phrase", made, "raw") == secret
    assert made != cipher.encrypt("phrase", secret, "raw")
    theirs = cipher.encrypt_as_upstream("phrase", secret)
    assert cipher.is_upstream(theirs)
    assert cipher.decrypt("phrase", theirs, None) == secret


def changed(text: str, place: int) -> str:
    return text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1 :]


def test_a_wrong_phrase_another_dataset_and_any_change_are_noticed() -> None:
    made = cipher.encrypt("phrase", "hush-hush", "raw")
    body = made.rindex(".") + 1
    wrong = [
        ("other", made, "raw"),
        ("phrase", made, "tidy"),
        ("phrase", made.replace(".2.1.", ".3.1."), "raw"),
        ("phrase", changed(made, 16), "raw"),
        ("phrase", changed(made, body), "raw"),
        ("phrase", changed(made, body + 20), "raw"),
        ("phrase", made.replace(".19456.", ".99999999999."), "raw"),
        ("phrase", made.replace("odf1.", "odf1.1."), "raw"),
        ("phrase", "odf1.", "raw"),
        ("other", VECTORS[0][2], "raw"),
        ("phrase", "not base64!", "raw"),
        ("phrase", base64.b64encode(b"short").decode(), "raw"),
    ]
    for phrase, stored, datasetid in wrong:
        with pytest.raises(SecretUnreadable) as refused:
            cipher.decrypt(phrase, stored, datasetid)
        assert "hush" not in str(refused.value)
        assert phrase == "phrase" or phrase not in str(refused.value).replace("another", "")


# ---- where the passphrase comes from


def test_the_passphrase_comes_from_a_variable_a_file_or_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SecretUnreadable, match="set ODF_PASSPHRASE"):
        passphrase()
    monkeypatch.setenv("PASSKEY", "of upstream")
    assert passphrase() == "of upstream"
    monkeypatch.setenv("ODF_PASSPHRASE_COMMAND", "printf 'of a %s' command;id")
    assert passphrase() == "of a command;id", "no shell sees it"
    (tmp_path / "phrase").write_text("of a file \n")
    (tmp_path / "phrase").chmod(0o600)
    monkeypatch.setenv("ODF_PASSPHRASE_FILE", str(tmp_path / "phrase"))
    assert passphrase() == "of a file "
    monkeypatch.setenv("ODF_PASSPHRASE", "of a variable")
    assert passphrase() == "of a variable"


def test_a_file_that_others_can_read_a_missing_one_and_a_failing_command_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "phrase"
    monkeypatch.setenv("ODF_PASSPHRASE_FILE", str(path))
    with pytest.raises(InvalidInput, match="cannot be read"):
        passphrase()
    path.write_text("hush")
    path.chmod(0o640)
    with pytest.raises(InvalidInput, match=r"can be read by others.*chmod 600") as refused:
        passphrase()
    assert "hush" not in str(refused.value)
    path.chmod(0o600)
    path.write_text("hush\nhush\n")
    with pytest.raises(InvalidInput, match="no passphrase of one line"):
        passphrase()
    monkeypatch.delenv("ODF_PASSPHRASE_FILE")
    for command, said in (("false", "ended with 1"), ("/no/such/vault", "does not run"), ("'", "does not run")):
        monkeypatch.setenv("ODF_PASSPHRASE_COMMAND", command)
        with pytest.raises(InvalidInput, match=said):
            passphrase()


@pytest.mark.parametrize("variable", ["ODF_PASSPHRASE", "PASSKEY", "ODF_PASSPHRASE_FILE", "ODF_PASSPHRASE_COMMAND"])
def test_a_passphrase_that_is_no_utf_8_is_one_sentence(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "phrase"
    path.write_bytes(b"caf\xe9\n")
    path.chmod(0o600)
    values = {"ODF_PASSPHRASE_FILE": str(path), "ODF_PASSPHRASE_COMMAND": f"cat {path}"}
    monkeypatch.setenv(variable, values.get(variable, os.fsdecode(b"caf\xe9")))
    with pytest.raises(InvalidInput, match=f"{variable} gives no passphrase in UTF-8") as refused:
        passphrase()
    assert "caf" not in str(refused.value)


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


def test_encrypt_prints_what_the_dataset_can_store_and_upstream_too(flow: Flow) -> None:
    printed = run(flow, "encrypt", "raw", given="hush\n").output.strip()
    assert cipher.decrypt("phrase", printed, "raw") == "hush"
    theirs = json.loads(run(flow, "encrypt", "--upstream", "--json", given="hush").output)["encrypted"]
    assert cipher.is_upstream(theirs)
    assert run(flow, "decrypt", "--ciphertext", theirs).output == "hush\n"
    assert run(flow, "decrypt", "--ciphertext", VECTORS[0][2], phrase="plugh").output == "mysecret\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
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
def test_what_cannot_be_done_is_one_sentence_and_its_code(flow: Flow, words: list[str], code: int, said: str) -> None:
    flow.register("load: -> raw")
    done = run(flow, *words, given="hush")
    assert (done.exit_code, done.stdout) == (code, "")
    assert said in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (b"", "no password on stdin"),
        (b"\n", "no password on stdin"),
        (b"caf\xe9", "the password on stdin is not valid UTF-8"),
        (b"hush\0hush", "contains a NUL character"),
    ],
)
def test_what_is_no_password_is_not_stored(flow: Flow, given: bytes, said: str) -> None:
    flow.register("load: -> raw")
    for words in (["set", "raw"], ["encrypt", "raw"], ["encrypt", "--upstream"]):
        done = run(flow, *words, given=given)
        assert (done.exit_code, done.stdout) == (64, "")
        assert said in done.stderr
    assert stored(flow, "raw") == "None"


@pytest.mark.parametrize("words", [["encrypt"], ["encrypt", "--upstream"], ["decrypt", "--ciphertext", VECTORS[0][2]]])
@pytest.mark.parametrize("name", ["", "a\nb", "x" * 201])
def test_a_secret_is_for_a_name_that_a_dataset_can_have(flow: Flow, words: list[str], name: str) -> None:
    done = run(flow, *words, name, given="hush", phrase="plugh")
    assert (done.exit_code, done.stdout) == (64, "")
    assert "DataSet name" in done.stderr


def test_many_passwords_are_encrypted_anew_only_with_a_yes(flow: Flow) -> None:
    flow.register(f"load: -> {', '.join(f'set_{one}' for one in range(21))}")
    encrypted = cipher.encrypt_as_upstream("phrase", "hush")
    flow.type("update dataflow.dataset set encryptedpass = %s", encrypted)
    asked = run(flow, "rotate", ODF_NEW_PASSPHRASE="new")
    assert (asked.exit_code, asked.stdout) == (64, "")
    assert "this would re-encrypt 21 passwords; check with --dry-run, then pass --yes" in asked.stderr
    assert stored(flow, "set_7") == encrypted
    assert run(flow, "rotate", "--yes", ODF_NEW_PASSPHRASE="new").exit_code == 0
    assert cipher.decrypt("new", stored(flow, "set_7"), None) == "hush"


def test_rotate_changes_every_password_in_the_format_it_has_or_none(flow: Flow) -> None:
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
