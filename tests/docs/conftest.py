"""What tests of pages share: commands are typed in this process; the tutorial's program is one of tests/programs."""

from __future__ import annotations

import gc
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from compiled_programs import program

from luthier_py import cli

__all__ = ["Done", "Typed", "program", "typed"]
ROOT = Path(__file__).parents[2]


class Done(NamedTuple):
    code: int
    out: str
    err: str


Typed = Callable[[str], Done]


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """A shell's line with the command, in a folder of its own that has the files which pages name."""
    monkeypatch.chdir(tmp_path)
    for name in ("luthier_py", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)

    def run(line: str) -> Done:
        gc.collect()  # the memory of an earlier command's device is where this one's is to be
        monkeypatch.setattr("sys.argv", shlex.split(line.replace("\\\n", " "), comments=True))
        with pytest.raises(SystemExit) as stop:
            cli.main()
        return Done(int(stop.value.code or 0), *capsys.readouterr())

    return run
