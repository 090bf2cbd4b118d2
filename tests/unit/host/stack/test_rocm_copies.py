"""Faults in a tool's copies on ROCm's own stack: they are told of the program's code, as on our own runtime."""

from __future__ import annotations

import re

import pytest
from stacked_programs import Programs, Stacked

PROGRAM = "rocm/faulty"
LOOP_BYTES = 64  # of the kernel that does not end: its waves stand somewhere there


@pytest.mark.parametrize("level", ["hip", "hsa"])
@pytest.mark.parametrize("what", ["address", "endless"])
def test_faults_are_told_of_the_program(what: str, level: str, programs: Programs, stacked: Stacked) -> None:
    """With its own addresses, and a launch that left no count says that it failed."""
    limit = {"LUTHIER_TIME_LIMIT": "3"} if what == "endless" else {}
    program = programs.hip(PROGRAM)
    alone = stacked.alone(program, what, **limit)
    done = stacked.under("instr_count", program, what, level=level, **limit)
    told, ours = (next(line for line in err.splitlines() if f"kernel {what}(" in line) for err in (alone.err, done.err))
    places = [int(re.findall(r"pc 0x(\w+)", line)[0], 16) for line in (told, ours)]
    assert ours == told if what == "address" else abs(places[0] - places[1]) < LOOP_BYTES, ours
    assert done.verdict["reasons"] == ["1 launch left no count: the device failed first"]
