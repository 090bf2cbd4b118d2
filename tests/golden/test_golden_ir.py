"""The text form of the IR, with live registers, for the samples that have a check file here."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_lines import check

from luthier_py.binary.loader import load
from luthier_py.program.analysis import analyse, live_notes
from luthier_py.program.ir import format_program, lift

HERE = Path(__file__).parent
SCRIPTS = sorted(HERE.glob("*.check"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_text_form(script: Path) -> None:
    name = script.stem
    program = lift(load((HERE.parent / "data" / f"{name}.co").read_bytes(), name))
    check(script.read_text(), format_program(program, live_notes(analyse(program))))


@pytest.mark.parametrize(("script", "wrong"), [
    ("CHECK: a\nCHECK-NEXT: c", "not found"), ("CHECK: c\nCHECK: a", "not found"),
    ("CHECK: a\nCHECK-NOT: b\nCHECK: c", "is in"), ("CHECK: {{[x-z]}}", "not found"), ("CHECK-NOT: b", "is in"),
])
def test_the_checker_finds_what_is_wrong(script: str, wrong: str) -> None:
    with pytest.raises(AssertionError, match=wrong):
        check(script, "a\nb\nc")


def test_the_checker_lets_pass_what_is_right() -> None:
    check("CHECK: a\nCHECK-NEXT: {{b.*}} 1\nCHECK-NOT: d\nCHECK: c", "x\na\nbbb   1\nc\nd")
