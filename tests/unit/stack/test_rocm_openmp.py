"""OpenMP offload on ROCr, as clang 19 and its libomptarget do it: no HIP is in between."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rocm_stack import RocmStack
from stacked_programs import PROGRAMS, Done, Stacked

NAMES = sorted(path.stem for path in PROGRAMS.glob("openmp_*.c"))
CASES = [(name, "instr_count", "instructions") for name in NAMES]
CASES.append(("openmp_reduction", "opcode_histogram", "opcodes"))
MANDATORY = {"OMP_TARGET_OFFLOAD": "MANDATORY"}  # no fallback to the host


@pytest.fixture(scope="module")
def alone(
    openmp: Callable[[str], Path], rocm_stack: RocmStack, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Done]:
    """A program without a tool, once."""
    runner, runs = Stacked(rocm_stack, tmp_path_factory.mktemp("alone")), {}

    def run(name: str) -> Done:
        if name not in runs:
            runs[name] = runner.alone(openmp(name), **MANDATORY)
        found: Done = runs[name]
        assert found.code == 0 and found.out.endswith("PASSED\n"), found.err
        return found

    return run


@pytest.mark.parametrize("name", NAMES)
def test_alone(name: str, alone: Callable[[str], Done]) -> None:
    done = alone(name)
    assert done.profile and all(row["kernel"].startswith("__omp_offloading_") for row in done.profile)


@pytest.mark.parametrize("name, tool, key", CASES)
def test_under_a_tool(
    name: str, tool: str, key: str, alone: Callable[[str], Done], openmp: Callable[[str], Path], stacked: Stacked
) -> None:
    """Below libomptarget: the same counts as the emulator's own, region by region."""
    done = stacked.under(tool, openmp(name), level="hsa", **MANDATORY)
    assert (done.code, done.out) == (0, alone(name).out), done.err
    found = Counter((row["kernel"], str(sorted_items(row["report"][key]))) for row in done.verdict["reports"])
    assert not done.verdict["refused"]
    assert found == Counter((row["kernel"], str(sorted_items(row[key]))) for row in alone(name).profile)
    assert re.search(r"^kernel 0 - main at line \d+ - ", done.err, re.MULTILINE)


def sorted_items(counts: Any) -> Any:
    return sorted(counts.items()) if isinstance(counts, dict) else counts


def test_several_devices(openmp: Callable[[str], Path], stacked: Stacked) -> None:
    done = stacked.alone(openmp("openmp_devices"), device="emulator:gfx90a*3", **MANDATORY)
    assert (done.code, done.out) == (0, "3 devices\nPASSED\n"), done.err
