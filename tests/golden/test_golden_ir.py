"""The text form of the IR, with live registers, of samples."""

from __future__ import annotations

from pathlib import Path

import pytest
from goldens import HERE, check, goldens, read_golden

from luthier_py.binary.loader import load
from luthier_py.program.analysis import analyse, live_notes
from luthier_py.program.ir import format_program, lift


@pytest.mark.parametrize("path", goldens("ir"), ids=lambda path: path.stem)
def test_text_form(path: Path) -> None:
    (_, name), _ = read_golden(path)
    program = lift(load((HERE.parent / "data" / f"{name}.co").read_bytes(), name))
    check(path, format_program(program, live_notes(analyse(program))))


def test_a_golden_finds_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "wrong.golden"
    path.write_text("; RUN: ir nothing\n; CHECK: a\n; CHECK-NEXT: c\n")
    with pytest.raises(AssertionError, match="Couldn't match \"c\""):
        check(path, "a\nb\nc\n")
