"""Unmodified HIP programs, which check themselves, on the emulator alone."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAMS = sorted(path.stem for path in (Path(__file__).resolve().parents[2] / "programs").glob("*.hip"))

Program = Callable[..., Path]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, program: Program, run: Run) -> None:
    done = run(program(name))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.endswith("PASSED\n")


@pytest.mark.parametrize("major", (5, 6, 7))
def test_every_abi(major: int, program: Program, run: Run) -> None:
    done = run(program("vector_add", major))
    assert (done.returncode, done.stdout, done.stderr) == (0, "PASSED\n", "")
