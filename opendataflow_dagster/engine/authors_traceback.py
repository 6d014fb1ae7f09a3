"""The traceback of a failed chunk as its author needs it: the lines of the author's files, and what was wrong there.

Frames of this framework, of Spark and of Python itself are left out, and so are the pages of the JVM. A function that
Spark runs in its own workers has its frames in the text of the error, and a lazy column that fails has its line there.
"""

from __future__ import annotations

import inspect
import re
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from ..model.paths import in_project

_FRAMEWORK: Final = Path(__file__).parents[1]
_PYTHON: Final = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})
#: Packages between the author's code and the error, as they are installed.
_BETWEEN: Final = re.compile(r"(?:-packages|/python|\.zip)/(?:pyspark|py4j|dagster|dagster_[a-z]+)/")
_WORKER_FRAME: Final = re.compile(r'^ *File "([^"]+)", line (\d+), in (.+)\n((?:    .*\n)*)', re.MULTILINE)
_CALL_SITE: Final = re.compile(r'^"(.+)" was called from\n(.+):(\d+)$', re.MULTILINE)
_WORKER_ERROR: Final = re.compile(r"^[\w.]+(?:Error|Exception|Warning|Interrupt|Exit)?: .*", re.MULTILINE)
#: Where the pages of the JVM and of the query begin.
_PAGES: Final = re.compile(r"\n(?:\s*at |\s*==|\s*JVM stacktrace|\s*Driver stacktrace|\s*Traceback \(most|'?\w+ \[)")
_MOST_CHARACTERS: Final = 2000
_NOTE: Final = '  File "'


def authors_traceback(error: BaseException) -> str | None:
    """None: no line of the author's files was involved."""
    chain = _chain(error)
    shown = [(cause, frames) for cause in chain if (frames := [*_frames(cause), *_reported_frames(cause)])]
    if not shown:
        # Spark failed long after the author's function has returned.
        notes = [note for cause in chain for note in getattr(cause, "__notes__", ()) if note.startswith(_NOTE)]
        shown = [(chain[0], [f"{note}\n"]) for note in notes[:1]]
    if not shown:
        return None
    return "\nThat led to:\n\n".join(
        f"Traceback (most recent call last):\n{''.join(frames)}{_message(cause)}\n" for cause, frames in shown
    ).rstrip("\n")


def note_function(error: BaseException, function: Callable[..., object]) -> None:
    """The function that returned what failed later."""
    if (code := getattr(inspect.unwrap(function), "__code__", None)) is not None:
        place = f'{_NOTE}{in_project(code.co_filename)}", line {code.co_firstlineno}, in {code.co_name}'
        error.add_note(f"{place}: what it returned could not be written")


def _chain(error: BaseException) -> list[BaseException]:
    """The error and what caused it, the first cause first."""
    chain: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in chain:
        chain.append(following)
        following = following.__cause__ or (None if following.__suppress_context__ else following.__context__)
    return chain[::-1]


def _frames(error: BaseException) -> Iterator[str]:
    for frame in traceback.extract_tb(error.__traceback__):
        if _is_authors(frame.filename):
            yield _frame(frame.filename, frame.lineno or 0, f"in {frame.name}", frame.line or "")


def _reported_frames(error: BaseException) -> Iterator[str]:
    """What Spark reports from its Python workers, and of the lazy columns of a query."""
    if not _is_of_spark(error):
        return
    text = str(error)
    # The text may have the same traceback twice.
    for file, line, name, code in dict.fromkeys(_WORKER_FRAME.findall(text)):
        if _is_authors(file):
            yield _frame(file, int(line), f"in {name}", code.partition("\n")[0].strip())
    for call, file, line in _CALL_SITE.findall(text):
        if _is_authors(file):
            yield _frame(file, int(line), f"where the column was built by {call}", "")


def _frame(file: str, line: int, where: str, code: str) -> str:
    return f'  File "{in_project(file)}", line {line}, {where}\n' + (f"    {code}\n" if code else "")


def _is_authors(file: str) -> bool:
    path = Path(file)
    if file.startswith("<") or path.is_relative_to(_FRAMEWORK) or _BETWEEN.search(file):
        return False
    return "site-packages" in path.parts or not any(path.is_relative_to(folder) for folder in _PYTHON)


def _message(error: BaseException) -> str:
    """The last lines of a traceback: its kind, and what it says, without pages of the JVM."""
    text = str(error).strip()
    if _is_of_spark(error):
        if "Traceback (most recent call last)" in text and (errors := _WORKER_ERROR.findall(text)):
            return str(errors[-1])[:_MOST_CHARACTERS]
        text = _PAGES.split(text, maxsplit=1)[0].strip()
    kind = type(error)
    name = kind.__name__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__name__}"
    return f"{name}: {text[:_MOST_CHARACTERS]}" if text else name


def _is_of_spark(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j")
