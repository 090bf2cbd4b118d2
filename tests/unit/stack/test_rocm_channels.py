"""Channels on ROCm's own stack: the ring is in memory of ROCr's, and every record comes."""

from __future__ import annotations

from math import ceil, prod
from pathlib import Path
from typing import Any

import pytest

TOOL = str(Path(__file__).resolve().parents[1] / "worker" / "wave_trace.py")


@pytest.mark.parametrize("name", ("vector_add", "jacobi"))
def test_every_launch_has_its_records(name: str, programs: Any, stacked: Any) -> None:
    done = stacked.under(TOOL, programs.hip(name), level="hip")
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    reports = done.verdict["reports"]
    assert reports
    for row in reports:
        groups, size = prod(row["grid"]), prod(row["block"])
        assert row["report"] == {"waves": groups * ceil(size / 64), "begun": groups * ceil(size / 64), "whole": True,
                                 "items": groups * size}, row
    items = sum(row["report"]["items"] for row in reports)
    assert done.verdict["records"]["items"] == {"pushed": items, "kept": items, "dropped": 0, "failed": 0}


def test_the_level_of_hsa_says_that_it_does_not_serve_them(programs: Any, stacked: Any) -> None:
    done = stacked.under(TOOL, programs.hip("vector_add"), level="hsa")
    assert done.out == "PASSED\n" and "channels and parameters are served at the level of HIP" in done.err
