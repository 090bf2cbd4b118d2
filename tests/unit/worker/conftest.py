"""HIP programs as test subjects: built once for each source, run on the emulator alone or under a tool."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pytest
from program_builder import builder

from luthier_py.runtime.hip import runtime_folder
from luthier_py.runtime.preload import tool_library

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "tests" / "programs"
TARGET = "gfx90a"
SECONDS = 60

Run = Callable[..., subprocess.CompletedProcess[str]]


HEADERS = {builder.hip_major(path): path for path in reversed(builder.header_folders())}


@pytest.fixture(scope="session")
def program(require_tool: Callable[[str], str], request: pytest.FixtureRequest) -> Callable[..., Path]:
    """``program(name, major)``: tests/programs/NAME.hip as an executable, linked with that libamdhip64.so.

    See :func:`build.build` for the other parameters.
    """
    require_tool("clang++-22")
    require_tool("cc")
    if not HEADERS:
        missing("no HIP headers: install ROCm, or triton from PyPI, which has them, or set LUTHIER_HIP_INCLUDE")
    folder = request.config.cache.mkdir("programs")

    def make(name: str, major: int | None = None, targets: tuple[str, ...] = (TARGET,), compressed: int = 0,
             entry: str = "", extra: tuple[str, ...] = ()) -> Path:
        major = major or max(HEADERS)
        headers = HEADERS.get(major) or HEADERS[max(HEADERS)]
        source = PROGRAMS / f"{name}.hip"
        if builder.LINKED in source.read_text() and builder.device_library(headers) is None:
            missing("no device library (ockl.bc): install ROCm, rocm-device-libs, or triton from PyPI")
        texts = [source, *sorted(PROGRAMS.glob("*.h")), PROGRAMS / "build.py"]
        how = {"abi": major, "compressed": compressed, "entry": entry, "extra": extra}
        digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in texts) + repr((targets, how)).encode())
        output = Path(folder) / f"{name}-{digest.hexdigest()[:16]}"
        if not output.exists():
            builder.build(source, output, headers, runtime_folder(), targets, **how)
        return output

    return make


@pytest.fixture(scope="session")
def host_program(require_tool: Callable[[str], str], request: pytest.FixtureRequest) -> Callable[..., Path]:
    """``host_program(name, *flags)``: NAME.c beside this file as an executable; ``linked``: with libamdhip64."""
    compiler, folder = require_tool("cc"), Path(request.config.cache.mkdir("programs"))

    def make(name: str, *flags: str, linked: bool = True) -> Path:
        source, libraries = Path(__file__).parent / f"{name}.c", runtime_folder()
        digest = hashlib.sha256(source.read_bytes() + repr((flags, linked)).encode()).hexdigest()
        output = folder / f"{name}-{digest[:16]}"
        if not output.exists():
            library = (f"-L{libraries}", "-l:libamdhip64.so.7") if linked else ("-ldl",)
            words = ["-Wall", *flags, source, "-o", output, *library, "-pthread"]
            subprocess.run([compiler, *words], check=True)
        return output

    return make


def missing(words: str) -> NoReturn:
    (pytest.fail if os.environ.get("LUTHIER_REQUIRE_TOOLS") == "1" else pytest.skip)(words)


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


@pytest.fixture
def counted(run: Run, tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """What the emulator itself counts of each launch of a program that runs alone."""

    def alone(*command: str | Path, **environment: str) -> list[dict[str, Any]]:
        profile = tmp_path / "profile"
        profile.unlink(missing_ok=True)
        done = run(*command, LUTHIER_DEVICE_PROFILE=str(profile), **environment)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        return [json.loads(line) for line in profile.read_text().splitlines()]

    return alone
