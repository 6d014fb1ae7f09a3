"""`odf secret`: passwords of DataSets, read from stdin or a prompt, never from an argument."""

from __future__ import annotations

import sys

import click

from opendataflow_dagster.model.errors import InvalidInput

from .arguments import dataset_argument
from .connection import open_ledger
from .groups import LazyGroup
from .options import Change, change_options, exit_with_answer, json_option
from .output import counted, print_json, print_result, say, table

_upstream = click.option("--upstream", is_flag=True, help="Use upstream's weaker format, for upstream clients.")


@click.group(cls=LazyGroup)
def secret() -> None:
    """Manage passwords of DataSets. The ledger stores them encrypted and never sees the passphrase.

    The passphrase comes from ODF_PASSPHRASE (or upstream's PASSKEY), ODF_PASSPHRASE_FILE (file mode 0600) or
    ODF_PASSPHRASE_COMMAND.

    \b
    Example:
      odf secret set orders
      odf secret verify
    """


@secret.command(name="set")
@dataset_argument
@_upstream
@change_options
def set_(change: Change, datasetid: str, upstream: bool) -> None:
    """Store the password of a DataSet, read from stdin or a prompt.

    \b
    Example:
      odf secret set orders
      vault read -field=password db/orders | odf secret set orders
    """
    from opendataflow_dagster.protocol import secret as verbs
    from opendataflow_dagster.secrets.passphrase import passphrase

    phrase = passphrase()
    with change.ledger() as ledger:
        verbs.set_secret(
            ledger, datasetid, _read(), phrase, as_upstream=upstream, by=ledger.actor, reason=change.reason
        )
    change.report({"datasetid": datasetid}, f"Stored the password of DataSet {datasetid}.")


@secret.command()
@click.argument("datasetid", metavar="[DATASET]", required=False)
@_upstream
@json_option
def encrypt(datasetid: str | None, upstream: bool, json_wanted: bool) -> None:
    """Encrypt a password for a DataSet and print the ciphertext. Stores nothing.

    \b
    Example:
      odf secret encrypt orders
      odf secret encrypt --upstream < password.txt
    """
    from opendataflow_dagster.model.ids import dataset_id
    from opendataflow_dagster.secrets import cipher
    from opendataflow_dagster.secrets.passphrase import passphrase

    phrase = passphrase()
    if datasetid is not None:
        dataset_id(datasetid)
    if upstream:
        ciphertext = cipher.encrypt_as_upstream(phrase, _read())
    elif datasetid is None:
        raise InvalidInput("missing DATASET: a secret is bound to its DataSet; pass one, or use --upstream")
    else:
        ciphertext = cipher.encrypt(phrase, _read(), datasetid)
    print_result(json_wanted, {"datasetid": datasetid, "encrypted": ciphertext}, ciphertext)


@secret.command()
@click.argument("datasetid", metavar="[DATASET]", required=False)
@click.option("--ciphertext", metavar="TEXT", help="Decrypt this text instead of the stored password.")
@json_option
def decrypt(datasetid: str | None, ciphertext: str | None, json_wanted: bool) -> None:
    """Print the password of a DataSet in clear text.

    \b
    Example:
      odf secret decrypt orders
      odf secret decrypt --ciphertext 'bWyH69XYondjzPYw6rQMJmvFIKq4GP91904Ie8EtBSvUV8Sk'
    """
    from opendataflow_dagster.insight.secrets import stored_ciphertext
    from opendataflow_dagster.model.ids import dataset_id
    from opendataflow_dagster.secrets import cipher
    from opendataflow_dagster.secrets.passphrase import passphrase

    phrase = passphrase()
    if ciphertext is None:
        if datasetid is None:
            raise InvalidInput("missing DATASET: pass one, or use --ciphertext")
        with open_ledger() as ledger:
            ciphertext = stored_ciphertext(ledger, datasetid)
    clear = cipher.decrypt(phrase, ciphertext, None if datasetid is None else dataset_id(datasetid))
    print_result(json_wanted, {"datasetid": datasetid, "password": clear}, clear)


@secret.command()
@click.option(
    "--upgrade", is_flag=True, help="Also convert upstream's format to ours, which upstream clients cannot read."
)
@change_options
def rotate(change: Change, upgrade: bool) -> None:
    """Re-encrypt all stored passwords with a new passphrase, in one transaction.

    The new passphrase comes from ODF_NEW_PASSPHRASE, ODF_NEW_PASSPHRASE_FILE, ODF_NEW_PASSPHRASE_COMMAND or a prompt.

    \b
    Example:
      odf secret rotate --dry-run
      ODF_NEW_PASSPHRASE_FILE=~/new odf secret rotate
    """
    from opendataflow_dagster.insight.secrets import count_secrets
    from opendataflow_dagster.protocol import secret as verbs
    from opendataflow_dagster.secrets import passphrase as passphrases

    old = passphrases.passphrase()
    new = passphrases.find(passphrases.NEW_VARIABLE) or _prompt("New passphrase", passphrases.NEW_VARIABLE)
    with change.ledger() as ledger:
        stored = count_secrets(ledger)
        change.confirm(stored, f"re-encrypt {stored:,} passwords")
        rotated = verbs.rotate(ledger, old, new, upgrade=upgrade, by=ledger.actor, reason=change.reason)
    change.report(
        {"rotated": rotated},
        f"Re-encrypted {counted(len(rotated), 'password')}. Now give the new passphrase to everyone who runs scripts, "
        f"and re-encrypt the password in dataflow.properties if you use one.",
    )


@secret.command()
@json_option
def verify(json_wanted: bool) -> None:
    """Check that the passphrase decrypts every stored password. Exits with 1 if not; shows none.

    \b
    Example:
      odf secret verify
    """
    from opendataflow_dagster.insight.secrets import verify_secrets
    from opendataflow_dagster.secrets.passphrase import passphrase

    phrase = passphrase()
    with open_ledger() as ledger:
        checked = verify_secrets(ledger, phrase)
    all_readable = all(secret.readable for secret in checked)
    if json_wanted:
        print_json({"ok": all_readable, "secrets": checked})
    elif checked:
        table(
            ("DataSet", "format", "readable"),
            [(secret.datasetid, secret.format, "yes" if secret.readable else ("NO", "red")) for secret in checked],
        )
    else:
        say("No DataSet has a stored password.")
    exit_with_answer(all_readable)


def _read() -> str:
    """Everything but a final newline from a pipe; a confirmed prompt on a terminal."""
    if sys.stdin.isatty():
        return _prompt("Password", "stdin")
    try:
        text = sys.stdin.buffer.read().decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise InvalidInput("the password on stdin is not valid UTF-8; convert it") from None
    if not text:
        # Most likely the command before the pipe failed: `vault ... | odf secret set`.
        raise InvalidInput("no password on stdin; check the command that should print it")
    if "\0" in text:
        raise InvalidInput("the password contains a NUL character, which cannot be passed to a script; remove it")
    return text


def _prompt(label: str, alternative: str) -> str:
    if not sys.stdin.isatty():
        raise InvalidInput(f"cannot prompt for the {label.lower()} without a terminal; pass it in {alternative}")
    typed: str = click.prompt(label, hide_input=True, confirmation_prompt=True, err=True)
    return typed
