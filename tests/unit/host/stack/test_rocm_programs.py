"""HIP programs on the real libamdhip64 and ROCr, above the emulator: results, and counts that equal the emulator's.

Not here are programs that want a later HIP (graph_changes, graph_exchanges, module_api,
streams_events), that say what calls with wrong
arguments return in ours (errors, faults, pools, registered), and that call device functions through pointers: for these
clang 22 asks for a default queue, which this HIP runtime does not make and uses (pointers).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from stacked_programs import Done, Programs, Stacked, executed, reported, some

NAMES = (
    "bitonic_sort", "cooperative", "devices", "grid_sync", "histogram", "jacobi", "lud_diagonal", "managed_memory",
    "managed_ranges", "nbody", "nearest_neighbour", "printing", "reduction", "registered_files", "rocm/device_malloc",
    "rocm/graph", "rocm/pageable", "rocm/rtc", "scan", "softmax", "symbols", "threads", "transpose", "vector_add",
    "walsh_transform",
)  # fmt: skip
WAITING = {"cooperative", "grid_sync", "printing", "rocm/device_malloc"}  # for others, as often as chance has it
GRAPH = "rocm/graph"  # a tool has one result for all launches of a kernel in a graph
COUNTED = [name for name in NAMES if name not in {*WAITING, GRAPH}]
WITH_LDS = "histogram", "transpose", "walsh_transform"  # others have it, too, and take minutes under this tool
PLAIN = "instr_count", "opcode_histogram"
CASES = [(name, PLAIN[place % 2]) for place, name in enumerate(COUNTED)]
CASES += [(name, "lds_bank_conflicts") for name in WITH_LDS]
ALWAYS = {  # each asks ROCm for something else; what others compute is above the same calls
    *WAITING, GRAPH, "devices", "histogram", "managed_memory", "managed_ranges", "registered_files", "rocm/pageable",
    "rocm/rtc", "symbols", "threads", "vector_add",
}  # fmt: skip
ON_BOTH = {"histogram", "symbols", "threads"}
UNDER_A_TOOL = {case for case in CASES if case[0] in {"devices", "managed_memory", "rocm/rtc", "symbols"}}
UNDER_A_TOOL |= {("histogram", "lds_bank_conflicts")}


@pytest.mark.parametrize("name", some(NAMES, ALWAYS))
def test_alone(name: str, hip_alone: Callable[[str], Done]) -> None:
    done = hip_alone(name)
    assert done.err == "" and done.profile


@pytest.mark.parametrize("name", some((name for name in COUNTED if name != "rocm/rtc"), ON_BOTH))
def test_as_on_our_runtime(
    name: str, hip_alone: Callable[[str], Done], programs: Programs, stacked: Stacked
) -> None:
    """The same executable: the same launches with the same counts."""
    ours = stacked.on_ours(programs.hip(name))
    assert (ours.code, ours.out) == (0, "PASSED\n"), ours.err
    assert executed(ours, "opcode_histogram") == executed(hip_alone(name), "opcode_histogram")


@pytest.mark.parametrize("name, tool", some(CASES, UNDER_A_TOOL))
def test_under_a_tool(
    name: str, tool: str, hip_alone: Callable[[str], Done], programs: Programs, stacked: Stacked
) -> None:
    done = stacked.under(tool, programs.hip(name))
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    assert not done.verdict["refused"] and reported(done, tool) == executed(hip_alone(name), tool)


def test_graphs_under_a_tool(hip_alone: Callable[[str], Done], programs: Programs, stacked: Stacked) -> None:
    """The twin of a graph, instantiated by the real runtime, has the tool's clones in it."""
    done = stacked.under("instr_count", programs.hip(GRAPH))
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    found = sum(row["report"]["instructions"] for row in done.verdict["reports"])
    assert not done.verdict["refused"] and found == sum(row["instructions"] for row in hip_alone(GRAPH).profile) > 0


def test_the_same_tool_on_both_stacks(programs: Programs, stacked: Stacked) -> None:
    """`luthier exec` with nothing else different."""
    path, found = programs.hip("histogram"), []
    for stack in ("rocm", "luthier"):
        done = stacked.under("instr_count", path, stack=stack)
        assert (done.code, done.out) == (0, "PASSED\n"), done.err
        found.append(reported(done, "instr_count"))
    assert found[0] == found[1] and found[0]


@pytest.mark.parametrize("tool", some(("instr_count", "memory_divergence", "memcheck"), {"memory_divergence"}))
def test_waves_take_their_turns_as_without_a_tool(tool: str, programs: Programs, stacked: Stacked) -> None:
    """And as on our runtime."""
    path = programs.hip("rocm/racing")
    bare, done = stacked.alone(path), stacked.under(tool, path)
    assert (done.code, done.out) == (0, bare.out) and bare.out.endswith("PASSED\n"), done.err
    assert stacked.on_ours(path).out == bare.out


def test_kernels_have_names_wherever_their_program_lies(programs: Programs, stacked: Stacked, tmp_path: Path) -> None:
    """ROCr says where code is in URIs, which have no spaces in them."""
    path = tmp_path / "my programs+1"
    path.mkdir()
    program = Path(shutil.copy(programs.hip("vector_add"), path))
    assert [row["kernel"] for row in stacked.alone(program).profile] == ["_Z10vector_addPKfS0_Pfi"]


def test_cooperative_launches_that_cannot_be_met_run_as_they_are(programs: Programs, stacked: Stacked) -> None:
    """HIP 5.2 starts no module's kernel cooperatively, and a copy is one: it is said, and the program goes on."""
    done = stacked.under("instr_count", programs.hip("cooperative"))
    assert (done.code, done.out) == (3, "PASSED\n") and "no hipModuleLaunchCooperativeKernel" in done.err


def test_grids_in_work_items(programs: Programs, stacked: Stacked) -> None:
    path = programs.hip("rocm/in_items")
    bare = stacked.alone(path)
    assert (bare.code, bare.out) == (0, "PASSED\n"), bare.err
    for level in ("hip", "hsa"):
        done = stacked.under("instr_count", path, level=level)
        assert (done.code, done.out) == (0, "PASSED\n"), done.err
        assert reported(done, "instr_count") == executed(bare, "instr_count")
