"""However a program ends, and whatever it does to its files and its environment: every launch is accounted for, what a
kernel was at is told, and nothing waits for ever."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from compiled_programs import TARGET

from luthier_py.samples import FOLDER

HostProgram = Callable[..., Path]
Program = Callable[..., Path]
Run = Callable[..., Any]
Tooled = Callable[..., Any]
CODE, LAUNCHES = FOLDER / "vector_add.co", 20
PATIENCE = 600.0
"""Seconds; only a worker that hangs meets it."""


def verdict_at(path: Path) -> dict[str, Any]:
    """A worker ends after its program."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if path.exists() and (found := json.loads(path.read_text()))["ended"]:
            return dict(found)
        time.sleep(0.02)
    raise AssertionError("no verdict")


@pytest.mark.parametrize("per_launch", ("1", "0"))
@pytest.mark.parametrize("how", ("exit", "quick", "_exit", "exec", "signal"))
def test_each_launch_is_accounted_for(
    how: str, per_launch: str, host_program: HostProgram, tooled: Tooled, tmp_path: Path
) -> None:
    """Also where the program does not wait for them: they have left a count, or are told to have left none."""
    kept = tmp_path / "kept.json"
    options = {"LUTHIER_TOOL_OPTIONS": f"per_launch={per_launch}", "LUTHIER_VERDICT": str(kept)}
    done = tooled(host_program("ending_program"), CODE, how, **options)
    assert done.code == (-15 if how == "signal" else 0), done.err
    found = verdict_at(kept)
    assert (found["launches"], found["selected"]) == (LAUNCHES, LAUNCHES)
    assert found["instrumented"] + found["lost_launches"] == LAUNCHES
    if how in ("exit", "quick"):
        assert found["instrumented"] == LAUNCHES
    elif found["lost_launches"]:
        assert any("the program ended by a signal, _exit or exec" in reason for reason in found["reasons"])
    assert "no launch came to the tool" not in found["reasons"]


@pytest.mark.parametrize("tool", ("", "instr_count"))
def test_a_cleared_environment(tool: str, host_program: HostProgram, run: Run, tooled: Tooled) -> None:
    """Device, tool and options are those that the program was started with."""
    words = host_program("ending_program"), CODE, "cleared"
    if not tool:
        done = run(*words)
        assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
        return
    under = tooled(*words, tool=tool, INSTR_END="0", TOOL_VERBOSE="1")
    assert (under.code, under.out) == (0, "0\n"), under.err
    assert under.verdict["launches"] == LAUNCHES and under.verdict["instrumented"] == 0
    assert "INSTR_END=0" in under.verdict["reasons"][0]


@pytest.mark.parametrize("tool", ("", "instr_count"))
def test_closed_files(tool: str, host_program: HostProgram, run: Run, tooled: Tooled) -> None:
    """The device is gone, and so is the tool; each says why, and no call waits."""
    words = host_program("ending_program"), CODE, "closed"
    done = tooled(*words, tool=tool) if tool else run(*words)
    err = done.err if tool else done.stderr
    assert (done.out if tool else done.stdout) == "719\n", err
    assert err.count("the program has closed file descriptor") == 1 + bool(tool), err
    if tool:
        assert done.verdict["instrumented"] >= LAUNCHES
        assert done.verdict["instrumented"] + done.verdict["lost_launches"] == done.verdict["selected"]


def test_where_a_kernel_stood_when_its_program_was_interrupted(program: Program, run: Run) -> None:
    done = run(program("faults"), "interrupted")
    assert done.returncode == -2 and len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("luthier: the program ended while this kernel ran: wave 0 of work-group 0 at pc 0x")
    assert done.stderr.endswith("[kernel answered(int volatile*)]\n")


@pytest.mark.parametrize("tool", ("", "instr_count"))
def test_a_command_ends_after_all_is_said(tool: str, program: Program, tmp_path: Path) -> None:
    """What comes of a worker is in a file, too, that is read when `exec` has ended."""
    words = ["exec", *(("-t", tool) if tool else ()), "--device", f"emulator:{TARGET}", "--", program("faults")]
    with (tmp_path / "errors").open("w") as errors:
        code = subprocess.call([sys.executable, "-m", "luthier_py", *map(str, words), "interrupted"], stderr=errors)
    assert code == 128 + 2 and "luthier: the program ended while this kernel ran" in (tmp_path / "errors").read_text()
