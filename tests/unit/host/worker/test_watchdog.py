"""A signal to luthier exec is the program's, and whatever ends exec, nothing of it stays: processes, folders."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from luthier_py.host.worker.watchdog import ProgramWatch, new_folder, remove_abandoned, wait_for_workers
from luthier_py.samples import FOLDER

HostProgram = Callable[..., Path]
TOOL = ("-t", "instr_count")
SECONDS = 600
"""Only what hangs meets it."""


class Run:
    """Mutable: luthier exec, and all processes that have its mark in their environment."""

    def __init__(self, folder: Path, *words: str | Path) -> None:
        self.mark, self.folder = f"LUTHIER_TEST={uuid4()}", folder
        name, _, value = self.mark.partition("=")
        command = [sys.executable, "-c", "from luthier_py.cli import main; main()", "exec", *map(str, words)]
        environment = {**os.environ, name: value, "TMPDIR": str(folder)}
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
        )  # fmt: skip
        assert self.process.stdout is not None and self.process.stdout.readline() == "launched\n"

    def alive(self) -> list[int]:
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:
                continue
        return found

    def leaves_nothing(self) -> bool:
        """Workers end after their program."""
        for _ in range(20 * SECONDS):
            if not self.alive() and not list(self.folder.iterdir()):
                return True
            time.sleep(0.05)
        print(self.alive(), *self.folder.rglob("*"))
        return False


@pytest.fixture
def started(host_program: HostProgram, tmp_path: Path) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def start(*words: str | Path, options: tuple[str, ...] = TOOL) -> Run:
        program = host_program("waiting_program"), FOLDER / "vector_add.co"
        folder = tmp_path / "temporary"
        folder.mkdir()
        command = [word for part in words for word in (program if part == "PROGRAM" else (part,))]
        runs.append(Run(folder, *options, "--device", "emulator:gfx90a", "--", *command))
        return runs[-1]

    yield start
    for run in runs:
        for process in run.alive():
            os.kill(process, signal.SIGKILL)
        run.process.communicate(timeout=SECONDS)


@pytest.mark.parametrize("number", (signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
def test_the_program_gets_the_signal(number: signal.Signals, started: Callable[..., Run]) -> None:
    run = started("PROGRAM")
    assert len(run.alive()) == 4  # exec, the program, two workers
    os.kill(run.process.pid, number)
    _, err = run.process.communicate(timeout=SECONDS)
    assert run.process.returncode == 128 + number and "1 launch, 1 selected, 1 instrumented" in err
    assert run.leaves_nothing()


def test_the_program_decides_what_a_signal_does(started: Callable[..., Run]) -> None:
    run = started("PROGRAM", str(int(signal.SIGTERM)))
    os.kill(run.process.pid, signal.SIGTERM)
    _, err = run.process.communicate(timeout=SECONDS)
    assert run.process.returncode == 42 and "1 instrumented" in err and run.leaves_nothing()


@pytest.mark.parametrize("options", (TOOL, ()))
def test_killed(options: tuple[str, ...], started: Callable[..., Run]) -> None:
    """Also a program that a shell started, which knows nothing of exec."""
    run = started("sh", "-c", '"$0" "$1" & wait', "PROGRAM", options=options)
    assert len(run.alive()) == 4 + bool(options)
    run.process.kill()
    assert run.leaves_nothing()


@contextmanager
def temporary(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setattr("tempfile.tempdir", str(folder))
        yield


def test_abandoned_folders_go_and_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with temporary(tmp_path, monkeypatch):
        abandoned, lock = new_folder()
        os.close(lock)
        used, lock = new_folder()
        foreign = tmp_path / "luthier-exec-mine"
        foreign.mkdir()
        remove_abandoned()
        assert not abandoned.exists() and used.exists() and foreign.exists()
        os.close(lock)


@pytest.mark.parametrize("folder", (None, "", "."))
def test_without_exec_nothing_is_killed(folder: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever files there are in the current folder, and whatever the environment says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LUTHIER_EXEC", raising=False)
    if folder is not None:
        monkeypatch.setenv("LUTHIER_EXEC", folder)
    (tmp_path / "lock").touch()
    with subprocess.Popen(["sleep", "600"]) as program:
        ProgramWatch(program.pid).remove_folder()
        with pytest.raises(subprocess.TimeoutExpired):
            program.wait(0.3)
        program.kill()
    assert (tmp_path / "lock").exists()


def test_who_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers, as long as they live and no longer than is said; none where no program had one."""
    words = (
        "import os, sys, time; from luthier_py.host.worker.watchdog import ProgramWatch; "
        "w = ProgramWatch(os.getppid()); "
        "print(flush=True); sys.stdin.read(); time.sleep(0.1); print('all is said', file=open(sys.argv[1], 'w'))"
    )
    with temporary(tmp_path, monkeypatch):
        folder, lock = new_folder()
        wait_for_workers(folder, SECONDS)
        command = [sys.executable, "-c", words, str(tmp_path / "said")]
        environment = {**os.environ, "LUTHIER_EXEC": str(folder)}
        with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
            assert worker.stdin is not None and worker.stdout is not None and worker.stdout.readline()
            wait_for_workers(folder, 0.05)
            assert worker.poll() is None
            worker.stdin.close()
            wait_for_workers(folder, SECONDS)
            assert (tmp_path / "said").read_text() == "all is said\n"
        os.close(lock)
