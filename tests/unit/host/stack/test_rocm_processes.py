"""Memory that processes share on ROCm's own stack, each with an emulated driver of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from stacked_programs import Programs, Stacked, executed, reported

PROGRAM = "rocm/two_processes"


def test_both_see_what_either_writes(programs: Programs, stacked: Stacked, tmp_path: Path) -> None:
    """Memory of the device, by a handle; pages of a file, which both register."""
    done = stacked.alone(programs.hip(PROGRAM), tmp_path / "shared")
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    assert len(done.profile) == 4


def test_on_our_runtime(programs: Programs, stacked: Stacked, tmp_path: Path) -> None:
    """The same executable, whose workers map the file."""
    done = stacked.on_ours(programs.hip(PROGRAM), tmp_path / "shared")
    assert (done.code, done.out, done.err) == (0, "PASSED\n", "") and len(done.profile) == 4


@pytest.mark.parametrize("level", ["hip", "hsa"])
def test_under_a_tool(level: str, programs: Programs, stacked: Stacked, tmp_path: Path) -> None:
    """It has a worker for each process, and one verdict of the first."""
    alone = stacked.alone(programs.hip(PROGRAM), tmp_path / "alone")
    done = stacked.under("instr_count", programs.hip(PROGRAM), tmp_path / level, level=level)
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    assert len({count for _, count in executed(alone, "instr_count")}) == 1
    assert set(reported(done, "instr_count")) == set(executed(alone, "instr_count"))
