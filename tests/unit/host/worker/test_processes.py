"""A tool under programs that fork, exec, take signals, end in the middle, load and unload; how it counts over all."""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from luthier_py.host.hip import runtime_folder

Tooled = Callable[..., Any]
HERE = Path(__file__).resolve().parent
PROGRAM = HERE / "process_program.py"
CODE = HERE.parents[2] / "data" / "vector_add.co"

GROWING = """
from luthier_py import LaunchResult, Mutator, Tool, Variable, hook, ptr, u64
from luthier_py.intrinsics import atomic_add

class Waves(Tool):
    "Waves of all launches together."
    name = "waves"
    per_launch = False
    total = Variable(u64)

    @hook(lanes="one")
    def one(total: ptr[u64]) -> None:
        atomic_add(total, 1)

    def instrument(self, m: Mutator) -> None:
        for kernel in m.kernels:
            m.at_exit(kernel, self.one, self.total)

    def text(self, launch: LaunchResult, report: object) -> str:
        return f"{launch.launches} launches, {launch[self.total]} waves"
"""
WAVES = 8  # of one launch


@pytest.fixture(autouse=True)
def needed(require_tool: Callable[[str], str]) -> None:
    require_tool("cc")
    if importlib.util.find_spec("hip") is None:
        pytest.skip("hip-python is not installed")


@pytest.fixture
def under(tooled: Tooled) -> Tooled:
    def run(what: str, **environment: str) -> Any:
        return tooled(sys.executable, PROGRAM, CODE, what, ROCM_PATH=str(runtime_folder()), **environment)

    return run


def launches(done: Any) -> list[int]:
    return [row["launch"] for row in done.verdict["reports"]]


def test_signals_attach_and_detach(under: Tooled) -> None:
    done = under("toggle", LUTHIER_SIGNAL="USR1")
    assert (done.code, done.out) == (0, "4\n"), done.err
    assert launches(done) == [0, 3] and (done.verdict["launches"], done.verdict["selected"]) == (4, 2)


def test_a_handler_of_the_program_goes_first(under: Tooled) -> None:
    done = under("own_handler", LUTHIER_SIGNAL="SIGUSR1")
    assert (done.code, done.out) == (0, "12\n") and launches(done) == [0, 1]


def test_unknown_signals_are_said(under: Tooled) -> None:
    done = under("reload", LUTHIER_SIGNAL="NONE")
    assert done.out == "6\n" and "LUTHIER_SIGNAL=NONE is no signal" in done.err


def test_fork(under: Tooled) -> None:
    done = under("fork")
    assert (done.code, done.out) == (0, "12\n"), done.err
    assert launches(done) == [0, 1] and done.err.count("verdict:") == 1


def test_exec_and_exit_without_a_word(under: Tooled, tmp_path: Path) -> None:
    """Each program that the process becomes has its own verdict; here they go to files of their own kind."""
    output = tmp_path / "counts.txt"
    done = under("execute", LUTHIER_OUTPUT=str(output))
    assert (done.code, done.out) == (5, "2\n"), done.err
    wait_for(lambda: output.read_text().count("verdict:") == 2)
    lines = output.read_text().splitlines()
    assert sum("#workgroups" in line for line in lines) == 3
    assert sorted(line.split(",")[0] for line in lines if line.startswith("verdict:")) == [
        "verdict: 1 launch", "verdict: 2 launches",
    ]  # fmt: skip


def test_killed_programs_leave_their_counts(under: Tooled, tmp_path: Path) -> None:
    kept = tmp_path / "kept-%p.json"
    done = under("killed", LUTHIER_VERDICT=str(kept))
    assert done.code == -9
    wait_for(lambda: len(list(tmp_path.glob("kept-*.json"))) == 1)
    (path,) = tmp_path.glob("kept-*.json")
    assert path.stem.removeprefix("kept-").isdigit()
    assert len(json.loads(path.read_text())["reports"]) == 3


def test_modules_come_and_go(under: Tooled) -> None:
    done = under("reload")
    assert done.out == "6\n" and launches(done) == list(range(6))
    assert len({row["report"]["instructions"] for row in done.verdict["reports"]}) == 1


def test_growing_variables(under: Tooled, tmp_path: Path) -> None:
    """Read when a module goes, and at the end."""
    tool = tmp_path / "waves.py"
    tool.write_text(GROWING)
    done = under("reload", tool=str(tool))
    assert done.out == "6\n", done.err
    found = [(row["launches"], row["report"]["total"]) for row in done.verdict["reports"]]
    assert found == [(2, 2 * WAVES)] * 3 and done.verdict["instrumented"] == 6
    done = under("toggle", tool=str(tool), LUTHIER_SIGNAL="USR1")
    assert [(row["launches"], row["report"]["total"]) for row in done.verdict["reports"]] == [(2, 2 * WAVES)]
    assert "2 launches, 16 waves" in done.err


def wait_for(condition: Callable[[], bool]) -> None:
    """A worker ends after its program; only one that hangs meets the bound, ten minutes."""
    for _ in range(12000):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("never")
