"""HIP programs as test subjects, run on the emulator alone or under a tool."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from compiled_programs import HEADERS, TARGET, begin, chosen_programs, hip_recipe, host_program, program

from luthier_py.host.hip import runtime_folder
from luthier_py.host.preload import tool_library

__all__ = ["host_program", "program"]

SECONDS = 600
"""Only a program that hangs meets it."""

Run = Callable[..., subprocess.CompletedProcess[str]]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Programs are compiled while the first tests run."""
    if HEADERS and not session.config.option.collectonly:
        begin(map(hip_recipe, chosen_programs(session.items)))


def run_program(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run on the emulator; never longer than SECONDS."""
    settings = {"LUTHIER_DEVICE": f"emulator:{TARGET}", "LD_LIBRARY_PATH": str(runtime_folder()), **environment}
    return subprocess.run(
        [str(part) for part in command], env={**os.environ, **settings}, capture_output=True, text=True, timeout=SECONDS
    )


@pytest.fixture
def run() -> Callable[..., subprocess.CompletedProcess[str]]:
    return run_program


class Tooled(NamedTuple):
    """A program that ran under a tool; ``verdict`` is None where there was none."""

    code: int
    out: str
    err: str
    verdict: Any


@pytest.fixture
def tooled(run: Run, tmp_path: Path) -> Callable[..., Tooled]:
    """``tooled(program, *arguments, tool=..., NAME=value)``: with the tool preloaded."""

    def under(*command: str | Path, tool: str | Path = "instr_count", **environment: str) -> Tooled:
        verdict = tmp_path / "verdict.json"
        verdict.unlink(missing_ok=True)
        settings = {"LD_PRELOAD": str(tool_library()), "LUTHIER_TOOL": str(tool), "LUTHIER_VERDICT": str(verdict)}
        done = run(*command, **{**settings, **environment})
        found = json.loads(verdict.read_text()) if verdict.exists() else None
        return Tooled(done.returncode, done.stdout, done.stderr, found)

    return under


class Alone(NamedTuple):
    """A program that ran without a tool, and what the emulator counted of each of its launches."""

    out: str
    rows: list[dict[str, Any]]


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Alone]:
    """``alone(program, *arguments, NAME=value)``: one run serves all tests that compare with it."""
    profile, known = tmp_path_factory.mktemp("alone") / "profile", {}

    def find(*command: str | Path, **environment: str) -> Alone:
        key = *map(str, command), *sorted(environment.items())
        if key not in known:
            profile.unlink(missing_ok=True)
            done = run_program(*command, LUTHIER_DEVICE_PROFILE=str(profile), **environment)
            assert (done.returncode, done.stderr) == (0, ""), done.stdout
            known[key] = Alone(done.stdout, [json.loads(line) for line in profile.read_text().splitlines()])
        return known[key]

    return find


@pytest.fixture
def counted(alone: Callable[..., Alone]) -> Callable[..., list[dict[str, Any]]]:
    """What the emulator itself counts of each launch of a program that runs alone."""
    return lambda *command, **environment: alone(*command, **environment).rows
