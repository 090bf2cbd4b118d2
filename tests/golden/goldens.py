"""Goldens: a stage's input as text, and what it is to make of it as CHECK lines of LLVM's FileCheck.

In: a file whose first line is `; RUN: STAGE WORD ...`; lines that begin with a semicolon are for readers and for
FileCheck. Out: these words, and the input; AssertionError with FileCheck's words where a text is another.
"""

from __future__ import annotations

from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser

HERE = Path(__file__).parent


def goldens(room: str) -> list[Path]:
    return sorted((HERE / room).glob("*.golden"))


def read_golden(path: Path) -> tuple[list[str], str]:
    first, *lines = path.read_text().splitlines(keepends=True)
    assert first.startswith("; RUN: ")
    return first.removeprefix("; RUN: ").split(), "".join(line for line in lines if not line.startswith(";"))


def check(path: Path, text: str) -> None:
    """As `filecheck PATH` does with the text as its input."""
    options, words = Options(str(path)), StringIO()
    with redirect_stderr(words):
        failed = Matcher(options, FInput("the text", text), Parser.from_opts(options)).run()
    assert not failed, f"{words.getvalue()}\nThe whole text:\n{text}"
