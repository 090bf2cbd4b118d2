"""Exit codes of `luthier exec`: 0 only where all that was asked of a tool was delivered."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from loaded_command import run_luthier

Program = Callable[..., Path]
DEVICE = "emulator:gfx90a"
TOOL = """
import os, signal, sys
from luthier_py import LaunchResult, Mutator, Tool, Variable, hook, ptr, u64
from luthier_py.intrinsics import atomic_add

class Broken(Tool):
    total = Variable(u64)

    @hook(lanes="one")
    def one(total: ptr[u64]) -> None:
        atomic_add(total, 1)

    def instrument(self, m: Mutator) -> None:
        for kernel in m.kernels:
            INSTRUMENT
            m.at_exit(kernel, self.one, self.total)

    def report(self, launch: LaunchResult) -> object:
        REPORT
        return {"n": launch[self.total]}

    def text(self, launch: LaunchResult, report: object) -> str:
        TEXT
        return str(report)

    def files(self, launch: LaunchResult, report: object) -> dict[str, bytes]:
        FILES
        return {}
"""


def luthier(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LUTHIER_DEVICE": ""}
    return run_luthier("exec", "--device", DEVICE, *arguments, environment=environment, cwd=cwd)


def tool(folder: Path, **places: str) -> Path:
    text = TOOL
    for place in ("instrument", "report", "text", "files"):
        text = text.replace(place.upper(), places.get(place, "pass"))
    path = folder / "broken.py"
    path.write_text(text)
    return path


def complaints(done: subprocess.CompletedProcess[str]) -> list[str]:
    lines = [line for line in done.stderr.splitlines() if line.startswith("luthier: ")]
    return [line for line in lines if not line.startswith(("luthier: verdict: ", "luthier: tool Broken, options"))]


@pytest.mark.parametrize("place, code, out", [
    ({"report": "raise RuntimeError('no')"}, 1, "PASSED\n"),
    ({"report": "sys.exit(0)"}, 1, "PASSED\n"),
    ({"report": "os.kill(os.getpid(), signal.SIGKILL)"}, 3, "PASSED\n"),
    ({"files": "raise ValueError('no')"}, 1, "PASSED\n"),
    ({"instrument": "raise RuntimeError('no')"}, 1, ""),  # found before the program starts
    ({"instrument": "continue"}, 3, "PASSED\n"),
])  # fmt: skip
def test_a_tool_that_fails(place: dict[str, str], code: int, out: str, program: Program, tmp_path: Path) -> None:
    done = luthier("-t", tool(tmp_path, **place), "--report", tmp_path / "r", "--", program("vector_add"))
    assert (done.returncode, done.stdout) == (code, out), done.stderr
    assert complaints(done) and "Traceback" not in done.stderr


@pytest.mark.parametrize("option, form, why", [
    ("--output", "txt", "not everything was delivered: output failed"),
    ("--output", "json", "not everything was delivered: output failed"), ("--report", "d", "is a file; give a folder"),
])  # fmt: skip
def test_what_cannot_be_written(option: str, form: str, why: str, program: Program, tmp_path: Path) -> None:
    """What can be known before the program starts is."""
    place = tmp_path / f"place.{form}"
    place.symlink_to("/dev/full")
    done = luthier("-t", tool(tmp_path), option, place, "--", program("vector_add"))
    assert (done.returncode, done.stdout) == ((2, "") if option == "--report" else (1, "PASSED\n")), done.stderr
    assert why in done.stderr


def test_a_program_s_own_exit_code_comes_first(program: Program, tmp_path: Path) -> None:
    command = ("sh", "-c", f"{program('vector_add')}; exit 7")
    done = luthier("-t", tool(tmp_path, report="raise RuntimeError"), "--", *command)
    assert done.returncode == 7 and any("Broken.report failed" in line for line in complaints(done))


def test_processes_that_write_one_file(program: Program, tmp_path: Path) -> None:
    command = ("sh", "-c", "{0} && {0}".format(program("vector_add")))
    done = luthier("-t", tool(tmp_path), "--output", tmp_path / "o.csv", "--", *command)
    assert done.returncode == 1 and "2 processes wrote it" in done.stderr and "%p" in done.stderr
    done = luthier("-t", tool(tmp_path), "--output", tmp_path / "all.txt", "--", *command)
    assert done.returncode == 0 and (tmp_path / "all.txt").read_text().count("'n'") == 2
    done = luthier("-t", tool(tmp_path), "--output", tmp_path / "o%p.csv", "--report", tmp_path / "r%p", "--", *command)
    assert done.returncode == 0, done.stderr
    tables = [list(csv.DictReader(path.open())) for path in tmp_path.glob("o[0-9]*.csv")]
    assert len(tables) == 2 and tables[0] == tables[1]


def test_files_are_where_the_user_is(program: Program, tmp_path: Path) -> None:
    """Not where the program goes: names are meant in the folder in which the command was given."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "beside.py").write_text("WORD = 'n'\n")
    tool(tmp_path)
    command = ("sh", "-c", f"cd elsewhere && {program('vector_add')}")
    done = luthier("-t", "./broken.py", "-O", "luthier_output=o.json", "--", *command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "o.json").read_text())["launches"]


def test_kernels_without_sites_are_told_and_are_no_failure(program: Program, tmp_path: Path) -> None:
    only_one = "if 'padded' in kernel.name: continue"
    done = luthier("-t", tool(tmp_path, instrument=only_one), "--", program("transpose"))
    assert done.returncode == 0, done.stderr
    assert "not instrumented: there is nothing for Broken in 1 kernel transpose_padded" in done.stderr


def test_launches_that_do_not_begin_are_told(program: Program, tmp_path: Path) -> None:
    """A grid of nothing and a block that is too large are the program's own errors, which it looks for."""
    done = luthier("-t", tool(tmp_path), "--", program("errors"))
    assert (done.returncode, done.stdout) == (0, "PASSED\n"), done.stderr
    assert "launches did not begin: the runtime took no such grid, block or memory" in done.stderr


def test_the_filter_that_left_nothing_is_named(program: Program, tmp_path: Path) -> None:
    done = luthier("-t", tool(tmp_path), "--kernels", "no_such", "--", program("transpose"))
    assert done.returncode == 3
    assert "LUTHIER_KERNELS=no_such leaves out 2 of 2 launches, which are 2 kernels transpose_p" in complaints(done)[-1]
    done = luthier("-t", tool(tmp_path), "-O", "START_GRID_NUM=7", "--", program("transpose"))
    assert done.returncode == 3 and "START_GRID_NUM=7 leaves out 2 of 2 launches" in complaints(done)[-1]
    done = luthier("-t", tool(tmp_path), "-O", "INSTR_BEGIN=9999", "--", program("transpose"))
    assert done.returncode == 3 and "in what INSTR_BEGIN=9999 leaves of 2 kernels" in complaints(done)[-1]
