"""One trial in a process of its own, within limits that do not depend on how busy the computer is.

In: a fuzzer and a Case. Out: an Outcome. Invariant: whatever the trial does to its process - ends it, hangs, eats
memory, changes state - reaches nobody else. CPU time and peak memory are the kernel's own figures for that process.
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
import resource
import select
import shutil
import signal
import sys
import tempfile
import traceback
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fuzzer import Case, Fuzzer

from luthier_py.base.errors import LuthierError

CPU_SECONDS, PEAK_MB = 10, 300
KILL_MB = 1500         # what is bigger is not waited for
PATIENCE_SECONDS = 60  # without using the processor
LONGEST_MESSAGE, LONGEST_TRACE = 1000, 8000
ACCEPTED = "accepted"
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / (1 << 20)


@dataclass(frozen=True, slots=True)
class Outcome:
    """``word``: accepted, the class of the error that refused it, or "" for a finding, which ``finding`` names.

    Findings with one name have one cause, as far as can be told: exception and innermost function of the package.
    """

    word: str
    finding: str
    details: str
    cpu_seconds: float
    peak_mb: float


def outcome_of(fuzzer: Fuzzer, case: Case) -> Outcome:
    """Run the trial of a case."""
    folder = Path(tempfile.mkdtemp(prefix="luthier-fuzz-"))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _be_child(fuzzer, case, folder, writing)
    os.close(writing)
    try:
        told, killed = _watch(child, reading)
        _, status, usage = os.wait4(child, 0)
    finally:
        os.close(reading)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what it started and left
        _remove(folder)
    cpu, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
    word, finding, details = _read(told, killed, os.waitstatus_to_exitcode(status))
    if not finding and cpu > CPU_SECONDS:
        word, finding = "", f"more than {CPU_SECONDS} s"
    if not finding and peak > PEAK_MB:
        word, finding = "", f"more than {PEAK_MB} MB"
    return Outcome(word, finding, details, cpu, peak)


def _be_child(fuzzer: Fuzzer, case: Case, folder: Path, writing: int) -> None:
    """Never returns."""
    try:
        faulthandler.disable()
        os.setpgid(0, 0)  # with all that it starts
        resource.setrlimit(resource.RLIMIT_CPU, (2 * CPU_SECONDS, 2 * CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        quiet = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(quiet, number)
        os.chdir(folder)
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
        told = _told(fuzzer, case, folder)
        os.write(writing, json.dumps(told).encode())
    finally:
        os._exit(0)


def _told(fuzzer: Fuzzer, case: Case, folder: Path) -> tuple[str, str, str]:
    try:
        fuzzer.trial(case, folder)
    except LuthierError as error:
        text = str(error)
        if "\n" in text or len(text) > LONGEST_MESSAGE or type(error) is LuthierError:
            return "", f"LuthierError that is no line or has no class, {_place(error)}", text
        return type(error).__name__, "", text
    except BaseException as error:  # the process is thrown away: even SystemExit is only an outcome
        said = re.sub(r"\W*\d\w*", "", str(error))[:40] if isinstance(error, AssertionError) else ""
        trace = "".join(traceback.format_exception(error))
        return "", f"{type(error).__name__}, {_place(error)} {said}".strip(), trace[-LONGEST_TRACE:]
    return ACCEPTED, "", ""


def _place(error: BaseException) -> str:
    """The innermost function of the package that the error came through, or of the trial."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if f"{os.sep}luthier_py{os.sep}" in frame.filename] or frames
    return f"{Path(inside[-1].filename).name}:{inside[-1].name}" if inside else "nowhere"


def _watch(child: int, reading: int) -> tuple[bytes, str]:
    """What the child told, and why it was killed, if it was."""
    told, still, used = b"", 0.0, 0.0
    while True:
        if select.select([reading], [], [], 0.05)[0]:
            part = os.read(reading, 1 << 16)
            if not part:
                return told, ""
            told += part
            continue
        now, peak = _figures(child)
        still = 0.0 if now > used else still + 0.05
        used = now
        why = "too much memory" if peak > KILL_MB else "it waits for nothing" if still > PATIENCE_SECONDS else ""
        if why:
            os.killpg(child, signal.SIGKILL)
            return told, why


def _figures(child: int) -> tuple[float, float]:
    """CPU seconds, with those of its children that ended, and resident MB."""
    try:
        fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0, 0.0
    return sum(map(int, fields[11:15])) / _TICKS, int(fields[21]) * _PAGE_MB


def _read(told: bytes, killed: str, code: int) -> tuple[str, str, str]:
    if killed:
        return "", killed, ""
    if code == -signal.SIGXCPU or code == -signal.SIGKILL:
        return "", f"more than {CPU_SECONDS} s", ""
    if code < 0:
        return "", signal.Signals(-code).name, ""
    if not told:
        return "", "its process ended", ""
    word, finding, details = json.loads(told)
    return word, finding, details


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        print(f"cannot remove {folder}", file=sys.stderr)
