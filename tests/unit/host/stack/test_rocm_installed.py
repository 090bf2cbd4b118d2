"""Libraries as Debian has them, and hip-python, on Debian's own HIP runtime; alone and under a tool."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from rocm_stack import ABI, lacking
from stacked_programs import ROOT, SECONDS, TARGET, Programs, Stacked, some

HERE = Path(__file__).parent
CALLING = ROOT / "tests" / "unit" / "host" / "worker"
FOLDERS = tuple(
    dict.fromkeys(str(Path(path).parent) for path in os.environ.get("LUTHIER_ROCM_LIBRARIES", "").split(":") if path)
)
CALLS = (
    ("rocrand", "philox"), ("rocrand", "sobol"), ("rocsparse", "multiply"), ("rocsparse", "dot"), ("rocsparse", "sort"),
    ("rocsparse", "solve"),
)  # fmt: skip
ALWAYS = {("rocrand", "philox"), ("rocsparse", "multiply"), ("rocsparse", "solve")}
SPINNING = "csrsv"  # its waves wait for each other: how often they look is chance


@pytest.mark.parametrize("library, name", some(CALLS, ALWAYS))
def test_debian(library: str, name: str, stacked: Stacked) -> None:
    if not any(found for folder in FOLDERS for found in Path(folder).glob(f"lib{library}.so.?")):
        lacking(f"no lib{library}: see LUTHIER_ROCM_LIBRARIES in tests/differential/test_elf_real.py")
    command = sys.executable, CALLING / f"{library}_program.py", name
    alone = stacked.alone(*command, folders=FOLDERS)
    assert (alone.code, alone.out) == (0, "PASSED\n"), alone.err
    done = stacked.under("instr_count", *command, folders=FOLDERS)
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    found = Counter((row["kernel"], row["report"]["instructions"]) for row in done.verdict["reports"])
    counted = Counter((row["kernel"], row["instructions"]) for row in alone.profile if SPINNING not in row["kernel"])
    assert not done.verdict["refused"] and counted
    assert Counter({row: n for row, n in found.items() if SPINNING not in row[0]}) == counted


def test_a_failing_program_that_finds_rocm_itself(
    programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is said of libraries, which are there."""
    script = tmp_path / "script"
    libraries, program = programs.stack.libraries, programs.hip("reduction")
    script.write_text(f"#!/bin/sh\nexport LD_LIBRARY_PATH={libraries}\n{program}; exit 3\n")
    script.chmod(0o755)
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    command = sys.executable, "-c", "from luthier_py.cli import main; main()", "exec", "--device", f"emulator:{TARGET}"
    done = subprocess.run([*command, "--stack", "rocm", "--", script], capture_output=True, text=True, timeout=SECONDS)
    assert (done.returncode, done.stdout) == (3, "PASSED\n") and "libhsa-runtime64" not in done.stderr


def test_hip_python(programs: Programs, stacked: Stacked) -> None:
    """A module of the code object that vector_add's build leaves beside it."""
    if importlib.util.find_spec("hip") is None:
        lacking("no hip-python: pip install hip-python")
    code = programs.hip("vector_add").with_suffix(f".{TARGET}.co")
    command = sys.executable, HERE / "hip_python_program.py", code, f"libamdhip64.so.{ABI}"
    alone, done = stacked.alone(*command), stacked.under("instr_count", *command)
    assert (alone.code, alone.out) == (0, "PASSED\n"), alone.err
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    (row,), (report,) = alone.profile, done.verdict["reports"]
    assert report["report"]["instructions"] == row["instructions"] > 0
