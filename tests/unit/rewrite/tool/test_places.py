"""What tools leave out, as lines for people: one for each reason, of no great length."""

from __future__ import annotations

from luthier_py.rewrite.tool import left_out_lines, loop_of
from luthier_py.rewrite.tool.records.places import NAMED, InstrPlace


def test_a_reason_names_some_instructions() -> None:
    rows = [{"why": "it is wide", "instruction": f"load{number:02}", "function": "k"} for number in range(NAMED + 3)]
    [line] = left_out_lines(rows)
    assert line.startswith("  left out, as it is wide: load00, load01")
    assert line.endswith(f"load{NAMED - 1:02} and 3 more")
    assert list(left_out_lines(rows[:2])) == ["  left out, as it is wide: load00, load01"]


def test_a_loop_stands_for_a_source_that_is_not_known() -> None:
    known, unknown = (InstrPlace(16, "s_nop 0", "k", line, 8).row() for line in ("k.hip:3", None))
    assert (known["loop"], unknown["loop"]) == ("0x8", "0x8")
    assert (loop_of(known), loop_of(unknown)) == ("", "0x8")
    assert InstrPlace(16, "s_nop 0", "k", None).row()["loop"] == ""
