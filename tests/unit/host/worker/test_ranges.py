"""Roctx ranges of programs: which launches they choose, and what is said of those that are in them."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from loaded_command import run_luthier

from luthier_py.base.errors import Invalid
from luthier_py.features.settings.levels import choose_level
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import FOLDER

HostProgram = Callable[..., Path]
Tooled = Callable[..., Any]
Counted = Callable[..., list[dict[str, Any]]]
CODE = FOLDER / "saxpy.co"
ROOT = Path(__file__).parents[4]
LINKED = "-Wl,--no-as-needed", "-l:libroctx64.so.4"
GLOBAL = *LINKED, "-DGLOBAL", "-ldl"
OPENED = '-DOPENED="librocprofiler-sdk-roctx.so"', "-ldl"
IN_RANGES = [
    [], ["step"], ["step", "forward pass"], ["step"], ["epoch"], ["epoch", "step"], ["epoch", "forward"], ["step"], [],
]  # fmt: skip
"""Of the launches of `threads`, in their order: grids 1, 2, 4 ..."""


@pytest.fixture(params=[LINKED], ids=["linked"])
def marking(request: pytest.FixtureRequest, host_program: HostProgram) -> Path:
    return host_program("ranges_program", *request.param)


each_way = pytest.mark.parametrize(
    "marking", [LINKED, OPENED, GLOBAL], ids=["linked", "opened", "global"], indirect=True
)


def grids(verdict: Any) -> list[int]:
    return [row["grid"][0] for row in verdict["reports"]]


@each_way
def test_launches_say_in_which_ranges_they_were(marking: Path, tooled: Tooled) -> None:
    done = tooled(marking, CODE, "threads")
    assert (done.code, done.err.count("- in epoch > step,")) == (0, 1), done.err
    assert grids(done.verdict) == [2**number for number in range(9)]
    assert [row.get("ranges", []) for row in done.verdict["reports"]] == IN_RANGES


@pytest.mark.parametrize("pattern", ["^step$", "epoch|pass$"])
def test_a_range_chooses_what_the_device_counts_of_just_these(
    pattern: str, marking: Path, tooled: Tooled, counted: Counted
) -> None:
    chosen = [any(re.search(pattern, name) for name in names) for names in IN_RANGES]
    expected = [row["instructions"] for row, one in zip(counted(marking, CODE, "threads"), chosen, strict=True) if one]
    found = {}
    for each in ("1", "0"):
        done = tooled(marking, CODE, "threads", LUTHIER_RANGE=pattern, LUTHIER_TOOL_OPTIONS=f"per_launch={each}")
        assert (done.code, done.verdict["launches"], done.verdict["selected"]) == (0, len(IN_RANGES), sum(chosen))
        found[each] = [row["report"]["instructions"] for row in done.verdict["reports"]]
    assert found == {"1": expected, "0": [sum(expected)]}


def test_a_graph_is_in_the_ranges_in_which_it_is_launched(marking: Path, tooled: Tooled) -> None:
    every = tooled(marking, CODE, "graphs")
    chosen = tooled(marking, CODE, "graphs", LUTHIER_RANGE="captured|launched")
    for done, expected in (every, [None, ["launched"], None]), (chosen, [["launched"]]):
        assert done.code == 0 and [row.get("ranges") for row in done.verdict["reports"]] == expected, done.err
        assert (done.verdict["launches"], done.verdict["selected"]) == (3, len(expected))


def test_the_page_shows_what_is_printed(marking: Path, tooled: Tooled) -> None:
    page = (ROOT / "docs" / "regions.md").read_text("utf-8")
    shown = re.findall(r"^kernel \d.* - in .*$", page, re.MULTILINE)
    done = tooled(marking, CODE, "threads", LUTHIER_RANGE="epoch")
    assert len(shown) == 3 and re.findall("^kernel .*$", done.err, re.MULTILINE) == shown


def test_what_counts_go_on_in_is_what_all_launches_were_in(marking: Path, tooled: Tooled) -> None:
    options = {"LUTHIER_TOOL_OPTIONS": "per_launch=0", "LUTHIER_RANGE": "epoch"}
    done = tooled(marking, CODE, "threads", **options)
    assert [(row["launches"], row["ranges"]) for row in done.verdict["reports"]] == [(3, ["epoch"])]


def test_mistakes_with_ranges_are_the_programs_own(marking: Path, tooled: Tooled) -> None:
    """Names may be any bytes, of any length; they are in what is written as text."""
    done = tooled(marking, CODE, "mistakes")
    odd = 'odd \\xff"\n{\x01'
    assert done.code == 0, done.err
    assert [row.get("ranges") for row in done.verdict["reports"]] == [
        None, [""], ["", odd], ["", odd, "x" * 20000], [""]]  # fmt: skip
    done = tooled(marking, CODE, "mistakes", LUTHIER_RANGE="^odd ")
    assert grids(done.verdict) == [4, 8]


def test_the_profiler_is_paused_and_goes_on(marking: Path, tooled: Tooled) -> None:
    done = tooled(marking, CODE, "pauses")
    assert done.code == 0 and grids(done.verdict) == [1, 4]


def test_a_child_is_in_the_ranges_in_which_it_was_made(marking: Path, tooled: Tooled, tmp_path: Path) -> None:
    done = tooled(marking, CODE, "forks", LUTHIER_RANGE="family", LUTHIER_VERDICT=str(tmp_path / "%p"))
    assert done.code == 0, done.err
    found = sorted((grids(verdict), verdict["launches"]) for verdict in map(read, tmp_path.iterdir()))
    assert found == [([1], 2), ([4], 1)]


def test_programs_without_a_tool_find_roctx_too(marking: Path, counted: Counted) -> None:
    assert len(counted(marking, CODE, "mistakes")) == 5


def test_exec_takes_a_range(marking: Path, tmp_path: Path) -> None:
    def under(*options: str) -> subprocess.CompletedProcess[str]:
        command = "exec", "-t", "instr_count", "--device", "emulator:gfx90a"
        return run_luthier(*command, *options, "--", marking, CODE, "threads", environment=os.environ)

    assert under("--range", "^forward", "--output", str(tmp_path / "counts.csv")).returncode == 0
    rows = list(csv.DictReader((tmp_path / "counts.csv").read_text().splitlines()))
    assert [(row["grid"], row["ranges"]) for row in rows] == [("4x1x1", "step > forward pass"),
                                                              ("64x1x1", "epoch > forward")]
    nothing = under("--range", "backward")
    assert nothing.returncode == 3 and "LUTHIER_RANGE=backward leaves out 9 of 9 launches" in nothing.stderr


def test_a_report_of_each_range_is_of_its_launches(marking: Path, tooled: Tooled, tmp_path: Path) -> None:
    options = "LUTHIER_BY_RANGE=1\nLUTHIER_RANGE=step"
    done = tooled(marking, CODE, "threads", tool="opcode_histogram", LUTHIER_TOOL_OPTIONS=options,
                  LUTHIER_REPORT=str(tmp_path))  # fmt: skip
    found = {str(path.parent.relative_to(tmp_path)): json.loads(path.read_text())["opcodes"]["s_endpgm"]
             for path in tmp_path.rglob("opcode_histogram.json")}  # fmt: skip
    assert done.code == 0 and found == {
        "step/saxpy": 2 + 8 + 128, "step/forward_pass-47a3d4fe/saxpy": 4, "epoch/step/saxpy": 32}


def test_a_range_is_refused_where_nothing_is_known_of_it() -> None:
    with pytest.raises(Invalid, match=r"option LUTHIER_RANGE=\*: give a regular expression: nothing to repeat"):
        load_tool("instr_count", {"LUTHIER_RANGE": "*"})
    tool = load_tool("instr_count", {"LUTHIER_RANGE": "x"})
    assert choose_level(None, False, tool) == "hip"
    with pytest.raises(Invalid, match="level hsa: roctx ranges are only seen at level hip"):
        choose_level("hsa", False, tool)


def read(path: Path) -> Any:
    return json.loads(path.read_text())
