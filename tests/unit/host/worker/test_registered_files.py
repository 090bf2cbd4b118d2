"""Pages of files that several processes map, registered with our HIP runtime: everybody sees the same bytes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from luthier_py.host.worker.mapped_files import MESSAGE

Program = Callable[..., Path]
Run = Callable[..., subprocess.CompletedProcess[str]]


def test_they_stay_the_file_s(program: Program, run: Run, tmp_path: Path) -> None:
    """By its name, by a descriptor of memory without a name, and of a file that was deleted."""
    done = run(program("registered_files"), tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "PASSED\n", "")


def test_of_a_file_that_became_shorter_nothing_is_left(program: Program, run: Run, tmp_path: Path) -> None:
    """The device fails, and says why."""
    done = run(program("registered_files"), tmp_path, "shortened")
    assert (done.returncode, done.stdout, done.stderr) == (0, "SHORTENED\n", f"luthier: {MESSAGE}\n")
