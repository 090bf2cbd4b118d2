"""Constants in copies that are loaded beside the code of a program: hooks find them, from the cache as well."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, prod
from pathlib import Path
from typing import Any

TOOL = Path(__file__).with_name("looking_up.py")


def test_tables_under_a_program(program: Callable[..., Path], tooled: Callable[..., Any], clang: str) -> None:
    for _ in range(2):
        done = tooled(program("jacobi"), tool=TOOL)
        assert (done.code, done.out) == (0, "PASSED\n"), done.err
        assert len(done.verdict["reports"]) > 1
        for row in done.verdict["reports"]:
            waves = prod(row["grid"]) * ceil(prod(row["block"]) / 64)
            assert row["report"] == {"weighed": waves << 40, "total": 11 * waves}, row
