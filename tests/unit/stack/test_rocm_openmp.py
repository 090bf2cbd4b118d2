"""OpenMP offload on ROCr, as clang 19 and its libomptarget do it: no HIP is in between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from stacked_programs import PROGRAMS, Stacked

NAMES = sorted(path.stem for path in PROGRAMS.glob("openmp_*.c"))
MANDATORY = {"OMP_TARGET_OFFLOAD": "MANDATORY"}  # no fallback to the host


@pytest.mark.parametrize("name", NAMES)
def test_alone(name: str, openmp: Callable[[str], Path], stacked: Stacked) -> None:
    done = stacked.alone(openmp(name), **MANDATORY)
    assert done.code == 0 and done.out.endswith("PASSED\n"), done.err
    assert done.profile and all(row["kernel"].startswith("__omp_offloading_") for row in done.profile)


def test_several_devices(openmp: Callable[[str], Path], stacked: Stacked) -> None:
    done = stacked.alone(openmp("openmp_devices"), device="emulator:gfx90a*3", **MANDATORY)
    assert (done.code, done.out) == (0, "3 devices\nPASSED\n"), done.err
