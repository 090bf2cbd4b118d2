"""Tools that find mistakes, under HIP programs as they are: results stay right, and nothing is told of them."""

from __future__ import annotations

import re

import pytest

NOTHING = {
    "racecheck": r" 0 races$", "waitcheck": r": 0 waits missing$",
    "initcheck": r"nobody wrote is read by 0 instructions$",
    "synccheck": r"in 0 work-groups not all waves come to the same$",
    "memcheck": r" allocations?; bad accesses of 0 instructions$",
}
PROGRAMS = ("reduction", "scan", "histogram", "transpose", "softmax", "bitonic_sort", "lud_diagonal", "walsh_transform",
            "jacobi")
QUICK = {("reduction", "racecheck"), ("reduction", "memcheck")}
WITHOUT_BARRIERS = {(name, tool) for name in ("bitonic_sort", "jacobi")
                    for tool in ("racecheck", "initcheck", "synccheck")}
CASES = [pytest.param(name, tool, marks=() if (name, tool) in QUICK else pytest.mark.slow)
         for name in PROGRAMS for tool in NOTHING]


@pytest.mark.parametrize(("name", "tool"), CASES)
def test_right_programs(name, tool, program, tooled):
    done = tooled(program(name), tool=tool)
    assert done.code == 0 and done.out.endswith("PASSED\n") and done.verdict["failed"] == []
    lines = [line for line in done.err.splitlines() if re.match(r"kernel \d+ - ", line)]
    assert all(re.search(NOTHING[tool], line) for line in lines), done.err
    assert lines or (name, tool) in WITHOUT_BARRIERS and f"there is nothing for {tool}" in done.err
