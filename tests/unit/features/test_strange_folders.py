"""Python files where a user happens to be are not ours to run: neither a study nor a tool's worker imports them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from patience import PATIENCE

TRAP = "import pathlib; pathlib.Path(__file__).with_suffix('.run').touch(); raise RuntimeError('a trap')\n"
LIBRARIES = ("numpy", "llvmlite", "click", "rich", "msgpack", "luthier_py", "sitecustomize", "elftools")


@pytest.fixture
def traps(tmp_path: Path) -> Path:
    for name in {*sys.stdlib_module_names, *LIBRARIES}:
        (tmp_path / f"{name}.py").write_text(TRAP)
    return tmp_path


def caught(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.run"))


def test_a_study(study: Callable[..., Any], traps: Path) -> None:
    done = study('[[program]]\ncommand = ["true"]\n')
    assert (done.code, caught(traps)) == (0, []), done.err


def test_a_tool(traps: Path, program: Callable[..., Path]) -> None:
    """What PYTHONPATH names, a tool finds."""
    (traps / "mine").mkdir()
    (traps / "mine" / "tool.py").write_text(
        "import only_here\nfrom luthier_py.tools.instr_count import InstrCount\nclass Mine(InstrCount): pass\n"
    )
    (traps / "lib").mkdir()
    (traps / "lib" / "only_here.py").touch()
    script = "import sys; del sys.path[0]; from luthier_py.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "exec", "--device", "emulator:gfx90a", "-t", "mine/tool.py", "--",
         program("vector_add")],
        cwd=traps, capture_output=True, text=True, timeout=PATIENCE,
        env={**os.environ, "PYTHONPATH": str(traps / "lib"), "LUTHIER_DEVICE": ""},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "PASSED\n"), done.stderr
    assert caught(traps) == []


def test_what_a_child_said_is_kept(study: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("luthier_py.features.study.runs.COMMAND", "raise RuntimeError('last words')")
    done = study('[[program]]\ncommand = ["true"]\n')
    assert done.code == 1 and "error: RuntimeError: last words (1 of 1 runs)" in done.out
    (row,) = pq.read_table(tmp_path / "out" / "results.parquet").to_pylist()
    assert row["status"] == "error" and row["said"].startswith("its process ended with 1\nTraceback")
