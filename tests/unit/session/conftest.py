"""The HIP programs that tests of the worker build are subjects of studies too."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_worker = Path(__file__).parents[1] / "worker" / "conftest.py"
_spec = importlib.util.spec_from_file_location("programs_of_worker", _worker)
assert _spec is not None and _spec.loader is not None
_programs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_programs)
program = _programs.program
MAIN = "from luthier_py.cli import main; main()"


@pytest.fixture
def study(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """``study(text, *options)``: ``luthier study`` of a TOML text in a folder of its own; results go to ``out``."""

    def run(text: str, *options: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "study.toml").write_text(text)
        command = [sys.executable, "-c", MAIN, "study", "study.toml", "-o", "out", *options]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)

    return run


@pytest.fixture
def summary(tmp_path: Path) -> Callable[[], Any]:
    return lambda: json.loads((tmp_path / "out" / "summary.json").read_text())
