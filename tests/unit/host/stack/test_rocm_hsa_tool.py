"""Tools at the level of HSA: loaded by ROCr, below HIP programs and programs on HSA itself.

Counts are compared with what the emulator counts of the same program without a tool.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rocm_stack import RocmStack
from stacked_programs import Done, Programs, Stacked, executed, reported, some

from luthier_py.features.settings.levels import level_library

HSA = "--level", "hsa"
THREADS, BLOCK, WAVE = 1000, 256, 64  # of tests/programs/hsa_dispatch.c
HIP_PROGRAMS = (
    ("devices", "instr_count"), ("rocm/rtc", "opcode_histogram"), ("symbols", "instr_count"),
    ("threads", "instr_count"), ("transpose", "lds_bank_conflicts"),
)  # fmt: skip
ALWAYS = {"devices", "rocm/rtc", "transpose"}
CONCURRENT = "cooperative", "printing"  # what a wave executes depends on when others come
COUNT = "instr_count"


def passed(done: Done) -> Done:
    assert done.code == 0 and done.out.endswith("PASSED\n"), (done.code, done.out, done.err)
    return done


@pytest.fixture(scope="module")
def dispatches(programs: Programs) -> tuple[Any, Any]:
    """The program on HSA, and its code object."""
    return programs.hsa("hsa_dispatch"), programs.code_object("saxpy")


@pytest.fixture(scope="module")
def alone(dispatches: tuple[Any, Any], rocm_stack: RocmStack, tmp_path_factory: pytest.TempPathFactory) -> Done:
    return passed(Stacked(rocm_stack, tmp_path_factory.mktemp("alone")).alone(*dispatches))


@pytest.mark.parametrize("level, ending", [("hsa", ()), ("auto", ("leave",))], ids=["shut_down", "leaves"])
def test_every_launch_of_a_program_on_hsa(
    level: str, ending: tuple[str, ...], dispatches: tuple[Any, Any], alone: Done, stacked: Stacked
) -> None:
    """Two queues that wait for each other, queues that are full, barriers, signals in order, partial work-groups."""
    done = passed(stacked.under("instr_count", *dispatches, *ending, options=("--level", level)))
    assert done.out == alone.out and reported(done, COUNT) == executed(alone, COUNT)
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


def test_places_for_partial_work_groups(dispatches: tuple[Any, Any], alone: Done, stacked: Stacked) -> None:
    """What is as large as a launch has places for the 24 of the last group that were not launched, too."""
    tool = Path(__file__).resolve().parents[1] / "worker" / "balanced.py"
    done = passed(stacked.under(str(tool), *dispatches, options=HSA))
    assert len(done.verdict["reports"]) == len(alone.profile)
    assert sum(row["report"]["total"] for row in done.verdict["reports"]) == sum(
        launch["instructions"] for launch in alone.profile)
    for row in done.verdict["reports"]:
        report, missing = row["report"], -THREADS % BLOCK
        assert report["items"] == [*range(1, THREADS + 1), *[0] * missing]
        assert sum(report["waves"]) == report["total"]


def test_selected_launches(dispatches: tuple[Any, Any], alone: Done, stacked: Stacked) -> None:
    chosen = "-O", "START_GRID_NUM=3", "-O", "END_GRID_NUM=10"
    verdict = passed(stacked.under("instr_count", *dispatches, options=(*HSA, *chosen))).verdict
    assert (verdict["launches"], verdict["selected"], verdict["instrumented"]) == (len(alone.profile), 7, 7)
    assert sorted(row["launch"] for row in verdict["reports"]) == list(range(3, 10))


@pytest.mark.parametrize("name, tool", some(HIP_PROGRAMS, {case for case in HIP_PROGRAMS if case[0] in ALWAYS}))
def test_hip_programs(
    name: str, tool: str, programs: Programs, hip_alone: Callable[[str], Done], stacked: Stacked
) -> None:
    """Below HIP: streams, modules, managed memory, several devices, code compiled at run time."""
    done = passed(stacked.under(tool, programs.hip(name), options=HSA))
    assert reported(done, tool) == executed(hip_alone(name), tool) and not done.verdict["refused"]


@pytest.mark.parametrize("name", CONCURRENT)
def test_programs_whose_waves_wait(name: str, programs: Programs, stacked: Stacked) -> None:
    done = passed(stacked.under("instr_count", programs.hip(name), options=HSA))
    verdict = done.verdict
    assert verdict["launches"] == verdict["instrumented"] > 0 and not verdict["refused"]


def test_a_runtime_that_registers_its_table(
    dispatches: tuple[Any, Any], alone: Done, programs: Programs, stacked: Stacked,
    tmp_path: Path,
) -> None:
    """As rocprofiler-register hands it on, since ROCm 6.2; here with ROCr's table of ROCm 5.2."""
    verdict = tmp_path / "registered.json"
    environment = {
        "HSA_TOOLS_LIB": str(programs.hsa("hsa_register", "-shared", "-fPIC")),
        "ROCPROFILER_REGISTER_LIBRARY": str(level_library("hsa", "instr_count", "")),
        "LUTHIER_VERDICT": str(verdict),
    }
    done = passed(stacked.alone(*dispatches, "leave", **environment))
    assert done.out == alone.out
    assert reported(done._replace(verdict=json.loads(verdict.read_text())), COUNT) == executed(alone, COUNT)


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
    verdict = passed(stacked.under("instr_count", programs.hip("vector_add"), level="auto")).verdict
    assert verdict["launches"] == verdict["instrumented"] == 1
