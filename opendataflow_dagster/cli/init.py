"""`odf init`: create a project."""

from __future__ import annotations

import os
import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from opendataflow_dagster.model.errors import InvalidInput

from . import output
from .options import json_option

_NAME = re.compile("[a-z][a-z0-9]*(-[a-z0-9]+)*")
_SUFFIX = ".txt"


@click.command()
@click.argument("folder", metavar="NAME", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="List the files that would be written; write none.")
@json_option
def init(folder: Path, dry_run: bool, json_wanted: bool) -> None:
    """Create a project: two working DataSets, their tests, and everything that `odf dev` needs. Overwrites no files.

    \b
    Example:
      odf init sales
      cd sales && odf dev
    """
    name = folder.name
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"{name!r} is not a valid project name; use lowercase letters, digits and hyphens")
    new_files = {folder / path: text.replace("NAME", name) for path, text in _template().items()}
    _refuse_unwritable(folder)
    if existing := sorted(path for path in new_files if path.exists()):
        raise InvalidInput(f"{existing[0]} already exists; choose another name, or move it away")
    if not dry_run:
        try:
            for path, text in new_files.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InvalidInput(
                f"{error.filename} cannot be written ({error.strerror}); choose another folder, and remove {folder}"
            ) from None
    if json_wanted:
        output.print_json({"dry_run": dry_run, "name": name, "files": [str(path) for path in new_files]})
        return
    output.say(f"{'Would write' if dry_run else 'Wrote'} {output.counted(len(new_files), 'file')} to {folder}. Next:")
    output.say(f"  cd {folder} && odf dev")


def _refuse_unwritable(folder: Path) -> None:
    """The nearest existing parent must be a writable folder."""
    parent = next(path for path in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(path))
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise InvalidInput(f"{parent} is not a writable folder; choose another one")


def _template() -> dict[Path, str]:
    """The files by their path in the project. They are stored as .txt, so that no tool treats them as our own code."""
    template: dict[Path, str] = {}

    def walk(folder: Traversable, path: Path) -> None:
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if entry.is_dir():
                walk(entry, path / entry.name)
            elif entry.name.endswith(_SUFFIX):
                name = entry.name.removesuffix(_SUFFIX)
                template[path / (".gitignore" if name == "gitignore" else name)] = entry.read_text(encoding="utf-8")

    walk(files(__package__).joinpath("template"), Path())
    return template
