"""`luthier study` as a user types it; HIP programs are its subjects."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hip_programs import program

__all__ = ["program", "study", "summary"]
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
