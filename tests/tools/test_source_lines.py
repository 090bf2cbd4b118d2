"""Every report by source line has the instructions of that line, wherever blocks begin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from luthier_py import LaunchResult
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented, run_original
from luthier_py.program.analysis import source_lines
from luthier_py.program.ir import lift
from luthier_py.report.tallies import LINES, tally
from luthier_py.report.tool_page import tool_page
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import Tool, load_tool
from luthier_py.samples import FOLDER, sample
from luthier_py.tools.script import Script

NAMES = "transpose", "reduce_padded"  # blocks with several lines, and such as begin without one
LOOPS = {"transpose": {"transpose.hip:7", "transpose.hip:10"}, "reduce_padded": {"reduce_padded.hip:10"}}
UNKNOWN = ("", "?", "no source line")


@cache
def executed(name: str) -> Mapping[str, int]:
    """By line, as the emulator counts instructions."""
    code, device = sample(name).path.read_bytes(), EmulatorDevice(load(sample(name).path).target)
    run_original(device, code, launch_of(sample(name)))
    lines, found = source_lines(load(sample(name).path)), Counter[str]()
    for pc, count in device.profile.counts.items():
        found[without_folder(lines.text_at(pc) or "")] += count
    return found


def without_folder(line: str) -> str:
    return "" if line in UNKNOWN else line.rpartition("/")[2]


def ran(name: str, tool: Tool) -> tuple[Any, LaunchResult]:
    code = sample(name).path.read_bytes()
    made = instrument(code, tool)
    after = run_instrumented(EmulatorDevice(made.obj.target), made, tool, launch_of(sample(name)))
    assert after.result is not None
    return after.report, after.result


def test_samples_have_what_is_asked_for() -> None:
    for name in NAMES:
        program = lift(load(sample(name).path))
        lines = source_lines(program.obj)
        blocks = [[lines.at(instr.pc) for instr in block.instrs] for f in program.functions for block in f.blocks]
        assert any(len({*block}) > 1 for block in blocks) and any(block[0] is None and any(block) for block in blocks)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("tool", "number"), [
    ("hot_blocks", "instructions"), ("roofline", "instructions"), ("branch_divergence", "executions"),
])  # fmt: skip
def test_tools_count_the_instructions_of_a_line(tool: str, number: str, name: str) -> None:
    made = load_tool(tool, {})
    report, _ = ran(name, made)
    found, expected = Counter[str](), executed(name)
    for row in report["lines"]:
        found[without_folder(row["source"])] += row[number]
    if tool == "roofline":  # what has no line stands between some there
        found, expected = ({line: n for line, n in each.items() if "-" not in line} for each in (found, expected))
        assert all(found[line] >= n for line, n in expected.items() if line)
        return
    assert +found == expected
    of_lines = {key.thing: n for key, n in tally([report], amounts=made.amounts).items()
                if key.section == LINES and key.number == number}
    assert of_lines == {line: n for line, n in expected.items() if line}


@pytest.mark.parametrize("text", [
    "block: sum(instructions, by=line)", "block: sum(instructions, by=(line, function))",
    "block: sum(instructions, by=(line, wave))", 'on("index >= 0"): count(by=line)',
])  # fmt: skip
@pytest.mark.parametrize("name", NAMES)
def test_scripts_sum_the_instructions_of_a_line(name: str, text: str) -> None:
    report, _ = ran(name, Script(text))
    found = Counter[str]()
    for row in report["tables"][0]["rows"]:
        found[without_folder(row["line"])] += row["sum" if "sum" in text else "count"]
    assert found == executed(name)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_block_does_once_is_at_its_first_line(name: str) -> None:
    """Each block is one, however many lines it has."""
    by_line, _ = ran(name, Script("block: count(by=line)"))
    whole, _ = ran(name, Script("block: count()"))
    rows = by_line["tables"][0]["rows"]
    assert sum(row["count"] for row in rows) == whole["tables"][0]["rows"][0]["count"]
    assert {without_folder(row["line"]) for row in rows} <= {*executed(name)}


@pytest.mark.parametrize("name", NAMES)
def test_loops_are_at_their_own_line(name: str) -> None:
    """That of `for`, and not the one at which the header's block begins."""
    counted, _ = ran(name, load_tool("loop_counts", {}))
    assert {without_folder(row["source"]) for row in counted["loops"]} == LOOPS[name]
    turns, _ = ran(name, Script("loop: count(by=line)"))
    assert {row["line"]: row["count"] for row in turns["tables"][0]["rows"]} == {
        without_folder(row["source"]): row["turns"] for row in counted["loops"]}  # fmt: skip


def test_a_page_shows_instructions_at_their_lines() -> None:
    tool = load_tool("hot_blocks", {"LUTHIER_SOURCES": str(FOLDER)})
    report, result = ran("transpose", tool)
    page = tool_page(tool, result, report)
    assert page is not None
    for table in page.panes[0]:
        file = table.title.removeprefix("Source ")
        assert table.columns == ("line", "instructions", "text")
        assert {f"{file}:{row.cells[0]}": int(row.cells[1]) for row in table.rows if row.cells[1]} == {
            line: n for line, n in executed("transpose").items() if line.startswith(f"{file}:")}  # fmt: skip
