"""`odf init`: a project of one's own."""

from __future__ import annotations

import os
import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from opendataflow_dagster.model.errors import InvalidInput

from . import output
from .options import as_json

_NAME = re.compile("[a-z][a-z0-9]*(-[a-z0-9]+)*")
_SUFFIX = ".txt"


@click.command()
@click.argument("folder", metavar="NAME", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Say which files would be written, and write none.")
@as_json
def init(folder: Path, dry_run: bool, json_wanted: bool) -> None:
    """Make a new project: two DataSets that work, their tests, and all that `dagster dev` needs. Overwrites nothing.

    \b
    Example:
      odf init sales
      cd sales && pip install -e '.[dev]' && odf schema install && dagster dev
    """
    name = folder.name
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"{name!r} cannot be the name of a project; use small letters, digits and - between them")
    made = {folder / path: text.replace("NAME", name) for path, text in _template().items()}
    _refuse_unwritable(folder)
    if there := sorted(path for path in made if path.exists()):
        raise InvalidInput(f"{there[0]} is there already; choose another name, or move it away")
    if not dry_run:
        try:
            for path, text in made.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InvalidInput(
                f"{error.filename} cannot be written ({error.strerror}); choose another place, and remove what is there"
            ) from None
    if json_wanted:
        output.print_json({"dry_run": dry_run, "name": name, "files": [str(path) for path in made]})
        return
    output.say(f"{'Would write' if dry_run else 'Wrote'} {output.counted(len(made), 'file')} into {folder}. Then:")
    output.say(f"  cd {folder} && pip install -e '.[dev]' && odf schema install && dagster dev")


def _refuse_unwritable(folder: Path) -> None:
    """The nearest place above that exists must be a folder that one may write into."""
    there = next(one for one in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(one))
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise InvalidInput(f"{there} is no folder that you may write into; choose another place")


def _template() -> dict[Path, str]:
    """The files, by their path in the project. They are stored as text, so that no tool takes them for ours."""
    found: dict[Path, str] = {}

    def walk(folder: Traversable, path: Path) -> None:
        for one in sorted(folder.iterdir(), key=lambda each: each.name):
            if one.is_dir():
                walk(one, path / one.name)
            elif one.name.endswith(_SUFFIX):
                name = one.name.removesuffix(_SUFFIX)
                found[path / (".gitignore" if name == "gitignore" else name)] = one.read_text(encoding="utf-8")

    walk(files(__package__).joinpath("template"), Path())
    return found
