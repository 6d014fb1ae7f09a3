"""`odf secret`: passwords of DataSets. They come from stdin or a prompt, never from an argument."""

from __future__ import annotations

import sys

import click

from opendataflow_dagster.model.errors import InvalidInput

from .arguments import dataset_argument
from .options import Act, acts, answer, as_json, open_ledger
from .output import print_json, say, table

_upstream = click.option("--upstream", is_flag=True, help="In upstream's format, for its own clients; weaker.")


@click.group()
def secret() -> None:
    """The passwords that DataSets have in the ledger, encrypted with a passphrase that it never sees.

    The passphrase comes from ODF_PASSPHRASE (or upstream's PASSKEY), ODF_PASSPHRASE_FILE (a file of mode 0600) or
    ODF_PASSPHRASE_COMMAND.

    \b
    Example:
      odf secret set orders
      odf secret verify
    """


@secret.command(name="set")
@dataset_argument
@_upstream
@acts
def set_(act: Act, datasetid: str, upstream: bool) -> None:
    """Store the password of a DataSet; it is read from stdin, or asked for.

    \b
    Example:
      odf secret set orders
      vault read -field=password db/orders | odf secret set orders
    """
    from opendataflow_dagster.protocol import secret as verbs
    from opendataflow_dagster.secrets.passphrase import passphrase

    phrase = passphrase()
    with act.ledger() as ledger:
        verbs.set_secret(ledger, datasetid, _read(), phrase, as_upstream=upstream, by=ledger.actor, reason=act.reason)
    act.report({"datasetid": datasetid}, f"the password of {datasetid} is stored")


@secret.command()
@click.argument("datasetid", metavar="[DATASET]", required=False)
@_upstream
@as_json
def encrypt(datasetid: str | None, upstream: bool, json_wanted: bool) -> None:
    """Encrypt a password for a DataSet and print what may be stored; nothing is changed.

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
        made = cipher.encrypt_as_upstream(phrase, _read())
    elif datasetid is None:
        raise InvalidInput("a secret belongs to a DataSet; name it, or say --upstream")
    else:
        made = cipher.encrypt(phrase, _read(), datasetid)
    if json_wanted:
        print_json({"datasetid": datasetid, "encrypted": made})
    else:
        click.echo(made)


@secret.command()
@click.argument("datasetid", metavar="[DATASET]", required=False)
@click.option("--ciphertext", metavar="TEXT", help="This one, instead of the one in the ledger.")
@as_json
def decrypt(datasetid: str | None, ciphertext: str | None, json_wanted: bool) -> None:
    """Print the password of a DataSet in clear.

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
            raise InvalidInput("name the DataSet whose password you want, or give a --ciphertext")
        with open_ledger() as ledger:
            ciphertext = stored_ciphertext(ledger, datasetid)
    clear = cipher.decrypt(phrase, ciphertext, None if datasetid is None else dataset_id(datasetid))
    if json_wanted:
        print_json({"datasetid": datasetid, "password": clear})
    else:
        click.echo(clear)


@secret.command()
@click.option("--upgrade", is_flag=True, help="Also turn upstream's format into ours, which its clients cannot read.")
@acts
def rotate(act: Act, upgrade: bool) -> None:
    """Encrypt every stored password with a new passphrase, all or nothing.

    The new one comes from ODF_NEW_PASSPHRASE, ODF_NEW_PASSPHRASE_FILE, ODF_NEW_PASSPHRASE_COMMAND or a prompt.

    \b
    Example:
      odf secret rotate --dry-run
      ODF_NEW_PASSPHRASE_FILE=~/new odf secret rotate
    """
    from opendataflow_dagster.insight.secrets import count_secrets
    from opendataflow_dagster.protocol import secret as verbs
    from opendataflow_dagster.secrets import passphrase as passphrases

    old = passphrases.passphrase()
    new = passphrases.find(passphrases.NEW_VARIABLE) or _ask("New passphrase", passphrases.NEW_VARIABLE)
    with act.ledger() as ledger:
        stored = count_secrets(ledger)
        act.confirm(stored, f"encrypt {stored:,} passwords anew")
        done = verbs.rotate(ledger, old, new, upgrade=upgrade, by=ledger.actor, reason=act.reason)
    act.report(
        {"rotated": done},
        f"{len(done)} passwords are encrypted with the new passphrase; give it to everyone who runs scripts, "
        f"and encrypt that of dataflow.properties anew if you have one",
    )


@secret.command()
@as_json
def verify(json_wanted: bool) -> None:
    """Try the passphrase on every stored password; exit with 1 if one cannot be read. None is shown.

    \b
    Example:
      odf secret verify
    """
    from opendataflow_dagster.insight.secrets import verify_secrets
    from opendataflow_dagster.secrets.passphrase import passphrase

    phrase = passphrase()
    with open_ledger() as ledger:
        found = verify_secrets(ledger, phrase)
    if json_wanted:
        print_json({"ok": all(one.readable for one in found), "secrets": found})
    elif found:
        table(
            ("DataSet", "format", "passphrase"),
            [(one.datasetid, one.format, "fits" if one.readable else ("DOES NOT FIT", "red")) for one in found],
        )
    else:
        say("No DataSet has a stored password.")
    answer(all(one.readable for one in found))


def _read() -> str:
    """From a pipe all of it but one line end; from a person, twice."""
    if sys.stdin.isatty():
        return _ask("Password", "stdin")
    try:
        text = sys.stdin.buffer.read().decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise InvalidInput("the password is no UTF-8 text; give it as that") from None
    if not text:
        # What was to give it has failed, most likely: `vault ... | odf secret set` goes on with nothing.
        raise InvalidInput("there is no password on stdin; look at what should have given it")
    if "\0" in text:
        raise InvalidInput("the password holds a NUL character, which no script could be given; remove it")
    return text


def _ask(what: str, otherwise: str) -> str:
    if not sys.stdin.isatty():
        raise InvalidInput(f"there is nobody to ask for the {what.lower()}; give it by {otherwise}")
    said: str = click.prompt(what, hide_input=True, confirmation_prompt=True, err=True)
    return said
