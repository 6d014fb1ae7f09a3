"""Fingerprints of the code that makes a DataSet. They ignore comments and formatting.

What the code calls is not part of it: helpers, modules, packages, values of variables. Which of them matter is not
guessed; where one does, its author declares a `code_version`.

A fingerprint is compared over years, so it must not depend on the version of Python or of the SQL parser.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from types import FunctionType
from typing import Final

# Facts about the text, or fields that only some versions of Python have.
_IGNORED: Final = frozenset({"ctx", "kind", "type_comment", "type_params"})
#: Enough of a file to see whether it is a text.
_HEAD_BYTES: Final = 1024
_QUOTES: Final = frozenset("'\"`")


def of_function(function: Callable[..., object]) -> str | None:
    """Of its syntax tree, without docstrings, its name and the decorator that declares the DataSet.

    None: its source is not known, as for a function typed into a console, or for a `functools.partial`.
    """
    plain = inspect.unwrap(function)
    if not isinstance(plain, FunctionType):
        return None
    code = plain.__code__
    try:
        lines, _ = inspect.findsource(code)
        nodes = _functions("".join(lines)).get((code.co_name, code.co_firstlineno), [])
    except (OSError, SyntaxError):
        return None
    if len(nodes) != 1:
        return None  # several lambdas on one line
    (node,) = nodes
    if isinstance(node, ast.Lambda):
        return _digest("python", _tree(node))
    parts = [node.args, _without_docstring(node.body), node.decorator_list[1:], type(node) is ast.AsyncFunctionDef]
    return _digest("python", _tree(parts))


def of_query(text: str) -> str:
    """Of the tokens of a SQL text. Keywords and names of functions are the same in upper and lower case."""
    from sqlglot.dialects.spark import Spark

    tokens = [token for token in Spark().tokenize(text) if token.token_type.name != "SEMICOLON"]
    # As they are written: the parser's own words for them are others in each of its versions.
    words = [text[token.start : token.end + 1] for token in tokens]
    parts: list[str] = []
    for token, word, following in zip(tokens, words, [*words[1:], ""], strict=True):
        is_column = token.token_type.name == "VAR" and following != "("
        # Some keywords are two words.
        parts += [word] if is_column or _QUOTES & set(word) else word.upper().split()
    return _digest("sql", parts)


def of_command(command: Sequence[str]) -> str | None:
    """Of the bytes of its script: its first word that is a text file, for `python3` and the like are no scripts.

    Without one, of its program and its words. None: the file cannot be read.
    """
    try:
        for word in command:
            if (path := Path(word)).is_file() and not _is_compiled(path):
                return _digest("script", [_bytes_of(path)])
        return _digest("script", [_bytes_of(Path(command[0])), *command[1:]])
    except OSError:
        return None


def _digest(kind: str, parts: Iterable[str]) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part.encode(errors="surrogatepass") + b"\x00")
    return f"{kind}:{found.hexdigest()[:16]}"


@lru_cache(maxsize=64)
def _functions(source: str) -> dict[tuple[str, int], list[ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda]]:
    """By name and first line, where a decorator comes before its function."""
    found: dict[tuple[str, int], list[ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda]] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min(line.lineno for line in (node, *node.decorator_list))
            found.setdefault((node.name, first), []).append(node)
        elif isinstance(node, ast.Lambda):
            found.setdefault(("<lambda>", node.lineno), []).append(node)
    return found


def _tree(node: object) -> Iterator[str]:
    """The nodes with their fields, as far as they are set. `ast.dump` differs between versions of Python."""
    if isinstance(node, ast.AST):
        yield type(node).__name__
        body = {"body": _without_docstring(node.body)} if isinstance(node, _WITH_DOCSTRING) else {}
        for name, value in ast.iter_fields(node):
            if name not in _IGNORED and value is not None and value != []:
                yield name
                yield from _tree(body.get(name, value))
        yield ")"
    elif isinstance(node, list):
        for item in node:
            yield from _tree(item)
        yield "]"
    else:
        yield ascii(node)


_WITH_DOCSTRING: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    match body:
        case [ast.Expr(value=ast.Constant(value=str())), *rest]:
            return rest
    return body


def _is_compiled(path: Path) -> bool:
    with path.open("rb") as file:
        return b"\x00" in file.read(_HEAD_BYTES)


def _bytes_of(path: Path) -> str:
    """A digest of the file, which is read again only when it has changed."""
    state = path.stat()
    return _file_digest(str(path), state.st_ino, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=64)
def _file_digest(path: str, inode: int, size: int, modified: int) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
