"""Tools under unmodified programs: same output, and the counts that the emulator makes itself."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from luthier_py.runtime.hip import tool_library

Program = Callable[..., Path]
Run = Callable[..., subprocess.CompletedProcess[str]]

PROGRAMS = sorted(path.stem for path in (Path(__file__).resolve().parents[2] / "programs").glob("*.hip"))
CAPTURED = {"graphs", "graph_nodes"}  # launches that a graph replays run as they are

BROKEN = """
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
        MUTATOR
        for kernel in m.kernels:
            m.at_exit(kernel, self.one, self.total)

    def report(self, launch: LaunchResult) -> object:
        REPORT
"""


def tooled(run: Run, program: Path, tmp_path: Path, tool: str = "instr_count", **more: str) -> tuple[Any, Any]:
    verdict = tmp_path / "verdict.json"
    verdict.unlink(missing_ok=True)
    environment = {"LD_PRELOAD": str(tool_library()), "LUTHIER_TOOL": tool, "LUTHIER_VERDICT": str(verdict), **more}
    done = run(program, **environment)
    return done, json.loads(verdict.read_text()) if verdict.exists() else None


def bare_counts(run: Run, program: Path, tmp_path: Path) -> list[dict[str, Any]]:
    profile = tmp_path / "profile"
    done = run(program, LUTHIER_DEVICE_PROFILE=str(profile))
    assert (done.returncode, done.stdout, done.stderr) == (0, "PASSED\n", "")
    return [json.loads(line) for line in profile.read_text().splitlines()]


@pytest.mark.parametrize("name", PROGRAMS)
def test_counts(name: str, program: Program, run: Run, tmp_path: Path) -> None:
    """Each program alone, then under the tool."""
    counted = bare_counts(run, program(name), tmp_path)
    done, verdict = tooled(run, program(name), tmp_path)
    assert (done.returncode, done.stdout[-7:]) == (0, "PASSED\n"), done.stdout + done.stderr
    expected = Counter((row["kernel"], row["instructions"]) for row in counted)
    found = Counter((row["kernel"], row["report"]["instructions"]) for row in verdict["reports"])
    assert not verdict["refused"] and verdict["reports"]
    if name == "cooperative":  # its waves spin: how often is up to the schedule
        assert [kernel for kernel, _ in found] == [kernel for kernel, _ in expected]
    elif name in CAPTURED:
        assert not found - expected
    else:
        assert found == expected


def test_opcodes(program: Program, run: Run, tmp_path: Path) -> None:
    counted = bare_counts(run, program("transpose"), tmp_path)
    _, verdict = tooled(run, program("transpose"), tmp_path, "opcode_histogram")
    assert sum(sum(row["opcodes"].values()) for row in counted) == sum(
        _total(row["report"]) for row in verdict["reports"]
    )


def _total(report: Any) -> int:
    return (
        sum(_total(v) for v in report.values())
        if isinstance(report, dict)
        else int(report)
        if report is not None
        else 0
    )


def test_kernels_and_launch_range(program: Program, run: Run, tmp_path: Path) -> None:
    _, verdict = tooled(run, program("reduction"), tmp_path, LUTHIER_KERNELS="sequential$")
    assert [row["kernel"] for row in verdict["reports"]] == ["reduce_sequential"] and verdict["launches"] == 2
    _, verdict = tooled(run, program("bitonic_sort"), tmp_path, START_GRID_NUM="3", END_GRID_NUM="5")
    assert [row["launch"] for row in verdict["reports"]] == [3, 4, 5]
    _, verdict = tooled(run, program("vector_add"), tmp_path, ACTIVE_FROM_START="0")
    assert verdict["reports"] == [] and verdict["launches"] == 1


@pytest.mark.parametrize("mutator, report", [("raise RuntimeError('x')", "pass"), ("pass", "return 1 // 0")])
def test_a_tool_that_fails_leaves_the_program_alone(
    mutator: str, report: str, program: Program, run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "broken.py"
    path.write_text(BROKEN.replace("MUTATOR", mutator).replace("REPORT", report))
    done, _ = tooled(run, program("vector_add"), tmp_path, str(path))
    assert (done.returncode, done.stdout) == (0, "PASSED\n")
    assert "luthier: " in done.stderr


def test_strict_makes_failures_fatal(program: Program, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text(BROKEN.replace("MUTATOR", "raise RuntimeError('x')").replace("REPORT", "pass"))
    done, _ = tooled(run, program("vector_add"), tmp_path, str(path), LUTHIER_STRICT="1")
    assert done.returncode == 1 and "LUTHIER_STRICT" in done.stderr


def test_unknown_tool(program: Program, run: Run, tmp_path: Path) -> None:
    done, _ = tooled(run, program("vector_add"), tmp_path, "no_such_tool")
    assert (done.returncode, done.stdout) == (0, "PASSED\n") and "no tool is called no_such_tool" in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_child_of_an_early_fork_is_counted_too(program: Program, run: Run, tmp_path: Path) -> None:
    done = run(program("faults"), "early", LD_PRELOAD=str(tool_library()), LUTHIER_TOOL="instr_count")
    assert (done.returncode, done.stdout) == (0, "PASSED\n")
    assert done.stderr.count("verdict: 1 launches, 1 instrumented") == 2
