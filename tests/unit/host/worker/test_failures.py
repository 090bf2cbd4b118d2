"""Whatever goes wrong with a tool: the program's output and exit code are its own, and one line on stderr says why."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Program = Callable[..., Path]
Tooled = Callable[..., Any]

LAUNCHES = "bitonic_sort"  # one kernel, launched many times
TOOL = """
import os, signal
from luthier_py import LaunchResult, Mutator, Tool, Variable, hook, ptr, u64
from luthier_py.intrinsics import atomic_add

class Broken(Tool):
    "Breaks where it is told to."
    name = "broken"
    total = Variable(u64)

    @hook(lanes="one")
    def one(total: ptr[u64]) -> None:
        atomic_add(total, 1)

    def instrument(self, m: Mutator) -> None:
        INSTRUMENT
        for kernel in m.kernels:
            m.at_exit(kernel, self.one, self.total)

    def report(self, launch: LaunchResult) -> object:
        REPORT
        return "report of " + str(launch.index)

    def text(self, launch: LaunchResult, report: object) -> str:
        TEXT
        return str(report)
"""
RAISE = "raise RuntimeError('two\\n lines')"
KILL = "os.kill(os.getpid(), signal.SIGKILL)"
LATER = "if launch.index == 2: "
WRAPPER = """#!/bin/sh
for last; do :; done
test "$last" = tool && {what}
exec {python} "$@"
"""

Broken = Callable[..., Path]


@pytest.fixture
def broken(tmp_path: Path) -> Broken:
    def make(**places: str) -> Path:
        text = TOOL
        for place in ("instrument", "report", "text"):
            text = text.replace(place.upper(), places.get(place, "pass"))
        path = tmp_path / "broken.py"
        path.write_text(text)
        return path

    return make


@pytest.fixture
def python(tmp_path: Path) -> Callable[[str], str]:
    """A Python that does ``what`` in the place of a tool's worker."""

    def make(what: str) -> str:
        path = tmp_path / "python"
        path.write_text(WRAPPER.format(what=what, python=sys.executable))
        path.chmod(0o755)
        return str(path)

    return make


def complaints(done: Any) -> list[str]:
    """What was said that is not said when all goes well."""
    lines = [line for line in done.err.splitlines() if line.startswith("luthier: ")]
    return [line for line in lines if not line.startswith(("luthier: tool ", "luthier: verdict: "))]


def is_bare(done: Any) -> bool:
    return (done.code, done.out) == (0, "PASSED\n") and "Traceback" not in done.err


def test_a_mistake_that_each_kernel_meets_is_told_once(program: Program, tooled: Tooled, broken: Broken) -> None:
    done = tooled(program("scan"), tool=broken(instrument=RAISE))
    assert is_bare(done), done.out + done.err
    kernels = len(done.verdict["refused"])
    assert kernels > 1 and done.err.count("RuntimeError: two lines") == 2, done.err  # and in the verdict
    assert f"  refused: {kernels} kernels " in done.err


@pytest.mark.parametrize("place, said", [
    ("instrument", "runs as it is: RuntimeError: two lines"),
    ("report", "RuntimeError: two lines"),
    ("text", "RuntimeError: two lines"),
])  # fmt: skip
def test_exceptions(place: str, said: str, program: Program, tooled: Tooled, broken: Broken) -> None:
    tool = broken(**{place: RAISE})
    done = tooled(program(LAUNCHES), tool=tool)
    assert is_bare(done), done.out + done.err
    lines = complaints(done)
    assert all(said in line and f"{tool}:" in line and f"in {place}" in line for line in lines)
    if place == "instrument":
        assert len(lines) == 1 and done.verdict["refused"][0]["reason"].startswith("RuntimeError: two lines")
    else:
        assert done.verdict["instrumented"] == done.verdict["launches"]
        assert [f"Broken.{place}, launch {launch} of kernel" in line for launch, line in enumerate(lines)] == [
            True] * done.verdict["launches"]
        assert done.verdict["failed"] == [f"Broken.{place}"]


@pytest.mark.parametrize("place", ["report", "text"])
def test_a_launch_without_a_report_costs_no_other(place: str, program: Program, tooled: Tooled, broken: Broken) -> None:
    done = tooled(program(LAUNCHES), tool=broken(**{place: LATER + RAISE}))
    assert is_bare(done) and done.verdict["launches"] > 3
    (line,) = complaints(done)
    assert f"Broken.{place}, launch 2 of kernel" in line and done.verdict["failed"] == [f"Broken.{place}"]
    told = [launch for launch in range(done.verdict["launches"]) if f"report of {launch}\n" in done.err]
    assert told == [launch for launch in range(done.verdict["launches"]) if launch != 2]


def test_tracebacks_on_demand(program: Program, tooled: Tooled, broken: Broken) -> None:
    done = tooled(program("vector_add"), tool=broken(report=RAISE), TOOL_VERBOSE="1")
    assert done.code == 0 and done.err.count("Traceback") == 1


@pytest.mark.parametrize("place, launches", [("instrument", 0), ("report", 2)])
def test_worker_killed(place: str, launches: int, program: Program, tooled: Tooled, broken: Broken) -> None:
    tool = broken(**{place: KILL if place == "instrument" else LATER + KILL})
    done = tooled(program(LAUNCHES), tool=tool)
    assert is_bare(done), done.out + done.err
    (line,) = complaints(done)
    ends = ["; kernels run as they are"] + [" before its verdict"] * (place == "report")  # where all launches were over
    assert line in [f"luthier: the tool's worker has ended{end}" for end in ends]
    assert done.err.count("report of") == launches


@pytest.mark.parametrize("what", ("exit 127", "kill -9 $$"))
def test_worker_that_does_not_start(
    what: str, program: Program, tooled: Tooled, python: Callable[[str], str]
) -> None:
    done = tooled(program(LAUNCHES), LUTHIER_PYTHON=python(what))
    assert is_bare(done) and complaints(done) == ["luthier: the tool's worker has ended; kernels run as they are"]


@pytest.mark.parametrize("tool, said", [
    ("no_such_tool", "no tool is called no_such_tool"),
    ("gone.py", "gone.py: no such tool file"),
])  # fmt: skip
def test_no_such_tool(tool: str, said: str, program: Program, tooled: Tooled) -> None:
    done = tooled(program(LAUNCHES), tool=tool)
    assert is_bare(done)
    (line,) = complaints(done)
    assert said in line


@pytest.mark.parametrize("variable", ("LUTHIER_OUTPUT", "LUTHIER_VERDICT"))
def test_full_disk(variable: str, program: Program, tooled: Tooled, broken: Broken, tmp_path: Path) -> None:
    full = tmp_path / "full.txt"
    full.symlink_to("/dev/full")
    done = tooled(program(LAUNCHES), tool=broken(), **{variable: str(full)})
    assert is_bare(done), done.out + done.err
    (line,) = complaints(done)
    assert "No space left on device" in line


@pytest.mark.parametrize("what", ("instrument", "report", "killed", "no worker", "no tool", "full disk"))
def test_strict_makes_failures_fatal(
    what: str, program: Program, tooled: Tooled, broken: Broken, python: Callable[[str], str], tmp_path: Path
) -> None:
    full = tmp_path / "full"
    full.symlink_to("/dev/full")
    places = {"instrument": {"instrument": RAISE}, "report": {"report": RAISE}, "killed": {"report": LATER + KILL}}
    environment = {
        "no worker": {"LUTHIER_PYTHON": python("exit 1")}, "no tool": {"LUTHIER_TOOL": "gone.py"},
        "full disk": {"LUTHIER_VERDICT": str(full)},
    }  # fmt: skip
    tool = broken(**places.get(what, {}))
    done = tooled(program(LAUNCHES), tool=tool, LUTHIER_STRICT="1", **environment.get(what, {}))
    assert done.code == 1 and "Traceback" not in done.err
    said = complaints(done)
    assert said[-1] == "luthier: stopped, since LUTHIER_STRICT is set" and 2 <= len(said) <= 3
    assert any("RuntimeError: two lines" in line for line in said) == (what in ("instrument", "report"))


def test_no_room_for_a_cache(program: Program, tooled: Tooled, broken: Broken) -> None:
    done = tooled(program(LAUNCHES), tool=broken(), LUTHIER_CACHE_DIR="/dev/full/cache", LUTHIER_STRICT="1")
    assert is_bare(done) and all("working without the cache /dev/full/cache" in line for line in complaints(done))
    assert done.verdict["instrumented"] == done.verdict["launches"]
