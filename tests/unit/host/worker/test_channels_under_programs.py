"""Channels under HIP programs: every launch's records come, whatever streams, devices, graphs and threads do."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from math import ceil, prod
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).with_name("wave_trace.py")

Program = Callable[..., Path]
Tooled = Callable[..., Any]


def check(verdict: Any) -> None:
    """Every launch has the records of its waves and work-items, as its shape says."""
    reports = verdict["reports"]
    assert reports and verdict["launches"] == sum(row["launches"] for row in reports)
    waves = items = 0
    for row in reports:
        groups, size = prod(row["grid"]), prod(row["block"])
        assert row["report"] == {"waves": groups * ceil(size / 64), "begun": groups * ceil(size / 64), "whole": True,
                                 "items": groups * size}, row
        waves, items = waves + groups * ceil(size / 64), items + groups * size
    assert verdict["records"] == {
        "begun": {"pushed": waves, "kept": waves, "dropped": 0, "failed": 0},
        "items": {"pushed": items, "kept": items, "dropped": 0, "failed": 0},
    }


@pytest.mark.parametrize("name", ("vector_add", "streams_events", "jacobi"))
def test_every_launch_has_its_records(name: str, program: Program, tooled: Tooled) -> None:
    done = tooled(program(name), tool=TOOL)
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    check(done.verdict)


def test_a_slow_tool_is_waited_for(program: Program, tooled: Tooled) -> None:
    done = tooled(program("vector_add"), tool=TOOL, LUTHIER_TOOL_OPTIONS="slow=0.05")
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    check(done.verdict)


def test_several_devices(program: Program, tooled: Tooled) -> None:
    done = tooled(program("devices"), tool=TOOL, LUTHIER_DEVICE="emulator:gfx90a*3")
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    check(done.verdict)


@pytest.mark.parametrize("name, per_launch", [("graphs", 1), ("graphs", 0), ("threads", 0), ("streams_events", 0)])
def test_no_record_is_lost_where_launches_run_at_once(
    name: str, per_launch: int, program: Program, tooled: Tooled
) -> None:
    arguments = ["host"] if name == "threads" else []
    done = tooled(program(name), *arguments, tool=TOOL, LUTHIER_TOOL_OPTIONS=f"per_launch={per_launch}")
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    waves = sum(row["report"]["waves"] for row in done.verdict["reports"])
    begun, items = (done.verdict["records"][name] for name in ("begun", "items"))
    assert waves > 0 and begun == {"pushed": waves, "kept": waves, "dropped": 0, "failed": 0}
    assert items["kept"] == items["pushed"] >= begun["kept"]


def test_a_tool_that_fails_does_not_hold_up_the_program(program: Program, tooled: Tooled) -> None:
    done = tooled(program("vector_add"), tool=TOOL, LUTHIER_TOOL_OPTIONS="fails=1")
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    assert done.err.count("ValueError: enough") == 1
    records = done.verdict["records"]["items"]
    assert records["kept"] == 0 and records["failed"] == records["pushed"] > 0
    assert done.verdict["failed"]


@pytest.mark.parametrize("name", ("graph_changes", "graph_nodes"))
def test_records_of_graphs_go_to_their_kernels(name: str, program: Program, tooled: Tooled, counted: Any) -> None:
    """They are as many as the emulator counts when the program runs alone, and lead to their own instructions."""
    done = tooled(program(name), tool="mem_trace", LUTHIER_TOOL_OPTIONS="spaces=global")
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    assert not done.verdict["failed"], done.err
    expected, found = Counter[str](), Counter[str]()
    for row in counted(program(name)):
        expected[row["kernel"]] += sum(count for name, count in row["active_opcodes"].items() if "global_" in name)
    for row in done.verdict["reports"]:
        found[row["kernel"]] += row["report"]["accesses"]
    assert found == expected and len(expected) > 1
    numbers = [row["launch"] for row in done.verdict["reports"]]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("full", ("drop", "stop"))
def test_full_channels_that_do_not_wait(full: str, program: Program, tooled: Tooled) -> None:
    done = tooled(program("vector_add"), tool=TOOL, LUTHIER_TOOL_OPTIONS="slow=0.5", WAVE_TRACE_FULL=full)
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    items, reported = done.verdict["records"]["items"], sum(row["report"]["items"] for row in done.verdict["reports"])
    assert items["dropped"] > 0 and items["pushed"] == items["kept"] + items["dropped"]
    assert items["kept"] == reported and items["pushed"] == sum(
        prod(row["grid"]) * prod(row["block"]) for row in done.verdict["reports"])
    said = "Channel(WaveTrace.items: Item) was full, and is to stop a launch then"
    assert (said in done.verdict["failed"]) == (done.err.count(said) == 1) == (full == "stop")


def test_files(program: Program, tooled: Tooled, tmp_path: Path) -> None:
    done = tooled(program("vector_add"), tool=TOOL, LUTHIER_RECORDS=str(tmp_path / "trace.ndjson"))
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    rows = [json.loads(line) for line in (tmp_path / "trace.items.ndjson").read_text().splitlines()]
    assert len(rows) == done.verdict["records"]["items"]["kept"]
    shapes = {row["launch"]: prod(row["grid"]) * prod(row["block"]) for row in done.verdict["reports"]}
    assert all(sum(row["launch"] == launch for row in rows) == items for launch, items in shapes.items())


def test_mem_trace_under_a_program(program: Program, tooled: Tooled, counted: Any, tmp_path: Path) -> None:
    """Each launch's records are as many as the emulator counts when the program runs alone."""
    tool = Path(__file__).resolve().parents[4] / "tools" / "mem_trace"
    trace = tmp_path / "trace.ndjson"
    done = tooled(program("vector_add"), tool=tool, LUTHIER_RECORDS=str(trace), LUTHIER_TOOL_OPTIONS="spaces=global")
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    alone = counted(program("vector_add"))
    expected = sum(count for row in alone for name, count in row["active_opcodes"].items() if "global_" in name)
    rows = [json.loads(line) for line in trace.read_text().splitlines()]
    assert len(rows) == expected == done.verdict["records"]["accesses"]["kept"] > 0
    assert all(sum(at != 0 for at in row["address"]) == row["lanes"].bit_count() for row in rows)


def test_prints_and_assertions_under_a_program(program: Program, tooled: Tooled, tmp_path: Path) -> None:
    tool = tmp_path / "said.py"
    tool.write_text(
        "from luthier_py import Lane, Mutator, Option, Tool, hook, u32, vgpr\n"
        "@hook\ndef say(item: Lane[u32]) -> None:\n    if item < 2:\n        print('item', item)\n"
        "    assert item != 1\n"
        "class Said(Tool):\n"
        "    def instrument(self, m: Mutator) -> None:\n"
        "        for kernel in m.kernels:\n            m.at_entry(kernel, say, vgpr(0))\n"
    )
    for _ in range(2):  # the second time with the copy that was kept, for which nothing is compiled
        done = tooled(program("vector_add"), tool=tool)
        assert (done.code, done.out) == (0, "PASSED\n"), done.err
        groups = prod(done.verdict["reports"][0]["grid"])
        assert done.err.count("item 0\n") == done.err.count("item 1\n") == groups
        assert done.err.count("said.py:6: assertion failed: item != 1 [lane 1]") == groups
        assert "assertion in device code" in done.verdict["failed"]


@pytest.mark.parametrize("target", [
    "gfx900", "gfx942", *(pytest.param(name, marks=pytest.mark.slow) for name in ("gfx906", "gfx908", "gfx950"))])
def test_other_targets(target: str, program: Program, tooled: Tooled) -> None:
    """Each has its own way to make caches forget and write back."""
    done = tooled(program("jacobi", targets=(target,)), tool=TOOL, LUTHIER_DEVICE=f"emulator:{target}")
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    check(done.verdict)
