"""What a command prints on a real terminal, as a picture."""

from __future__ import annotations

import fcntl
import io
import os
import re
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from tests.ledger.test_cli_db import ODF

#: A picture loads nothing, so a monospaced font of the reader's system draws it.
_FONTS = re.compile(r"@font-face \{\{.*?\}\}\n", re.DOTALL)
_SVG = _FONTS.sub("", CONSOLE_SVG_FORMAT).replace(
    "Fira Code, monospace", "Menlo, Consolas, DejaVu Sans Mono, monospace"
)


def printed_on_terminal(words: Sequence[str], width: int, environment: Mapping[str, str]) -> str:
    """What `odf` prints on a terminal of this width, with its colours."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    with subprocess.Popen(
        [*ODF, *words], stdin=theirs, stdout=theirs, stderr=theirs, env={**environment, "TERM": "xterm-256color"}
    ):
        os.close(theirs)
        printed = b""
        try:
            while part := os.read(ours, 65_536):
                printed += part
        except OSError:
            pass  # the other end was closed
    os.close(ours)
    return printed.decode().replace("\r\n", "\n").strip("\n")


def terminal_picture(
    path: Path, commands: Sequence[Sequence[str]], *, width: int, environment: Mapping[str, str]
) -> None:
    console = Console(record=True, width=width, file=io.StringIO())
    for place, words in enumerate(commands):
        console.print(Text(f"{'' if place == 0 else chr(10)}$ odf {' '.join(words)}", style="bold"))
        console.print(Text.from_ansi(printed_on_terminal(words, width, environment)))
    path.write_text(console.export_svg(title="odf", code_format=_SVG, unique_id="odf"))
