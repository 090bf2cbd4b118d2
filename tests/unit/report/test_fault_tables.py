"""Faults summed up: each that hit an instruction is in every table."""

from __future__ import annotations

from typing import Any

from luthier_py.features.faults.report import NO_LINE, PARTS, fault_summary


def row(pc: int | None, line: str | None, effect: str = "masked") -> dict[str, Any]:
    hit = {"instruction": "s_nop", "group": "other"} if pc is not None else {"instruction": None, "group": None}
    return {"model": "flip", "kernel": "k", "pc": pc, "line": line, "effect": effect, "side": "", **hit}


def judged(rows: list[dict[str, Any]], part: str) -> dict[str, int]:
    return {each["name"]: each["judged"] for each in fault_summary(rows, 1)["by"][part]}


def test_code_without_a_line_has_a_row_beside_lines() -> None:
    rows = [row(4, "a.hip:3"), row(8, None, "sdc"), row(8, None), row(None, None, "missed")]
    assert judged(rows, "line") == {NO_LINE: 2, "a.hip:3": 1}
    assert {sum(judged(rows, part).values()) for part in PARTS} == {3}


def test_where_nothing_has_lines_there_is_no_table_of_them() -> None:
    assert judged([row(4, None), row(8, None)], "line") == {}
