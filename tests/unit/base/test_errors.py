"""What goes to a terminal: names out of files cannot control it."""

from __future__ import annotations

import sys

import pytest

from luthier_py.base.errors import Location, LuthierError, printable, printable_lines
from luthier_py.host.worker.error_boundary import say

CONTROLS = [chr(code) for code in (*range(9), *range(11, 32), *range(127, 160), 0x202E, 0x2028, 0xFEFF, 0xD800)]


@pytest.mark.parametrize("control", CONTROLS, ids=[f"{ord(c):x}" for c in CONTROLS])
def test_nothing_controls_a_terminal(control: str, capsys: pytest.CaptureFixture[str]) -> None:
    name = f"a{control}b"
    error = LuthierError(f"no {name}", Location(name, 16, name))
    say(error)
    said = capsys.readouterr().err
    for text in (printable(name), printable_lines(name), str(error), error.message, said.rstrip("\n")):
        assert text.isprintable() and "a\\" in text and "b" in text
        text.encode(sys.stdout.encoding)


def test_names_as_compilers_make_them_stay() -> None:
    for name in ("k[abi:cxx11]", "void f<int>(float*)", "größe_ψ", "a\tb"):
        assert printable(name) == name
    assert printable_lines("a\nb\x1b") == "a\nb\\x1b"
