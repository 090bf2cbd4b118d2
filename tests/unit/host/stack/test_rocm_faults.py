"""What goes wrong on the device as ROCm's own runtime tells it, with our line; programs and workers that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from rocm_stack import RocmStack
from stacked_programs import SECONDS, Programs, Stacked

PROGRAM = "rocm/faulty"
ABORTED = -signal.SIGABRT


@pytest.mark.parametrize(
    "what, ours, theirs",
    [
        ("address", "bad address 0x123456789000", "Memory access fault by GPU node-1"),
        ("trap", "s_trap", "HSA_STATUS_ERROR_EXCEPTION"),
        ("illegal", "is not an instruction of gfx90a", "HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION"),
        ("lds", "LDS address", "HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION"),
        ("endless", "no end within the time limit", "HSA_STATUS_ERROR_EXCEPTION"),
    ],
)
def test_faults(what: str, ours: str, theirs: str, programs: Programs, stacked: Stacked) -> None:
    """One line of ours that names the kernel and where it was; then what ROCm says, which ends the program."""
    limit = {"LUTHIER_TIME_LIMIT": "3"} if what == "endless" else {}
    done = stacked.alone(programs.hip(PROGRAM), what, **limit)
    lines = [line for line in done.err.splitlines() if line.startswith("luthier:")]
    assert len(lines) == 1 and ours in lines[0] and f"kernel {what}(" in lines[0] and "pc 0x" in lines[0]
    assert theirs in done.err and done.code == ABORTED


def test_lanes_outside_of_lds(programs: Programs, stacked: Stacked) -> None:
    """They read 0, which is said once."""
    done = stacked.alone(programs.hip(PROGRAM), "idle")
    lines = [line for line in done.err.splitlines() if line.startswith("luthier:")]
    assert (done.code, done.out) == (0, "PASSED\n") and len(lines) == 1, done.err
    assert "kernel idle(" in lines[0] and "`ds_read_b32" in lines[0]
    assert "outside of their work-group's 256 bytes" in lines[0]


@pytest.mark.parametrize("count", [2000, pytest.param(10000, marks=pytest.mark.slow)])
def test_many_launches_of_eight_threads(count: int, programs: Programs, stacked: Stacked) -> None:
    """Each dispatch is carried out once."""
    done = stacked.alone(programs.hip(PROGRAM), "many", str(count))
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    assert len([row for row in done.profile if row["kernel"].startswith("_Z3add")]) == count


@pytest.mark.parametrize("whom", ["program", "worker"])
def test_killed(whom: str, programs: Programs, rocm_stack: RocmStack, tmp_path: Path) -> None:
    """While a kernel runs that never ends: neither outlives the other, and nothing stays behind."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, **rocm_stack.environment(), "TMPDIR": str(temporary)}
    command, pipe = [str(programs.hip(PROGRAM)), "endless"], subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as program:
        assert program.stdout is not None and program.stdout.readline() == "running\n"
        worker = worker_of(program.pid)
        os.kill(worker if whom == "worker" else program.pid, signal.SIGKILL)
        _, errors = program.communicate(timeout=SECONDS)
    assert program.returncode == (ABORTED if whom == "worker" else -signal.SIGKILL)
    assert ("the worker process has ended" in errors) == (whom == "worker")
    until_gone(worker)
    assert list(temporary.iterdir()) == []


def worker_of(program: int) -> int:
    """The process that has the program's memory open beside it."""
    memory = next(link for link in links(program) if "luthier-memory" in os.readlink(link)).stat()
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != program:
            for link in links(int(process.name)):
                if (link.stat().st_ino, link.stat().st_dev) == (memory.st_ino, memory.st_dev):
                    return int(process.name)
    raise AssertionError("there is no worker")


def links(process: int) -> list[Path]:
    """Descriptors of memory files, of a process of this user."""
    try:
        found = [Path(f"/proc/{process}/fd/{name}") for name in os.listdir(f"/proc/{process}/fd")]
        return [link for link in found if link.is_symlink() and "memfd:" in os.readlink(link)]
    except OSError:
        return []


def until_gone(process: int) -> None:
    end = time.monotonic() + SECONDS
    while Path(f"/proc/{process}").exists():
        assert time.monotonic() < end, "it stays"
        time.sleep(0.01)
