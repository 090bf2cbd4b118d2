"""The page that every tool with addresses has: its numbers stand where they belong, and are the report's."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from luthier_py import LaunchResult, Mutator, Tool
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented
from luthier_py.program.ir import lift
from luthier_py.report.html import HtmlTable, Page, render
from luthier_py.report.output import write_report
from luthier_py.report.tool_page import tool_page
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import SUM, CountsBy, RowsBy, load_tool
from luthier_py.samples import FOLDER, sample


class Rows(Tool):
    """Reports what it is told to."""

    def report(self, launch: LaunchResult) -> Any:
        return None


def transposed() -> LaunchResult:
    program = lift(load(sample("transpose").path.read_bytes()), ["transpose"])
    return LaunchResult(0, "transpose", (2, 2, 1), (32, 8, 1), {}, program=lambda: program)


def page(report: Any, sources: Path = FOLDER) -> Page:
    found = tool_page(Rows(LUTHIER_SOURCES=sources), transposed(), report)
    assert found is not None
    return found


def cells(table: HtmlTable, column: int) -> dict[str, str]:
    """By the first cell, those that are not empty."""
    return {row.cells[0]: row.cells[column] for row in table.rows if not row.heading and row.cells[column]}


ROWS = {"total": 7, "exact": True, "loads": [
    {"pc": 0x1688, "taken": True, "bytes": 4, "share": 0.5}, {"pc": 0x1688, "taken": False, "bytes": 3, "share": 0.25},
    {"pc": 0x1740, "taken": True, "bytes": 28, "share": 0.125},
]}  # fmt: skip


def test_numbers_stand_at_their_instruction_and_their_line() -> None:
    found = page(ROWS)
    ((source,), (code,)) = found.panes
    assert code.columns == ("pc", "bytes", "share", "instruction")
    assert {("total", "7"), ("exact", "yes")} <= {*found.facts}
    assert cells(code, 1) == {"0x1688": "7", "0x1740": "28"}  # added up
    assert cells(code, 2) == {"0x1740": "0.125"}  # shares of two rows are none of both
    assert cells(source, 1) == {"8": "7", "11": "28"} and source.title == "Source transpose.hip"
    heat = {row.cells[0]: row.heat for row in code.rows if row.heat}
    assert heat == {"0x1688": 0.25, "0x1740": 1.0}
    [table] = found.tables
    assert [row.cells[1:4] for row in table.rows] == [("yes", "4", "0.5"), ("no", "3", "0.25"), ("yes", "28", "0.125")]
    assert [row.link for row in table.rows] == ["pc1688", "pc1688", "pc1740"]
    assert "global_load_dword" in table.rows[0].cells[4] and table.rows[0].cells[5] == "transpose.hip:8"


def test_a_kernels_file_is_before_its_headers() -> None:
    found = page({"rows": [{"pc": pc, "bytes": 4} for pc in (0x1600, 0x1688, 0x1740)]})
    assert [table.title for table in found.panes[0]] == ["Source transpose.hip", "Source device.h"]
    assert cells(found.panes[0][1], 1) == {"16": "4"}


def test_what_cannot_be_shown_is_said(tmp_path: Path) -> None:
    found = page(ROWS, tmp_path)
    assert len(found.panes) == 1 and "Source transpose.hip is not shown" in found.notes[0]
    assert tool_page(Rows(), transposed(), {"opcodes": {"s_nop": 1}, "rows": [], "more": [1, 2]}) is None
    wide = page({"rows": [{"pc": 0x1688, **{f"n{number}": number for number in range(10)}}]})
    assert wide.notes == ["Not shown, but in Rows.json: n8, n9."] and len(wide.panes[1][0].columns) == 10
    elsewhere = page({"rows": [{"pc": 4, "count": 9}]})  # of no instruction that the kernel runs
    assert elsewhere.tables[0].rows[0].link == "" and "<script>" in render(elsewhere)


def test_what_never_happened_is_in_the_listing_alone() -> None:
    found = page({"rows": [{"pc": 0x1688, "loop": "0x1670", "count": 0}, {"pc": 0x1740, "loop": "", "count": 3}]})
    [table] = found.tables
    assert [row.cells[0] for row in table.rows] == ["0x1740"] and "1 row whose numbers are all 0" in table.note
    assert "loop" not in table.columns and cells(found.panes[1][0], 1) == {"0x1688": "0", "0x1740": "3"}
    idle = page({"rows": [{"pc": 0x1688, "count": 0}]}).tables[0]
    assert len(idle.rows) == 1 and idle.note == ""


def test_a_listing_has_loops_and_starts_at_the_hottest() -> None:
    [code] = page({"rows": [{"pc": 0x1688, "count": 5}, {"pc": 0x1740, "count": 3}]}).panes[1]
    named = [row.name for row in code.rows if row.heading and row.cells[0].startswith("loop ")]
    assert named == ["loop1670", "loop1710"] and code.start == "loop1670"
    [code] = page({"rows": [{"pc": 0x1600, "count": 5}]}).panes[1]
    assert code.start == "pc1600"  # in no loop


class Counting(Rows):
    """Declares a histogram, which has as many columns as there are numbers."""

    amounts = {"rows": RowsBy(("pc",), {"times": CountsBy(), "bytes": SUM})}


def test_histograms_leave_room_for_sums() -> None:
    row = {"pc": 0x1688, "times": {str(number): 1 for number in range(9)}, "bytes": 7, "share": {"32": 0.5}}
    found = tool_page(Counting(LUTHIER_SOURCES=FOLDER), transposed(), {"rows": [row]})
    assert found is not None and found.tables[0].columns[:4] == ("pc", "bytes", "share.32", "times.0")


class Own(Rows):
    """Has a page of its own."""

    name = "own"

    def files(self, launch: LaunchResult, report: Any) -> Mapping[str, bytes]:
        return {"own.html": b"mine"}

    def instrument(self, m: Mutator) -> None:
        raise NotImplementedError


def test_a_tool_s_own_page_is_the_one(tmp_path: Path) -> None:
    write_report(Own(), tmp_path, transposed(), ROWS)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("own.html", b"mine")]


@pytest.mark.parametrize("name", ["access_patterns", "branch_edges", "loop_counts", "memory_divergence"])
def test_tools_have_pages(name: str, tmp_path: Path, require_tool: Callable[[str], str]) -> None:
    if name == "memory_divergence":
        require_tool("clang++-22")
    code, tool = sample("transpose").path.read_bytes(), load_tool(name, {"LUTHIER_SOURCES": str(FOLDER)})
    made = instrument(code, tool)
    ran = run_instrumented(EmulatorDevice(made.obj.target), made, tool, launch_of(sample("transpose")))
    assert ran.result is not None
    paths = {path.suffix: path for path in write_report(tool, tmp_path, ran.result, ran.report)}
    text, report = paths[".html"].read_text(), json.loads(paths[".json"].read_text())
    rows = next(value for value in report.values() if isinstance(value, list) and value)
    addresses = {row.get("pc") or row.get("branch") or row["header"] for row in rows}
    shown = {int(address, 16) for address in re.findall(r'<a href="#pc(\w+)">0x\1</a>', text.split('class="panes"')[0])}
    assert shown == addresses and text.count("<h2>Disassembly of transpose") == 1 and "Source transpose.hip" in text


def test_each_of_several_tools_has_a_page(tmp_path: Path) -> None:
    code, tool = sample("transpose").path.read_bytes(), load_tool("branch_edges,loop_counts,instr_count", {})
    made = instrument(code, tool)
    ran = run_instrumented(EmulatorDevice(made.obj.target), made, tool, launch_of(sample("transpose")))
    assert ran.result is not None
    names = {path.name for path in write_report(tool, tmp_path, ran.result, ran.report)}
    assert {name for name in names if name.endswith(".html")} == {"branch_edges.html", "loop_counts.html"}


def test_a_race_stands_at_its_first_instruction() -> None:
    who = {"address": 512, "workgroup": 3, "who": [{"wave": 2, "lane": 0}, {"wave": 0, "lane": 0}]}
    race = {"kind": "write and read", "count": 7, "pc": 0x1688, "other_pc": 0x1740, "first": who,
            "where": [{"pc": 0x1688, "instruction": "", "line": None}]}
    found = page({"races": [race, {**race, "count": 2}]})
    code = found.panes[1][0]
    assert cells(code, 1) == {"0x1688": "9"} and code.columns == ("pc", "count", "instruction")
    [table] = found.tables
    assert table.columns == ("pc", "kind", "count", "other_pc", "first.address", "first.workgroup", "instruction",
                             "source")
    assert table.rows[0].cells[:4] == ("0x1688", "write and read", "7", "0x1740")
