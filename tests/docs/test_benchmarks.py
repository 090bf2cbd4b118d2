"""`make bench` names every script that measures by itself, and each of them finds what it imports."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from luthier_py.rewrite.tool.discover import registered_tools

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


EACH = """
import contextlib, io, re, runpy, sys, traceback
folder, others, how, wanted, *names = sys.argv[1:]
path, modules = [folder, *sys.path], set(sys.modules)
for name in names:
    sys.path[:], sys.argv[:], printed = path, [name], io.StringIO()
    for other in {*sys.modules} - modules:  # that one script found something helps no other
        if str(getattr(sys.modules[other], "__file__", None)).startswith((folder, others)):
            del sys.modules[other]
    try:
        with contextlib.redirect_stdout(printed):
            runpy.run_path(f"{folder}/{name}.py", run_name=how)
        code = 0
    except SystemExit as stop:
        code = stop.code or 0
    except Exception:
        code = traceback.format_exc()
    if code != 0 or not re.search(wanted, printed.getvalue()):
        print(f"{name}: {code}\\n{printed.getvalue()}")
"""


def failures(how: str, wanted: str, names: Sequence[str], **environment: str) -> str:
    """What scripts say that end badly or print other things, one after the other in a process of their own."""
    settings = {key: value for key, value in os.environ.items() if not key.startswith("LUTHIER_ROCM")}
    command = [sys.executable, "-c", EACH, str(FOLDER), str(ROOT / "tests"), how, wanted, *names]
    done = subprocess.run(command, env={**settings, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_scripts_find_what_they_import() -> None:
    assert failures("imported", "", NAMES) == ""


def test_what_is_missing_is_said() -> None:
    assert failures("__main__", "left out: .*needs|nothing to measure", COMPILES, PATH="/nonexistent") == ""


def test_every_registered_tool_is_measured_and_judged() -> None:
    """The table of costs has a row for each; `python benchmarks/every_tool.py --missing` adds what is new."""
    page = (FOLDER / "programs.md").read_text("utf-8")
    _, found, section = page.partition("\n# Every tool\n")
    shown = [row.split()[0] for row in re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)]
    assert found and shown == sorted(tool.name for tool in registered_tools().values()
                                     if tool.place.startswith("luthier_py.tools."))
