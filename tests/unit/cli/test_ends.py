"""However a command ends, it ends with an exit code and one line; what was asked for and is not there is not 0."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from patience import PATIENCE

from luthier_py import cli
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


class Done(NamedTuple):
    code: int
    out: str
    err: str


Luthier = Callable[..., Done]


@pytest.fixture
def luthier(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Luthier:
    """The command in this process; keywords are environment variables."""

    def command(*arguments: str | Path, **environment: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["luthier", *map(str, arguments)])
        for name, value in {"LUTHIER_TRACEBACK": "", "LUTHIER_DEVICE": "", **environment}.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as end:
            cli.main()
        return Done(int(end.value.code or 0), *capsys.readouterr())

    return command


def run(luthier: Luthier, tool: Path, *more: str | Path, **environment: str) -> Done:
    return luthier("run", sample("saxpy").path, *SAXPY, "-t", tool, *more, *ARGUMENTS, **environment)


@pytest.fixture
def tool(tmp_path: Path) -> Path:
    path = tmp_path / "loud.py"
    path.write_text(TOOL.replace("        REPORT\n", ""))
    return path


def failing(tool: Path, statement: str) -> Path:
    tool.write_text(TOOL.replace("        REPORT\n", f"        {statement}\n"))
    return tool


def test_what_a_tool_prints_is_not_what_the_command_prints(luthier: Luthier, tool: Path, tmp_path: Path) -> None:
    done = run(luthier, tool, "--json")
    assert done.code == 0 and json.loads(done.out)["launches"][0]["report"] == {"n": 1}
    assert {"AT IMPORT", "IN INSTRUMENT", "IN REPORT"} <= set(done.err.splitlines())
    listed = luthier("tools", tool, "--json")
    assert [found["name"] for found in json.loads(listed.out)["tools"]] == ["Loud"]
    made = luthier("instrument", sample("saxpy").path, "-t", tool, "-o", tmp_path / "o.co", "--json")
    assert json.loads(made.out)["kernels"]


@pytest.mark.parametrize("statement, code, said", [
    ("raise KeyError('x')", 1, r"KeyError: 'x' \(.*loud.py:\d+, in report\); --traceback"),
    ("1 / 0", 1, r"ZeroDivisionError: division by zero \(.*loud.py"),
    ("assert False, 'two\\nlines'", 1, "AssertionError: two lines "),
    ("raise KeyboardInterrupt", 130, ""),
    ("return {1: object()}", 1, r"report of Loud.* is object, which is no data"),
])  # fmt: skip
def test_a_bug_is_one_line(luthier: Luthier, tool: Path, statement: str, code: int, said: str) -> None:
    done = run(luthier, failing(tool, statement), "--json")
    assert (done.code, done.out) == (code, "")
    lines = [line for line in done.err.splitlines() if line.startswith("luthier: ") and "options (" not in line]
    assert len(lines) == (code == 1) and re.search(said, done.err) and "Traceback" not in done.err


def test_tracebacks_on_demand(luthier: Luthier, tool: Path) -> None:
    done = luthier("--traceback", "run", sample("saxpy").path, *SAXPY, "-t", failing(tool, "1 / 0"), *ARGUMENTS)
    assert done.code == 1 and done.err.count("Traceback") == 1 and "in report" in done.err


@pytest.mark.parametrize("command", [["info", sample("nbody").path, "--json"], ["tools"]])
def test_output_that_nobody_can_take(command: list[str | Path]) -> None:
    def ended(stdout: int) -> tuple[int, str]:
        script = [sys.executable, "-c", "from luthier_py.cli import main; main()", *command]
        done = subprocess.run(script, text=True, timeout=PATIENCE, stderr=subprocess.PIPE, stdout=stdout)
        os.close(stdout)
        return done.returncode, done.stderr

    assert ended(os.open("/dev/full", os.O_WRONLY)) == (1, "luthier: [Errno 28] No space left on device\n")
    reading, writing = os.pipe()
    os.close(reading)
    assert ended(writing) == (1, ""), "nobody reads any more"


def test_stdout_that_is_closed() -> None:
    """What was asked for cannot be told; where nothing is to be told nothing is missing."""
    def ended(*command: str | Path) -> tuple[int, str]:
        script = [sys.executable, "-c", "from luthier_py.cli import main; main()", *map(str, command)]
        closing = ["sh", "-c", 'exec "$@" >&-', "sh", *script]
        done = subprocess.run(closing, text=True, timeout=PATIENCE, stderr=subprocess.PIPE)
        return done.returncode, done.stderr

    for command in (["info", sample("nbody").path], ["info", sample("nbody").path, "--json"], ["tools"]):
        assert ended(*command) == (1, "luthier: [Errno 9] Bad file descriptor\n")
    assert ended("exec", "--", "true") == (0, "")


def test_version(luthier: Luthier) -> None:
    done = luthier("--version")
    assert done.code == 0 and re.fullmatch(r"luthier-py \d+\.\d+\.\d+\S*\n", done.out)


def test_no_gpu(luthier: Luthier) -> None:
    done = luthier("run", sample("saxpy").path, *SAXPY, "--device", "hip", *ARGUMENTS)
    assert done.code == 1 and done.err.count("\n") == 1 and "emulator" in done.err


def test_a_program_without_a_device_where_there_is_no_rocm(luthier: Luthier, tmp_path: Path) -> None:
    nowhere = {"ROCM_PATH": str(tmp_path), "LD_LIBRARY_PATH": ""}
    done = luthier("exec", "--", "sh", "-c", "exit 127", **nowhere)
    assert done.code == 127 and "--device emulator:TARGET" in done.err


def test_only_what_was_given_is_echoed(luthier: Luthier, tool: Path) -> None:
    assert "options" not in run(luthier, tool).err
    given = run(luthier, tool, "-O", "MANGLED_NAMES=1").err
    assert given.count(" = ") == 1 and "* MANGLED_NAMES = 1" in given
    assert run(luthier, tool, "-O", "TOOL_VERBOSE=1").err.count(" - ") >= 10


def test_a_scalar_of_another_kind() -> None:
    """saxpy's parameters have no types in its metadata, a mangled name has."""
    from luthier_py.binary.loader import load
    from luthier_py.features.run.launch import doubts
    from luthier_py.features.run.specs import parse_argument

    record = load(sample("saxpy").path.read_bytes()).kernel("saxpy")
    given = [parse_argument(text) for text in ("f32=1", "u32=7", "in:f32[4]=ones", "out:f32[4]")]
    assert doubts(record, given) == []
    object.__setattr__(record, "name", "_Z5saxpyjfPKfPf")
    assert [line.split(": ")[1].split(" gets")[0] for line in doubts(record, given)] == [
        "argument 0 is of type unsigned int, and", "argument 1 is of type float, and"]  # fmt: skip
    assert doubts(record, [parse_argument(text) for text in ("u32=1", "f32=7", "in:f32[4]=ones", "out:f32[4]")]) == []
