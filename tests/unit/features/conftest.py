"""`luthier study` as a user types it; HIP programs are its subjects."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from compiled_programs import program

from luthier_py import cli

__all__ = ["program", "study", "summary"]


class Done(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """``study(text, *options)``: ``luthier study`` of a TOML text in a folder of its own; results go to ``out``."""
    monkeypatch.chdir(tmp_path)

    def run(text: str, *options: str) -> Done:
        (tmp_path / "study.toml").write_text(text)
        monkeypatch.setattr(sys, "argv", ["luthier", "study", "study.toml", "-o", "out", *options])
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture
def summary(tmp_path: Path) -> Callable[[], Any]:
    return lambda: json.loads((tmp_path / "out" / "summary.json").read_text())
