"""However a command ends, it ends with an exit code and one line; what was asked for and is not there is not 0."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from luthier_py.samples import sample

SAXPY = ["--kernel", "saxpy", "--grid", "1", "--block", "64"]
ARGUMENTS = ["u32=64", "f32=0.7", "in:f32[64]=ones", "inout:f32[64]=ones"]
TOOL = """
print("AT IMPORT")
import sys
from luthier_py import Mutator, Tool, Variable, hook, ptr, u64
from luthier_py.intrinsics import atomic_add

class Loud(Tool):
    total = Variable(u64)

    @hook(lanes="one")
    def one(total: ptr[u64]) -> None:
        atomic_add(total, 1)

    def instrument(self, m: Mutator) -> None:
        print("IN INSTRUMENT")
        for kernel in m.kernels:
            m.at_exit(kernel, self.one, self.total)

    def report(self, launch):
        print("IN REPORT")
        REPORT
        return {"n": launch[self.total]}
"""


def luthier(*arguments: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from luthier_py.cli import main; main()", *map(str, arguments)]
    environment = {**os.environ, "LUTHIER_DEVICE": "", **options.pop("environment", {})}  # type: ignore[dict-item]
    return subprocess.run(command, text=True, timeout=60, stderr=subprocess.PIPE, env=environment,
                          **{"stdout": subprocess.PIPE, **options})  # type: ignore[call-overload,no-any-return]


def run(tool: Path, *more: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    return luthier("run", sample("saxpy").path, *SAXPY, "-t", tool, *more, *ARGUMENTS, **options)


@pytest.fixture
def tool(tmp_path: Path) -> Path:
    path = tmp_path / "loud.py"
    path.write_text(TOOL.replace("        REPORT\n", ""))
    return path


def failing(tool: Path, statement: str) -> Path:
    tool.write_text(TOOL.replace("        REPORT\n", f"        {statement}\n"))
    return tool


def test_what_a_tool_prints_is_not_what_the_command_prints(tool: Path, tmp_path: Path) -> None:
    done = run(tool, "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["launches"][0]["report"] == {"n": 1}
    assert {"AT IMPORT", "IN INSTRUMENT", "IN REPORT"} <= set(done.stderr.splitlines())
    listed = luthier("tools", tool, "--json")
    assert [found["name"] for found in json.loads(listed.stdout)["tools"]] == ["Loud"]
    made = luthier("instrument", sample("saxpy").path, "-t", tool, "-o", tmp_path / "o.co", "--json")
    assert json.loads(made.stdout)["kernels"]


@pytest.mark.parametrize("statement, code, said", [
    ("raise KeyError('x')", 1, r"KeyError: 'x' \(.*loud.py:\d+, in report\); --traceback"),
    ("1 / 0", 1, r"ZeroDivisionError: division by zero \(.*loud.py"),
    ("assert False, 'two\\nlines'", 1, "AssertionError: two lines "),
    ("raise KeyboardInterrupt", 130, ""),
    ("return {1: object()}", 1, r"report of Loud.* is object, which is no data"),
])  # fmt: skip
def test_a_bug_is_one_line(tool: Path, statement: str, code: int, said: str) -> None:
    done = run(failing(tool, statement), "--json")
    assert (done.returncode, done.stdout) == (code, "")
    lines = [line for line in done.stderr.splitlines() if line.startswith("luthier: ") and "options (" not in line]
    assert len(lines) == (code == 1) and re.search(said, done.stderr) and "Traceback" not in done.stderr


def test_tracebacks_on_demand(tool: Path) -> None:
    done = luthier("--traceback", "run", sample("saxpy").path, *SAXPY, "-t", failing(tool, "1 / 0"), *ARGUMENTS)
    assert done.returncode == 1 and done.stderr.count("Traceback") == 1 and "in report" in done.stderr


def test_output_that_nobody_can_take() -> None:
    with open("/dev/full", "w") as full:
        for command in (["info", sample("nbody").path, "--json"], ["disasm", sample("nbody").path], ["tools"]):
            done = luthier(*command, stdout=full)
            assert (done.returncode, done.stderr) == (1, "luthier: [Errno 28] No space left on device\n")
    reading, writing = os.pipe()
    os.close(reading)
    done = luthier("disasm", sample("nbody").path, stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_version() -> None:
    done = luthier("--version")
    assert done.returncode == 0 and re.fullmatch(r"luthier-py \d+\.\d+\.\d+\S*\n", done.stdout)


def test_no_gpu() -> None:
    done = luthier("run", sample("saxpy").path, *SAXPY, "--device", "hip", *ARGUMENTS)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "emulator" in done.stderr


def test_a_program_without_a_device_where_there_is_no_rocm(tmp_path: Path) -> None:
    nowhere = {"ROCM_PATH": str(tmp_path), "LD_LIBRARY_PATH": ""}
    done = luthier("exec", "--", "sh", "-c", "echo no HIP >&2; exit 127", environment=nowhere)
    assert done.returncode == 127 and "--device emulator:TARGET" in done.stderr


def test_only_what_was_given_is_echoed(tool: Path) -> None:
    assert "options" not in run(tool).stderr
    given = run(tool, "-O", "MANGLED_NAMES=1").stderr
    assert given.count(" = ") == 1 and "* MANGLED_NAMES = 1" in given
    assert run(tool, "-O", "TOOL_VERBOSE=1").stderr.count(" - ") >= 10


def test_a_scalar_of_another_kind() -> None:
    """saxpy's parameters have no types in its metadata, a mangled name has."""
    from luthier_py.loader import load
    from luthier_py.session.run import doubts
    from luthier_py.session.specs import parse_argument

    record = load(sample("saxpy").path.read_bytes()).kernel("saxpy")
    given = [parse_argument(text) for text in ("f32=1", "u32=7", "in:f32[4]=ones", "out:f32[4]")]
    assert doubts(record, given) == []
    object.__setattr__(record, "name", "_Z5saxpyjfPKfPf")
    assert [line.split(": ")[1].split(" gets")[0] for line in doubts(record, given)] == [
        "argument 0 is of type unsigned int, and", "argument 1 is of type float, and"]  # fmt: skip
    assert doubts(record, [parse_argument(text) for text in ("u32=1", "f32=7", "in:f32[4]=ones", "out:f32[4]")]) == []
