"""Tools at the level of HSA: loaded by ROCr, below HIP programs and programs on HSA itself.

Counts are compared with what the emulator counts of the same program without a tool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rocm_stack import RocmStack
from stacked_programs import PROGRAMS, Done, Programs, Stacked

HSA = "--level", "hsa"
THREADS, BLOCK, WAVE = 1000, 256, 64  # of tests/programs/hsa_dispatch.c
HIP_PROGRAMS = (
    "devices", "histogram", "managed_memory", "reduction", "rocm/rtc", "symbols", "threads", "transpose", "vector_add",
)  # fmt: skip
OPENMP_PROGRAMS = sorted(path.stem for path in PROGRAMS.glob("openmp_*.c"))
CONCURRENT = "cooperative", "printing"  # what a wave executes depends on when others come


def passed(done: Done) -> Done:
    assert done.code == 0 and done.out.endswith("PASSED\n"), (done.code, done.out, done.err)
    return done


def reported(done: Done) -> Counter[tuple[str, int]]:
    return Counter((row["kernel"], row["report"]["instructions"]) for row in done.verdict["reports"])


def executed(done: Done) -> Counter[tuple[str, int]]:
    return Counter((row["kernel"], row["instructions"]) for row in done.profile)


@pytest.fixture(scope="module")
def dispatches(programs: Programs) -> tuple[Any, Any]:
    """The program on HSA, and its code object."""
    return programs.hsa("hsa_dispatch"), programs.code_object("saxpy")


@pytest.fixture(scope="module")
def alone(dispatches: tuple[Any, Any], rocm_stack: RocmStack, tmp_path_factory: pytest.TempPathFactory) -> Done:
    return passed(Stacked(rocm_stack, tmp_path_factory.mktemp("alone")).alone(*dispatches))


@pytest.mark.parametrize("ending", [(), ("leave",)], ids=["shut_down", "leaves"])
@pytest.mark.parametrize("level", ["hsa", "auto"])
def test_every_launch_of_a_program_on_hsa(
    level: str, ending: tuple[str, ...], dispatches: tuple[Any, Any], alone: Done, stacked: Stacked
) -> None:
    """Two queues that wait for each other, queues that are full, barriers, signals in order, partial work-groups."""
    done = passed(stacked.under("instr_count", *dispatches, *ending, options=("--level", level)))
    assert done.out == alone.out and reported(done) == executed(alone)
    verdict = done.verdict
    assert verdict["launches"] == verdict["selected"] == verdict["instrumented"] == len(alone.profile) > 250
    assert not verdict["refused"] and not verdict["lost_launches"]


@pytest.mark.parametrize("ending", [(), ("leave",)], ids=["shut_down", "leaves"])
def test_one_count_for_all_launches(
    ending: tuple[str, ...], dispatches: tuple[Any, Any], alone: Done, stacked: Stacked
) -> None:
    """Nothing waits; what has grown is read when the executable is destroyed, or at the end."""
    done = passed(stacked.under("instr_count", *dispatches, *ending, options=(*HSA, "-O", "per_launch=0")))
    (row,) = done.verdict["reports"]
    assert row["launches"] == len(alone.profile)
    assert row["report"]["instructions"] == sum(launch["instructions"] for launch in alone.profile)


def test_threads_of_partial_work_groups(dispatches: tuple[Any, Any], alone: Done, stacked: Stacked) -> None:
    """An instruction counts once for each thread that was launched, and 24 of the last group were not."""
    done = passed(stacked.under("instr_count", *dispatches, options=(*HSA, "-O", "COUNT_WARP_LEVEL=0")))
    waves = -(-THREADS // WAVE)
    of_wave = {launch["instructions"] // waves for launch in alone.profile}
    assert {row["report"]["instructions"] for row in done.verdict["reports"]} == {n * THREADS for n in of_wave}
    assert done.verdict["reports"][0]["grid"] == [-(-THREADS // BLOCK), 1, 1]


def test_selected_launches(dispatches: tuple[Any, Any], alone: Done, stacked: Stacked) -> None:
    chosen = "-O", "START_GRID_NUM=3", "-O", "END_GRID_NUM=10"
    verdict = passed(stacked.under("instr_count", *dispatches, options=(*HSA, *chosen))).verdict
    assert (verdict["launches"], verdict["selected"], verdict["instrumented"]) == (len(alone.profile), 7, 7)
    assert sorted(row["launch"] for row in verdict["reports"]) == list(range(3, 10))


@pytest.mark.parametrize("name", HIP_PROGRAMS)
def test_hip_programs(name: str, programs: Programs, stacked: Stacked) -> None:
    """Below HIP: streams, modules, managed memory, several devices, code compiled at run time."""
    alone = passed(stacked.alone(programs.hip(name)))
    done = passed(stacked.under("instr_count", programs.hip(name), options=HSA))
    assert alone.profile and reported(done) == executed(alone) and not done.verdict["refused"]


@pytest.mark.parametrize("name", CONCURRENT)
def test_programs_whose_waves_wait(name: str, programs: Programs, stacked: Stacked) -> None:
    done = passed(stacked.under("instr_count", programs.hip(name), options=HSA))
    verdict = done.verdict
    assert verdict["launches"] == verdict["instrumented"] > 0 and not verdict["refused"]


@pytest.mark.parametrize("name", OPENMP_PROGRAMS)
def test_openmp_programs(name: str, openmp: Callable[[str], Path], stacked: Stacked) -> None:
    """No level is named: there is no HIP in the program."""
    mandatory = {"OMP_TARGET_OFFLOAD": "MANDATORY"}
    alone = passed(stacked.alone(openmp(name), **mandatory))
    done = passed(stacked.under("instr_count", openmp(name), **mandatory))
    assert alone.profile and reported(done) == executed(alone) and not done.verdict["refused"]


@pytest.mark.parametrize("tool", ["opcode_histogram", "lds_bank_conflicts"])
def test_other_tools_count_as_at_the_level_of_hip(tool: str, programs: Programs, stacked: Stacked) -> None:
    program = programs.hip("reduction")
    hip, hsa = (passed(stacked.under(tool, program, options=("--level", level))) for level in ("hip", "hsa"))
    assert hsa.verdict["reports"] == hip.verdict["reports"] != []


def test_own_kernels_only_if_asked_for(programs: Programs, stacked: Stacked) -> None:
    """ROCclr fills and copies with kernels of its own."""
    program = programs.hip("histogram")
    names = [
        {row["kernel"] for row in passed(stacked.under("instr_count", program, options=options)).verdict["reports"]}
        for options in (HSA, (*HSA, "--own-kernels"))
    ]
    assert not any(name.startswith("__amd_rocclr_") for name in names[0])
    assert names[0] < names[1] and all(name.startswith("__amd_rocclr_") for name in names[1] - names[0])


def test_one_level_counts(programs: Programs, stacked: Stacked) -> None:
    """Both libraries are in the process; of a HIP program each launch is seen once."""
    verdict = passed(stacked.under("instr_count", programs.hip("vector_add"))).verdict
    assert verdict["launches"] == verdict["instrumented"] == 1
