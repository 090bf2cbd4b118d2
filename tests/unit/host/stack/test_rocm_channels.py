"""Channels on ROCm's own stack: the ring is in memory of ROCr's, and every record comes."""

from __future__ import annotations

from itertools import product
from math import ceil, prod
from pathlib import Path
from typing import Any

import pytest
from stacked_programs import some

TOOLS = Path(__file__).resolve().parents[1] / "worker"
LEVELS = "hip", "hsa"
TOOL = str(TOOLS / "wave_trace.py")


@pytest.mark.parametrize("name, level", some(product(("vector_add", "jacobi"), LEVELS), {
    ("vector_add", "hip"), ("vector_add", "hsa")}))
def test_every_launch_has_its_records(name: str, level: str, programs: Any, stacked: Any) -> None:
    done = stacked.under(TOOL, programs.hip(name), level=level)
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    reports = done.verdict["reports"]
    assert reports
    for row in reports:
        groups, size = prod(row["grid"]), prod(row["block"])
        assert row["report"] == {"waves": groups * ceil(size / 64), "begun": groups * ceil(size / 64), "whole": True,
                                 "items": groups * size}, row
    items = sum(row["report"]["items"] for row in reports)
    assert done.verdict["records"]["items"] == {"pushed": items, "kept": items, "dropped": 0, "failed": 0}


@pytest.mark.parametrize("level", some(LEVELS, {"hsa"}))
def test_launch_parameters(level: str, programs: Any, stacked: Any) -> None:
    """The launches of one queue and of several have what was set for each."""
    done = stacked.under(str(TOOLS / "weighed.py"), programs.hip("jacobi"), level=level)
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    assert len(done.verdict["reports"]) > 2
    for row in done.verdict["reports"]:
        waves, launch = prod(row["grid"]) * ceil(prod(row["block"]) / 64), row["launch"]
        weight = 3 * launch + (launch << 33) if launch else 1 << 40
        assert row["report"] == {"total": waves * weight, "numbers": waves * launch}, row


def test_where_nobody_waits_for_launches(programs: Any, stacked: Any) -> None:
    done = stacked.under(TOOL, programs.hip("threads"), "host", level="hsa", options=("-O", "per_launch=0"))
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    waves = sum(row["report"]["waves"] for row in done.verdict["reports"])
    assert done.verdict["records"]["begun"] == {"pushed": waves, "kept": waves, "dropped": 0, "failed": 0} and waves


@pytest.mark.parametrize("name, level", some(
    product(("vector_add", "jacobi", "threads", "devices", "rocm/graph"), LEVELS),
    {("vector_add", "hsa"), ("threads", "hsa"), ("devices", "hip"), ("rocm/graph", "hip")}))
def test_launch_variables(name: str, level: str, programs: Any, stacked: Any) -> None:
    """Every wave, work-group and work-item of every launch has a place of its own."""
    done = stacked.under(str(TOOLS / "balanced.py"), programs.hip(name), level=level, options=("-O", "whole=0"))
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    assert done.verdict["reports"] and done.verdict["lost_launches"] == 0
    for row in done.verdict["reports"]:
        assert row["report"]["wrong"] == [], row
        assert len(row["report"]["waves"]) == prod(row["grid"]) * ceil(prod(row["block"]) / 64)


def test_launches_that_need_too_much_run_as_they_are(programs: Any, stacked: Any) -> None:
    done = stacked.under(str(TOOLS / "oversized.py"), programs.hip("jacobi"), level="hsa")
    assert done.out == "PASSED\n" and done.code != 0, done.err
    assert done.err.count("run as they are: a launch of ") == len(done.verdict["refused"]) == 1
    assert done.verdict["reports"] == [] and done.verdict["lost_launches"] == 0


@pytest.mark.parametrize("level", some(LEVELS, {"hsa"}))
def test_variables_that_do_not_begin_as_zeros(level: str, programs: Any, stacked: Any, clang: str) -> None:
    """Each launch has them as they are given; what it reads of tables is in the copy."""
    done = stacked.under(str(TOOLS / "looking_up.py"), programs.hip("jacobi"), level=level)
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    assert len(done.verdict["reports"]) > 2
    for row in done.verdict["reports"]:
        waves = prod(row["grid"]) * ceil(prod(row["block"]) / 64)
        assert row["report"] == {"weighed": (waves << 40) + 5, "total": 11 * waves,
                                 "begun": [1, (1 << 40) + 7 * waves, 3]}, row


def test_a_program_that_writes_over_a_channel(programs: Any, stacked: Any) -> None:
    """Behind its buffer, where on a GPU, too, the tool's memory may lie: what is lost is said, and later launches have
    their records."""
    done = stacked.under(TOOL, programs.hip("rocm/faulty"), "beyond")
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    assert done.err.count("a kernel wrote over the memory of a tool's channel, so records are lost") == 1, done.err
    assert done.verdict["reports"][-1]["report"]["items"] == 64
