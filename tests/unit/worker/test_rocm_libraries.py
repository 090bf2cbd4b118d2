"""Libraries that people install, unchanged, on the emulator and under tools: Debian's rocRAND and rocSPARSE.

LUTHIER_ROCM_LIBRARIES says where they are; see tests/differential/test_elf_real.py.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import missing

from luthier_py.runtime.hip import runtime_folder

HERE = Path(__file__).parent
FOLDERS = [str(Path(path).parent) for path in os.environ.get("LUTHIER_ROCM_LIBRARIES", "").split(":") if path]
CALLS = (
    ("rocrand", "philox"), ("rocrand", "sobol"), ("rocsparse", "multiply"), ("rocsparse", "dot"), ("rocsparse", "sort"),
    ("rocsparse", "solve"),
)  # fmt: skip
SPINNING = "csrsv_solve"  # its waves wait for each other: how often they look is chance


@pytest.fixture
def call() -> Callable[[str, str], tuple[list[str | Path], dict[str, str]]]:
    """A program that makes a call, and the environment in which it finds the library."""

    def find(library: str, name: str) -> tuple[list[str | Path], dict[str, str]]:
        if not any(found for folder in FOLDERS for found in Path(folder).glob(f"lib{library}.so.?")):
            missing(f"no lib{library}: see LUTHIER_ROCM_LIBRARIES in tests/differential/test_elf_real.py")
        path = os.pathsep.join([str(runtime_folder()), *FOLDERS])
        return [sys.executable, HERE / f"{library}_program.py", name], {"LD_LIBRARY_PATH": path}

    return find


@pytest.mark.parametrize("library, name", CALLS, ids=lambda value: value)
def test_calls(
    library: str, name: str, call: Callable[..., Any], tooled: Callable[..., Any],
    counted: Callable[..., list[dict[str, Any]]],
) -> None:
    """Right on the emulator alone; under a tool as well, and each launch counted as the emulator counts it."""
    command, environment = call(library, name)
    rows = [row for row in counted(*command, **environment) if SPINNING not in row["kernel"]]
    done = tooled(*command, **environment)
    assert (done.code, done.out) == (0, "PASSED\n"), done.out + done.err
    found = [(row["kernel"], row["report"]["instructions"]) for row in done.verdict["reports"]]
    assert not done.verdict["refused"] and done.verdict["instrumented"] == done.verdict["launches"] == len(found)
    assert Counter(row for row in found if SPINNING not in row[0]) == Counter(
        (row["kernel"], row["instructions"]) for row in rows
    )
    assert rows
