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
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from luthier_py.base.errors import Invalid
from luthier_py.base.records import dataclass, field
from luthier_py.base.storage import write_file
from luthier_py.features.settings.levels import choose_level
from luthier_py.features.settings.program import (
    code_for_others,
    obstacles,
    program_path,
    search_folders,
    why_not_started,
)
from luthier_py.features.settings.run_settings import RunSettings
from luthier_py.features.settings.stack import what_is_missing
from luthier_py.host.worker.device.abandoned import LONGEST
from luthier_py.host.worker.device.findings import FAILURES
from luthier_py.host.worker.device.findings import FILE as FINDINGS
from luthier_py.host.worker.device.traced import FILE as TRACED
from luthier_py.host.worker.watchdog import FOLDER, new_folder, remove_abandoned, wait_for_workers, was_served

if TYPE_CHECKING:
    from luthier_py.host.releases.fetched import FetchedRelease

FOUND, TOLD, FAILED = "findings", "told", "failures"
PATIENCE = 0.5  # seconds between looks whether a program has ended without a signal's report
_STOPPING = signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM
_FORWARDED = *_STOPPING, signal.SIGUSR1, signal.SIGUSR2
_SIGNALS = {signal.SIGCHLD, *_FORWARDED}
_PR_SET_PDEATHSIG, _SI_USER = 1, 0
SIGNALLED = 128  # a shell's exit code for a signal is this much more


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a program gets. ``output``, ``errors``: files for what it prints. ``variables``: of its environment, beside
    this process's. ``seconds``: until it is killed."""

    output: int | None = None
    errors: int | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    seconds: float | None = None


OURS = Surroundings()
"""What this process has."""


@dataclass(frozen=True, slots=True)
class Executed:
    """``verdicts``: one for each process with a tool under it, in the order in which they ended."""

    exit_code: int
    verdicts: tuple[Mapping[str, Any], ...]
    undelivered: tuple[str, ...] = ()
    """Requested outputs of the tool that did not come, a line for each."""
    hints: tuple[str, ...] = ()
    """Where the program failed or nothing was observed: what about it, or this computer, may be why."""
    launches: tuple[Mapping[str, Any], ...] = ()
    """Those that were checked, or ran by the cycle model: ``kernel``, ``findings`` and ``cycles`` with its like, as
    `luthier run --json` has them."""
    failures: tuple[Mapping[str, Any], ...] = ()
    """Launches that failed on the emulator, as `failure_facts` has them."""
    killed: bool = False
    """It took longer than it was given."""
    told: bytes = b""
    """The records that the program has written for a trace."""
    stopped: int | None = None
    """The signal that came meanwhile to end this process, and that the program was given instead."""

    @property
    def findings(self) -> list[Mapping[str, Any]]:
        """What the emulator's checks found, of all launches, in their order."""
        return [finding for launch in self.launches for finding in launch["findings"]]

    @property
    def found_by_tool(self) -> int:
        """Mistakes that a tool has reported."""
        return sum(facts["findings"] or 0 for facts in self.verdicts)

    @property
    def verdict(self) -> Mapping[str, Any] | None:
        """The verdict of the process that launched most."""
        return max(self.verdicts, key=lambda facts: int(facts["launches"]), default=None)

    @property
    def reasons(self) -> list[str]:
        """Why launches ran without the tool, as far as it is known."""
        refused = [row["reason"] for facts in self.verdicts for row in facts["refused"]]
        return refused + [reason for facts in self.verdicts if facts["ended"] for reason in facts["reasons"]]

    @property
    def observed(self) -> bool:
        """Whether the tool observed a launch in one of the processes at least."""
        return any(facts["observed"] for facts in self.verdicts)


def execute(
    command: Sequence[str], settings: RunSettings, tool: str | None = None, options: Mapping[str, str] | None = None,
    level: str | None = None, reports: bool = False, around: Surroundings = OURS, trace: Path | None = None,
) -> Executed:
    """Run ``command``. ``options``: the tool's. ``level``: where it intercepts, hip, hsa, or auto: HSA unless the
    program uses HIP. ``reports``: verdicts have those of all launches. ``trace``: a file for when launches ran."""
    done = _execute_command(command, settings, tool, options or {}, level, reports, around)
    if trace is not None:
        from luthier_py.features.trace.page import save_trace  # who wants none does not wait for it

        save_trace(trace, done.launches, done.verdicts, done.told)
    return done


def _execute_command(
    command: Sequence[str], settings: RunSettings, tool: str | None, options: Mapping[str, str], level: str | None,
    reports: bool, around: Surroundings,
) -> Executed:
    environment = {**os.environ, **around.variables}
    if "LUTHIER_LOADER" in environment:
        from luthier_py.features.settings.on_release import without_release  # few runs are inside of another

        environment = without_release(environment)
    release = settings.release(command[0])
    if release is not None:
        environment |= release.environment(environment)
    environment |= settings.environment()
    program = program_path(command[0], environment.get("PATH"))
    if tool is None:
        choose_level(level, settings.own_runtime, None)
        remove_abandoned()
        with _signals_blocked() as mask, _folder() as folder:
            environment |= _make_report_variables(folder, settings)
            code, killed, stopped = _run(command, release, environment, mask, around)
            _hear_all(folder, code)
            hints = _hints(program, settings, code, not was_served(folder)) if code else ()
            return Executed(code, (), hints=hints, launches=_launches(folder), failures=_rows(folder / FAILED),
                            killed=killed, told=_read_trace(folder), stopped=stopped)
    from luthier_py.features.exec.observation import (
        Observation,  # tools and reports: longer to import than a program's start
    )

    # what is wrong is said before the program starts
    observation = Observation(tool, options, level, settings.own_runtime, reports)
    observation.check(program, settings.device)
    remove_abandoned()
    with _signals_blocked() as mask, _folder() as folder:
        environment |= _make_report_variables(folder, settings)
        environment |= observation.environment(environment, folder)
        code, killed, stopped = _run(command, release, environment, mask, around)
        _hear_all(folder, code)
        verdicts = observation.verdicts(folder)
        observed = any(facts["observed"] for facts in verdicts)
        hints = () if observed else (*_hints(program, settings, code, bool(code) and not was_served(folder), tool),
                                     *observation.hints(verdicts))
        done = Executed(code, verdicts, observation.describe_undelivered(verdicts), hints, _launches(folder),
                        _rows(folder / FAILED), killed, _read_trace(folder), stopped)
        observation.hand_out(done.verdict)
    return done


def _hear_all(folder: Path, code: int) -> None:
    """A worker whose program was killed is still to say where waves stand. Higher codes (exit(-1)) are no signal."""
    if SIGNALLED < code <= SIGNALLED + signal.SIGRTMAX:
        wait_for_workers(folder, LONGEST)


def _make_report_variables(folder: Path, settings: RunSettings) -> dict[str, str]:
    """Where program and worker write what is to be known."""
    traced = {TRACED: str(folder / TOLD)} if settings.times else {}
    return {FOLDER: str(folder), FINDINGS: str(folder / FOUND), FAILURES: str(folder / FAILED), **traced}


def _read_trace(folder: Path) -> bytes:
    path = folder / TOLD
    return path.read_bytes() if path.exists() else b""


def _rows(path: Path) -> tuple[Mapping[str, Any], ...]:
    return tuple(map(json.loads, path.read_bytes().splitlines())) if path.exists() else ()


def _launches(folder: Path) -> tuple[Mapping[str, Any], ...]:
    """What was reported of launches of all processes, in the order in which it was written; who named a file for it
    has it, too."""
    path = folder / FOUND
    if name := os.environ.get(FINDINGS):
        write_file(Path(name), path.read_bytes() if path.exists() else b"")
    return _rows(path)


def _hints(path: Path, settings: RunSettings, code: int, unserved: bool, tool: str | None = None) -> tuple[str, ...]:
    """``unserved``: it failed, and never came to a device."""
    missing = what_is_missing(settings.stack, settings.device, search_folders(path)) if unserved else None
    found = [missing, *obstacles(path, settings.own_runtime)] if settings.device or tool else [missing]
    if code and settings.device and not settings.own_runtime and tool is None:  # our runtime, and tools, say so
        found += code_for_others(path, settings.device)
    return tuple(filter(None, found))


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
    unaudited = (
        signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN
    )  # the kernel saves no exit code of children whose SIGCHLD is ignored
    if unaudited:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        yield before
    finally:
        if unaudited:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run(command: Sequence[str], release: FetchedRelease | None, environment: Mapping[str, str], mask: Iterable[int],
         around: Surroundings) -> tuple[int, bool, int | None]:
    """Wait for the program: its exit code, whether it took too long, and by which signal it was stopped. Signals that
    are sent to this process are forwarded to the program."""
    if release is not None:
        from luthier_py.features.settings.on_release import start_on

        command, environment = start_on(release, command, environment)
    libc, parent = ctypes.CDLL(None), os.getpid()

    def in_child() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(SIGNALLED + signal.SIGKILL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    end, killed, stopped = None if around.seconds is None else time.monotonic() + around.seconds, False, None
    with _start_process(command, environment, in_child, around) as process:
        while process.poll() is None:
            if end is not None and not killed and time.monotonic() > end:
                killed = True
                process.kill()
            came = signal.sigtimedwait(_SIGNALS, PATIENCE)
            if came is not None and came.si_signo in _STOPPING:
                stopped = came.si_signo
            if came is not None and came.si_signo in _FORWARDED and came.si_code <= _SI_USER:
                process.send_signal(came.si_signo)  # from the terminal the program has it already
        code = process.wait()
    return code if code >= 0 else SIGNALLED - code, killed, stopped


def _start_process(
    command: Sequence[str], environment: Mapping[str, str], in_child: Callable[[], None],
    around: Surroundings,
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(command, env=environment, preexec_fn=in_child, stdout=around.output,
                                stderr=around.errors)
    except OSError as error:
        why = why_not_started(program_path(command[0])) or f"{command[0]}: {error.strerror}"
        raise Invalid(f"{why}; nothing was started") from None
