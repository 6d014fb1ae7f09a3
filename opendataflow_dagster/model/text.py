"""Text for people."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from itertools import islice
from reprlib import Repr

_NAMES = "password|passwd|passphrase|pwd|secret|token"
_PASSWORDS = re.compile(
    rf"""(?ix) ( :// [^/\s:@]* : ) [^\s/@]+ (?=@)                    # of a URL
           | ( (?:{_NAMES}) \s* = \s* (?!=) ["']? ) [^\s,;&)"'{{]+   # password=...
           | ( ["'] (?:{_NAMES}) ["'] \s* : \s* ["'] ) [^"']+       # "password": "..."
    """
)
_repr = Repr()
_repr.maxstring = _repr.maxlong = _repr.maxother = 60
_repr.maxlevel = 3


def listing(items: Collection[object], shown: int = 3, separator: str = ", ") -> str:
    """The first items, and how many more there are: `a, b, c and 7 more`."""
    text = separator.join(str(item) for item in islice(items, shown))
    if len(items) <= shown:
        return text
    comma = "" if separator == ", " else separator.rstrip()
    return f"{text}{comma} and {len(items) - shown:,} more"


def nearest(name: str, known: Iterable[str], *, likeness: float = 0.6) -> list[str]:
    """At most three known names that a person may have meant, best first. `likeness` is 1 for equal names."""
    names = {each.casefold(): each for each in known if each != name}
    typed = name.casefold()
    close = get_close_matches(typed, names, n=3, cutoff=likeness)
    if not close and len(typed) > 2:
        close = [each for each in names if typed in each][:3]
    return [names[each] for each in close]


def did_you_mean(name: str, known: Iterable[str], otherwise: str, *, likeness: float = 0.6) -> str:
    """`did you mean a, b or c?`; `otherwise`, the next step, if no known name is like it."""
    *others, last = nearest(name, known, likeness=likeness) or [""]
    if not last:
        return otherwise
    return f"did you mean {', '.join(others)}{' or ' if others else ''}{last}?"


def counted(number: int, noun: str) -> str:
    """`1 row`, `1,000 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def masked(text: str) -> str:
    """Passwords in URLs and in settings such as `password=...` become `***`."""
    return _PASSWORDS.sub(lambda found: f"{''.join(part for part in found.groups() if part)}***", text)


def brief(value: object) -> str:
    """Its repr, for an error message: short, however long or deep it is."""
    return _repr.repr(value)


def escaped(text: str, keep: str = "") -> str:
    """Characters that control a terminal, are invisible or reverse the text become visible, such as `\\x1b`."""
    return "".join(character if character in keep else _escaped(character) for character in text)


def printable(text: str) -> str:
    """On one line, and escaped. A text may come from any client: it must not control a terminal or break a row."""
    if text.isprintable():
        return text
    return escaped(" ".join(text.split()))


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    return " " if unicodedata.category(character) == "Zs" else character.encode("unicode_escape").decode()
