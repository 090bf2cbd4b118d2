"""Constants in copies that are loaded beside the code of a program: hooks find them, from the cache as well."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, prod
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).with_name("looking_up.py")


def waves_of(row: Any) -> int:
    """Graphs launch a kernel several times in a row."""
    return row.get("launches", 1) * prod(row["grid"]) * ceil(prod(row["block"]) / 64)


@pytest.mark.parametrize("name", ["jacobi", "graphs", "streams_events"])
def test_tables_and_initial_values_under_a_program(
    name: str, program: Callable[..., Path], tooled: Callable[..., Any], clang: str
) -> None:
    for _ in range(2):
        done = tooled(program(name), tool=TOOL)
        assert (done.code, done.out) == (0, "PASSED\n"), done.err
        assert len(done.verdict["reports"]) > 1
        for row in done.verdict["reports"]:
            waves = waves_of(row)
            assert row["report"] == {"weighed": (waves << 40) + 5, "total": 11 * waves,
                                     "begun": [1, (1 << 40) + 7 * waves, 3]}, row


def test_values_grow_from_what_they_are_at_first(
    program: Callable[..., Path], tooled: Callable[..., Any], clang: str
) -> None:
    """Where launches are not told apart, variables begin once for each kernel."""
    alone = tooled(program("jacobi"), tool=TOOL).verdict["reports"]
    done = tooled(program("jacobi"), tool=TOOL, LUTHIER_TOOL_OPTIONS="per_launch=0")
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    kernels, waves = done.verdict["reports"], sum(map(waves_of, alone))
    assert sum(row["report"]["total"] for row in kernels) == 11 * waves
    assert sum(row["report"]["begun"][1] for row in kernels) == len(kernels) * (1 << 40) + 7 * waves
    assert all(row["report"]["begun"][::2] == [1, 3] for row in kernels)
