"""`make bench` names every script that measures by itself, and each of them finds what it imports."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks"
PARTS = {"isa_speed", "stages", "proof", "foreign", "ways"}  # of other scripts; `make damage`, `make foreign`
[LISTED] = re.findall(r"^BENCHMARKS := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
NAMES = LISTED.split()
COMPILES = ("isa", "large", "instrument", "programs", "every_tool", "stacks", "disassembly", "installed")
"""What these need is not there where the search path is empty, and no library is named."""


def test_make_bench_leaves_none_out() -> None:
    assert sorted(NAMES) == sorted({path.stem for path in FOLDER.glob("*.py")} - PARTS)
    page = (FOLDER / "README.md").read_text("utf-8")
    assert [name for name in NAMES if f"| {name}.py |" not in page] == []


@pytest.mark.parametrize("name", NAMES)
def test_scripts_find_what_they_import(name: str) -> None:
    run = f"import runpy, sys; sys.path.insert(0, {str(FOLDER)!r}); runpy.run_path({str(FOLDER / name)!r} + '.py')"
    subprocess.run([sys.executable, "-c", run], check=True)


@pytest.mark.parametrize("name", COMPILES)
def test_what_is_missing_is_said(name: str) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LUTHIER_ROCM")}
    done = subprocess.run([sys.executable, str(FOLDER / f"{name}.py")], env={**environment, "PATH": "/nonexistent"},
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert re.search("left out: .*needs|nothing to measure", done.stdout), done.stdout


def test_every_registered_tool_is_measured_and_judged() -> None:
    """The table of costs has a row for each; `python benchmarks/every_tool.py --missing` adds what is new."""
    page = (FOLDER / "programs.md").read_text("utf-8")
    _, found, section = page.partition("\n# Every tool\n")
    shown = [row.split()[0] for row in re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)]
    assert found and shown == sorted(entry.name for entry in entry_points(group="luthier_py.tools")
                                     if entry.value.startswith("luthier_py.tools."))
