"""HIP programs on the real libamdhip64 and ROCr, above the emulator: results, and counts that equal the emulator's.

Not here are programs that want a later HIP (graph_changes, module_api, streams_events), that say what calls with wrong
arguments return in ours (errors, faults, pools, registered), and that call device functions through pointers: for these
clang 22 asks for a default queue, which this HIP runtime does not make and uses (pointers).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from stacked_programs import Done, Programs, Stacked

NAMES = (
    "bitonic_sort", "cooperative", "devices", "grid_sync", "histogram", "jacobi", "lud_diagonal", "managed_memory",
    "nbody", "nearest_neighbour", "printing", "reduction", "rocm/device_malloc", "rocm/graph", "rocm/pageable",
    "rocm/rtc", "scan", "softmax", "symbols", "threads", "transpose", "vector_add", "walsh_transform",
)  # fmt: skip
WAITING = {"cooperative", "grid_sync", "printing", "rocm/device_malloc"}  # for others, as often as chance has it
GRAPH = "rocm/graph"  # a tool has one result for all launches of a kernel in a graph
COUNTED = [name for name in NAMES if name not in {*WAITING, GRAPH}]
WITH_LDS = "histogram", "transpose", "walsh_transform"  # others have it, too, and take minutes under this tool
TOOLS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "instr_count": (lambda report: report["instructions"], lambda row: row["instructions"]),
    "opcode_histogram": (lambda report: sorted(report["opcodes"].items()), lambda row: sorted(row["opcodes"].items())),
    "lds_bank_conflicts": (
        lambda report: report["total"]["accesses"],
        lambda row: sum(count for name, count in row["active_opcodes"].items() if name.startswith("ds_")),
    ),
}
CASES = [
    (name, tool) for name in COUNTED for tool in TOOLS if tool != "lds_bank_conflicts" or name in WITH_LDS
]  # fmt: skip


@pytest.fixture(scope="module")
def alone(programs: Programs, rocm_stack: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Done]:
    """A program on ROCm without a tool, once."""
    runner, runs = Stacked(rocm_stack, tmp_path_factory.mktemp("alone")), {}

    def run(name: str) -> Done:
        if name not in runs:
            runs[name] = runner.alone(programs.hip(name))
        found: Done = runs[name]
        assert (found.code, found.out) == (0, "PASSED\n"), found.err
        return found

    return run


@pytest.mark.parametrize("name", NAMES)
def test_alone(name: str, alone: Callable[[str], Done]) -> None:
    done = alone(name)
    assert done.err == "" and done.profile


@pytest.mark.parametrize("name", [name for name in COUNTED if name != "rocm/rtc"])
def test_as_on_our_runtime(
    name: str, alone: Callable[[str], Done], programs: Programs, stacked: Stacked
) -> None:
    """The same executable: the same launches with the same counts."""
    ours = stacked.on_ours(programs.hip(name))
    assert (ours.code, ours.out) == (0, "PASSED\n"), ours.err
    assert counts(ours, "opcode_histogram") == counts(alone(name), "opcode_histogram")


@pytest.mark.parametrize("name, tool", CASES)
def test_under_a_tool(
    name: str, tool: str, alone: Callable[[str], Done], programs: Programs, stacked: Stacked
) -> None:
    done = stacked.under(tool, programs.hip(name))
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    report, _ = TOOLS[tool]
    found = Counter((row["kernel"], str(report(row["report"]))) for row in done.verdict["reports"])
    assert not done.verdict["refused"] and found == counts(alone(name), tool)


@pytest.mark.parametrize("name, tool", (("transpose", "lds_bank_conflicts"), ("symbols", "instr_count")))
def test_under_a_tool_below_hip(
    name: str, tool: str, alone: Callable[[str], Done], programs: Programs, stacked: Stacked
) -> None:
    """The same at the HSA level."""
    done = stacked.under(tool, programs.hip(name), level="hsa")
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    report, _ = TOOLS[tool]
    found = Counter((row["kernel"], str(report(row["report"]))) for row in done.verdict["reports"])
    assert not done.verdict["refused"] and found == counts(alone(name), tool)


def test_graphs_under_a_tool(alone: Callable[[str], Done], programs: Programs, stacked: Stacked) -> None:
    """The twin of a graph, instantiated by the real runtime, has the tool's clones in it."""
    done = stacked.under("instr_count", programs.hip(GRAPH))
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    found = sum(row["report"]["instructions"] for row in done.verdict["reports"])
    assert not done.verdict["refused"] and found == sum(row["instructions"] for row in alone(GRAPH).profile) > 0


def counts(done: Done, tool: str) -> Counter[tuple[str, str]]:
    """What the emulator counted; launches that have nothing for a tool are none to it."""
    _, of_row = TOOLS[tool]
    rows = ((row["kernel"], of_row(row)) for row in done.profile)
    return Counter((kernel, str(count)) for kernel, count in rows if count)


def test_the_same_tool_on_both_stacks(programs: Programs, stacked: Stacked) -> None:
    """`luthier exec` with nothing else different."""
    path, found = programs.hip("bitonic_sort"), []
    for stack in ("rocm", "luthier"):
        done = stacked.under("instr_count", path, stack=stack)
        assert (done.code, done.out) == (0, "PASSED\n"), done.err
        found.append(Counter((row["kernel"], row["report"]["instructions"]) for row in done.verdict["reports"]))
    assert found[0] == found[1] and found[0]
