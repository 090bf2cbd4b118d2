"""A program under a tool, on a device, in one call: the environment that makes it so, and what became of it.

In: a command, a tool, a device. Out: the program's exit code and the tool's verdict. Invariant: the program itself is
not changed, and its output and exit code are its own.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from luthier_py.errors import Invalid
from luthier_py.report.spool import facts_of
from luthier_py.runtime.hip import runtime_folder, tool_library
from luthier_py.session.files import write_file
from luthier_py.tool import load_tool
from luthier_py.worker.orphan import FOLDER, new_folder, remove_abandoned

VERDICT = "LUTHIER_VERDICT"
WORKER_SECONDS = 10  # that a worker gets to end after its program
PATIENCE = 0.5  # seconds until it is looked again whether a program has ended of which no signal told
_FORWARDED = signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2
_SIGNALS = {signal.SIGCHLD, *_FORWARDED}
_PR_SET_PDEATHSIG, _SI_USER = 1, 0
SIGNALLED = 128  # a shell's exit code for a signal is this much more


@dataclass(frozen=True, slots=True)
class Executed:
    """``verdicts``: one for each process with a tool under it, in the order in which they ended."""

    exit_code: int
    verdicts: tuple[Mapping[str, Any], ...]

    @property
    def verdict(self) -> Mapping[str, Any] | None:
        """Of the process that launched most."""
        return max(self.verdicts, key=lambda facts: int(facts["launches"]), default=None)

    @property
    def observed(self) -> bool:
        return any(facts["observed"] for facts in self.verdicts)


def execute(
    command: Sequence[str], tool: str | None, options: Mapping[str, str], device: str | None, reports: bool = False
) -> Executed:
    """Run ``command``. ``device``: emulator:TARGET, or None for what the program finds. ``reports``: verdicts have
    those of all launches."""
    if shutil.which(command[0]) is None:
        raise Invalid(f"there is no program {command[0]}")
    environment = {**os.environ, **device_environment(device)}
    if tool is not None:
        load_tool(tool, options)  # what is wrong with it is said before the program starts
    remove_abandoned()
    with _signals_blocked() as mask, _folder() as folder:
        environment[FOLDER] = str(folder)
        if tool is None:
            return Executed(_run(command, environment, mask), ())
        settings = {
            "LD_PRELOAD": _first(str(tool_library()), environment.get("LD_PRELOAD"), " "),
            "LUTHIER_TOOL": tool,
            "LUTHIER_TOOL_OPTIONS": _lines(options),
            VERDICT: str(folder / "%w.json"),
            "LUTHIER_VERDICT_REPORTS": str(int(reports or bool(os.environ.get(VERDICT)))),
            "LUTHIER_PYTHON": sys.executable,
        }
        code = _run(command, {**environment, **settings}, mask)
        paths = _ended(folder)
        done = Executed(code, tuple(json.loads(path.read_text()) if reports else facts_of(path) for path in paths))
        if (path := os.environ.get(VERDICT)) and done.verdict is not None:
            with paths[done.verdicts.index(done.verdict)].open("rb") as verdict:
                write_file(Path(path), verdict)
    return done


def _ended(folder: Path) -> list[Path]:
    """The verdicts that workers have written, in order; a worker whose program was killed may still be at it."""
    patience = time.monotonic() + WORKER_SECONDS
    paths = list(folder.glob("*.json"))
    for path in paths:
        while not (facts := facts_of(path))["ended"] and time.monotonic() < patience:
            if not Path(f"/proc/{facts['worker']}").exists():
                break
            time.sleep(0.01)
    return sorted(paths, key=lambda path: path.stat().st_mtime_ns)


def device_environment(device: str | None) -> dict[str, str]:
    """What makes a program find the emulator in the runtime's place."""
    if device is None:
        return {}
    if not device.startswith("emulator"):
        raise Invalid(f"device {device} is unknown; give emulator:TARGET, or nothing for the GPU")
    folder = str(runtime_folder())
    libraries = _first(folder, os.environ.get("LD_LIBRARY_PATH"), os.pathsep)
    return {"LUTHIER_DEVICE": device, "LD_LIBRARY_PATH": libraries, "ROCM_PATH": folder}


def build_tool(tool: str, options: Mapping[str, str], output: Path) -> None:
    """Write a library for LD_PRELOAD that has this tool in it."""
    load_tool(tool, options)
    name = str(Path(tool).resolve()) if tool.endswith(".py") else tool
    write_file(output, tool_library(name, _lines(options)).read_bytes())
    output.chmod(0o755)


@contextmanager
def _folder() -> Iterator[Path]:
    folder, lock = new_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


@contextmanager
def _signals_blocked() -> Iterator[Iterable[int]]:
    """Gives the signals that were blocked before; those that come meanwhile are this process's at the end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield before
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run(command: Sequence[str], environment: Mapping[str, str], mask: Iterable[int]) -> int:
    """Wait for the program; whatever signal somebody sends to this process is the program's."""
    libc, parent = ctypes.CDLL(None), os.getpid()

    def in_child() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(SIGNALLED + signal.SIGKILL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    with subprocess.Popen(command, env=environment, preexec_fn=in_child) as process:
        while process.poll() is None:
            came = signal.sigtimedwait(_SIGNALS, PATIENCE)
            if came is not None and came.si_signo in _FORWARDED and came.si_code <= _SI_USER:
                process.send_signal(came.si_signo)  # from the terminal the program has it already
        code = process.wait()
    return code if code >= 0 else SIGNALLED - code


def _first(first: str, others: str | None, separator: str) -> str:
    return f"{first}{separator}{others}" if others else first


def _lines(options: Mapping[str, str]) -> str:
    return "\n".join(f"{name}={value}" for name, value in options.items())
