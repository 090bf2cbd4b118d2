"""Whatever a trial does to its process is told, and reaches nobody else."""

from __future__ import annotations

import os
import random
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import trial
from campaign import Tally, table
from findings import restored, smaller
from fuzzer import Case, Fuzzer

from luthier_py.base.errors import LuthierError, Malformed


@pytest.fixture(autouse=True)
def room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial begins with the memory of this process, which other tests have filled."""
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    monkeypatch.setattr(trial, "PEAK_MB", (resident >> 20) + 300)
    monkeypatch.setattr(trial, "KILL_MB", (resident >> 20) + 1500)


def tried(action: Callable[[Path], object]) -> trial.Outcome:
    return trial.outcome_of(Fuzzer("x", lambda rng: Case(b""), lambda case, folder: action(folder)), Case(b""))


def fail(error: BaseException) -> None:
    raise error


def spin() -> None:
    while True:
        pass


def test_what_ends_well() -> None:
    assert tried(lambda folder: (folder / "x").write_text("left behind")).word == trial.ACCEPTED
    outcome = tried(lambda folder: fail(Malformed("no")))
    assert (outcome.word, outcome.finding, outcome.details) == ("Malformed", "", "no")
    assert 0 < outcome.peak_mb < trial.PEAK_MB


@pytest.mark.parametrize(("action", "finding"), [
    (lambda folder: fail(ValueError("x")), "ValueError, test_trial.py:fail"),
    (lambda folder: fail(SystemExit(0)), "SystemExit, test_trial.py:fail"),
    (lambda folder: fail(AssertionError("in 12 places")), "AssertionError, test_trial.py:fail in places"),
    (lambda folder: fail(Malformed("two\nlines")), "LuthierError that is no line or has no class, test_trial.py:fail"),
    (lambda folder: fail(LuthierError("no class")), "LuthierError that is no line or has no class, test_trial.py:fail"),
    (lambda folder: os.kill(os.getpid(), signal.SIGSEGV), "SIGSEGV"),
    (lambda folder: os._exit(3), "its process ended"),
    (lambda folder: bytearray(b"x" * (400 << 20)), "more than {} MB"),
])
def test_what_is_found(action: Callable[[Path], object], finding: str) -> None:
    assert tried(action).finding == finding.format(trial.PEAK_MB)


def test_time_is_that_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "CPU_SECONDS", 1)
    assert tried(lambda folder: spin()).finding == "more than 1 s"
    assert not tried(lambda folder: time.sleep(2)).finding


def test_who_waits_for_nothing_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "PATIENCE_SECONDS", 0.3)
    assert tried(lambda folder: time.sleep(1000)).finding == "it waits for nothing"


def test_findings_are_made_small() -> None:
    data = random.Random(1).randbytes(1000) + b"bad!" + bytes(300)
    assert smaller(data, lambda piece: b"bad!" in piece) == b"bad!"
    seed = bytes(1304)
    left = restored(data, seed, lambda piece: b"bad!" in piece)
    assert left == bytes(1000) + b"bad!" + bytes(300)


def test_the_table_sums_up() -> None:
    first, second = Tally("a", 3), Tally("b", 4, cpu_seconds=2.5, peak_mb=70)
    first.words.update(accepted=1, Malformed=2)
    second.found["x"] += 4
    assert table([first, second]).splitlines()[2:] == [
        "| a | 3 | 1 | Malformed 2 | 0 | 0.0 s | 0 MB |",
        "| b | 4 | 0 |  | 4 | 2.5 s | 70 MB |",
        "| all | 7 | 1 | Malformed 2 | 4 | 2.5 s | 70 MB |",
    ]
