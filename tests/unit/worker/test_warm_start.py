"""What a program's start on the emulator imports when everything was translated before: nothing that translates."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Program = Callable[..., Path]
Run = Callable[..., subprocess.CompletedProcess[str]]

MOST = 90
"""Modules of this package; 76 when this was written, and 200 before."""
NEVER = ("luthier_py.isa.semantics", "luthier_py.isa.decode", "luthier_py.isa.text", "luthier_py.isa.assembly",
         "luthier_py.emulator.translat(e|ing)$", "luthier_py.emulator.dispatch", "luthier_py.emulator.native",
         "luthier_py.emulator.scheduler", "luthier_py.analysis", "luthier_py.tool", "luthier_py.session",
         "luthier_py.cli", "zstandard", "rich", "click", "asyncio", "concurrent")  # fmt: skip


@pytest.fixture
def imported(tmp_path: Path, program: Program, run: Run) -> Callable[..., list[str]]:
    """Names of the modules that a program's worker imports, in order."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -X importtime "$@"\n')
    python.chmod(0o755)

    def names(name: str, **environment: str) -> list[str]:
        environment = {"LUTHIER_PYTHON": str(python), "LUTHIER_CACHE_DIR": str(tmp_path / "cache"), **environment}
        done = run(program(name), **environment)
        assert (done.returncode, done.stdout) == (0, "PASSED\n")
        return re.findall(r"^import time:.*\| +(\S+)$", done.stderr, re.MULTILINE)

    return names


def never(names: list[str]) -> list[str]:
    return [name for name in names if any(re.match(rf"{one}(\.|$)|{one}", name) for one in NEVER)]


@pytest.mark.parametrize("name", ("vector_add", "reduction", "bitonic_sort"))
def test_a_warm_start_imports_nothing_that_translates(name: str, imported: Callable[..., list[str]]) -> None:
    cold, warm = imported(name), imported(name)
    assert never(cold) and not never(warm)
    ours = {name for name in warm if name.startswith("luthier_py.")}
    assert "luthier_py.worker.device" in ours and len(ours) <= MOST
