"""Both secret formats, and where the passphrase comes from. No secret is ever in an error."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from opendataflow_dagster.model.errors import InvalidInput, SecretUnreadable
from opendataflow_dagster.secrets import cipher
from opendataflow_dagster.secrets.passphrase import VARIABLES, passphrase

#: Passphrase, secret, ciphertext; made by upstream's own program.
VECTORS = [
    ("plugh", "mysecret", "bWyH69XYondjzPYw6rQMJmvFIKq4GP91904Ie8EtBSvUV8Sk"),
    ("k", "", "nyL+nQ+Q5cMRD0gXLfeKi4k2pL+R1TPe9Ihz5Q=="),
]


@pytest.fixture(autouse=True)
def _no_passphrase(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


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
    with pytest.raises(InvalidInput, match=r"is readable by other users.*chmod 600") as refused:
        passphrase()
    assert "hush" not in str(refused.value)
    path.chmod(0o600)
    path.write_text("hush\nhush\n")
    with pytest.raises(InvalidInput, match="the passphrase as exactly one line"):
        passphrase()
    monkeypatch.delenv("ODF_PASSPHRASE_FILE")
    for command, said in (("false", "failed with exit code 1"), ("/no/such/vault", "cannot run"), ("'", "cannot run")):
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
    with pytest.raises(InvalidInput, match=f"the passphrase of {variable} is not UTF-8 text") as refused:
        passphrase()
    assert "caf" not in str(refused.value)
