"""Tools under unmodified programs: same output, and the counts that the emulator makes itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Program = Callable[..., Path]
Tooled = Callable[..., Any]
Counted = Callable[..., list[dict[str, Any]]]

PROGRAMS = sorted(path.stem for path in (Path(__file__).resolve().parents[3] / "programs").glob("*.hip"))
SPINNING = {"cooperative", "printing"}  # waves wait for each other, or the host: how often they look is chance


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=pytest.mark.xdist_group(f"program-{name}")) for name in PROGRAMS])
def test_counts(name: str, program: Program, tooled: Tooled, counted: Counted) -> None:
    """Each program alone, then under the tool, which sees all launches."""
    expected = Counter((row["kernel"], row["instructions"]) for row in counted(program(name)))
    done = tooled(program(name))
    assert (done.code, done.out[-7:]) == (0, "PASSED\n"), done.out + done.err
    assert done.verdict["unseen"] == 0 and "not see" not in done.err
    found = Counter((row["kernel"], row["report"]["instructions"]) for row in done.verdict["reports"])
    assert not done.verdict["refused"] and done.verdict["reports"]
    if name in SPINNING:
        assert [kernel for kernel, _ in found] == [kernel for kernel, _ in expected]
    elif name == "graphs":  # one report of each launch of a graph
        assert total(found) == total(expected) and done.verdict["instrumented"] == done.verdict["launches"] == 7
        assert [row["launches"] for row in done.verdict["reports"]] == [2, 2, 2, 1]  # of two nodes, and one of its own
        check_launches_of_graphs(expected, done.verdict["reports"])
    elif name in ("graph_changes", "graph_exchanges", "graph_nodes", "graph_sizes"):  # one report of several launches
        assert total(found) == total(expected) and done.verdict["instrumented"] == done.verdict["launches"]
        if name == "graph_nodes":
            check_launches_of_graphs(expected, done.verdict["reports"])
    else:
        assert found == expected


def check_launches_of_graphs(expected: Counter[tuple[str, int]], reports: list[dict[str, Any]]) -> None:
    """One report of each launch of a graph for each kernel, with all its nodes. The kernels run straight through, so
    that each node of one executes what each of its launches does."""
    each = dict(expected.keys())
    assert len(each) == len(expected) > 0
    launches: Counter[str] = Counter()
    for row in reports:
        assert row["report"]["instructions"] == row["launches"] * each[row["kernel"]]
        launches[row["kernel"]] += row["launches"]
    assert launches == Counter({kernel: times for (kernel, _), times in expected.items()})
    assert max(row["launches"] for row in reports) > 1


def test_one_count_for_all_launches(program: Program, tooled: Tooled, counted: Counted) -> None:
    """Nothing waits: not even for a kernel that waits for the host."""
    expected = Counter((row["kernel"], row["instructions"]) for row in counted(program("threads")))
    done = tooled(program("threads"), "host", LUTHIER_TOOL_OPTIONS="per_launch=0")
    assert (done.code, done.out) == (0, "PASSED\n"), done.out + done.err
    rows = done.verdict["reports"]
    found = Counter({row["kernel"]: 0 for row in rows})
    for row in rows:
        found[row["kernel"]] += row["report"]["instructions"]
    assert total(expected).items() <= found.items() and len(found) == 3
    assert len(rows) == 5  # what was counted is read before the program resets the device, and at its end
    assert sum(row["launches"] for row in rows) == sum(expected.values()) + 1 == done.verdict["instrumented"]


@pytest.mark.parametrize("how", ((), ("fat",)))
def test_modules(how: tuple[str, ...], program: Program, tooled: Tooled, counted: Counted) -> None:
    path = program("module_api")
    file = path.with_suffix(".hipfb" if how else ".gfx90a.co")
    expected = Counter((row["kernel"], row["instructions"]) for row in counted(path, file, *how))
    done = tooled(path, file, *how)
    assert (done.code, done.out) == (0, "PASSED\n"), done.out + done.err
    assert Counter((row["kernel"], row["report"]["instructions"]) for row in done.verdict["reports"]) == expected
    assert sum(expected.values()) == 2


@pytest.mark.parametrize("target, name", [
    ("gfx900", "pointers"), ("gfx942", "nbody"), ("gfx950", "scan"),
    *(pytest.param(*pair, marks=pytest.mark.slow) for pair in (
        ("gfx906", "scan"), ("gfx908", "nbody"), ("gfx942", "pointers"), ("gfx950", "pointers"))),
])
def test_other_targets(target: str, name: str, program: Program, tooled: Tooled, counted: Counted) -> None:
    path, device = program(name, targets=(target,)), f"emulator:{target}"
    expected = Counter((row["kernel"], row["instructions"]) for row in counted(path, LUTHIER_DEVICE=device))
    done = tooled(path, LUTHIER_DEVICE=device)
    assert (done.code, done.out[-7:]) == (0, "PASSED\n"), done.out + done.err
    found = Counter((row["kernel"], row["report"]["instructions"]) for row in done.verdict["reports"])
    assert found == expected and not done.verdict["refused"]


@pytest.mark.parametrize("devices", ("emulator:gfx90a*2", "emulator:gfx906, emulator:gfx90a"))
def test_several_devices(devices: str, program: Program, tooled: Tooled, counted: Counted) -> None:
    """The device of the stream decides which code object is patched, and where the copy and its variables are."""
    path = program("devices", targets=("gfx906", "gfx90a"))
    expected = Counter((row["kernel"], row["instructions"]) for row in counted(path, LUTHIER_DEVICE=devices))
    done = tooled(path, LUTHIER_DEVICE=devices)
    assert (done.code, done.out) == (0, "PASSED\n"), done.out + done.err
    rows = done.verdict["reports"]
    assert Counter((row["kernel"], row["report"]["instructions"]) for row in rows) == expected
    assert {row["device"] for row in rows} == {0, 1}


def total(counts: Counter[tuple[str, int]]) -> Counter[str]:
    """Instructions of each kernel."""
    return sum((Counter({kernel: count * times}) for (kernel, count), times in counts.items()), Counter[str]())


def test_opcodes(program: Program, tooled: Tooled, counted: Counted) -> None:
    alone = counted(program("transpose"))
    done = tooled(program("transpose"), tool="opcode_histogram")
    rows = [row["report"] for row in done.verdict["reports"]]
    executed: Counter[str] = sum((Counter(row["opcodes"]) for row in alone), Counter())
    assert sum((Counter(row["opcodes"]) for row in rows), Counter()) == executed
    assert sum(row["instructions"] for row in rows) == executed.total()


def test_kernels_and_launch_range(program: Program, tooled: Tooled) -> None:
    verdict = tooled(program("reduction"), LUTHIER_KERNELS="sequential$").verdict
    assert [row["kernel"] for row in verdict["reports"]] == ["reduce_sequential"]
    assert (verdict["launches"], verdict["selected"], verdict["instrumented"]) == (2, 1, 1)
    verdict = tooled(program("bitonic_sort"), START_GRID_NUM="3", END_GRID_NUM="6").verdict
    assert [row["launch"] for row in verdict["reports"]] == [3, 4, 5] and verdict["selected"] == 3
    verdict = tooled(program("vector_add"), ACTIVE_FROM_START="0").verdict
    assert verdict["reports"] == [] and (verdict["launches"], verdict["selected"]) == (1, 0)


def test_options_of_the_tool_and_of_the_environment_are_one(program: Program, tooled: Tooled) -> None:
    done = tooled(program("bitonic_sort"), LUTHIER_TOOL_OPTIONS="START_GRID_NUM=3\nEND_GRID_NUM=6")
    assert [row["launch"] for row in done.verdict["reports"]] == [3, 4, 5]
    assert "* START_GRID_NUM" in " ".join(done.err.split()) and "first launch to instrument" in done.err
