"""A whole program, run again and again with a fault in one of its launches, and what became of its results.

In: a command, what of it is compared, the options of the tool. Out: for each fault an Injection. Invariant: without a
fault the program comes to the same results twice, with the tool and without it; each run begins without the files that
are compared.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from luthier_py.base.errors import Invalid, LuthierError
from luthier_py.base.records import dataclass, replace
from luthier_py.features.exec.execute import SIGNALLED, Executed, Surroundings, execute
from luthier_py.features.faults.drawing import NO_FAULT, TOOL, WrittenRegisters, as_words
from luthier_py.features.faults.judging import FaultEffect, FaultSide, Injection, effect_of_failure, instruction_limit
from luthier_py.features.settings.contents import content_of
from luthier_py.features.settings.run_settings import RunSettings
from luthier_py.host.worker.device.settings import PROFILE

STDOUT = Path("-")
"""Among the files that are compared, what the program prints."""
LEAST_SECONDS, TIMES_AS_LONG = 30.0, 50.0
"""Of a program with a fault until it hangs on the host, and beside one without."""


@dataclass(frozen=True, slots=True)
class ProgramCheck:
    """How results are checked, beside the exit code: by ``command``, or else by ``files`` that are what
    they are without a fault."""

    files: tuple[Path, ...] = (STDOUT,)
    command: str = ""


@dataclass(frozen=True, slots=True)
class ProgramResults:
    """What a run left: files that are compared, None for one that is not there."""

    exit_code: int
    files: tuple[bytes | None, ...]
    check: int


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """One run of the program; ``seconds``: wall time, with the start of the tool."""

    done: Executed
    results: ProgramResults
    seconds: float

    @property
    def report(self) -> Mapping[str, Any] | None:
        """The report of the launch that may have a fault; the device may have failed before it could report."""
        rows = [row for facts in self.done.verdicts for row in facts["reports"]]
        return rows[0]["report"] if rows else None


@dataclass(frozen=True, slots=True)
class ProgramBench:
    """``kernels``: names by launch; ``golden``: the results without a fault."""

    subject: ProgramSubject
    settings: RunSettings
    options: Mapping[str, str]
    written: WrittenRegisters
    kernels: Sequence[str]
    golden: ProgramResults
    seconds: float

    def kernel(self, launch: int) -> str:
        """The kernel's name in the run without a fault; empty for a launch that the tool reported nothing of."""
        return self.kernels[launch]

    def inject(self, options: Mapping[str, str], launch: int) -> Injection:
        """Run the whole program with a fault. A failure on the device decides the effect, then the time limit, then a
        signal, then the results."""
        ran = self._run(options, launch)
        hit = None if ran.report is None else ran.report["hit"]
        if ran.done.failures:
            failure = ran.done.failures[0]
            effect = FaultEffect.NOT_JUDGED if failure["refused"] else effect_of_failure(failure["fault"])
            return Injection(effect, hit, failure["error"], FaultSide.DEVICE)
        if ran.done.killed:
            return Injection(FaultEffect.HANG, hit, f"no end of the program within {self.seconds:g} s", FaultSide.HOST)
        if ran.results.exit_code > SIGNALLED and ran.results.exit_code != self.golden.exit_code:
            why = f"signal {ran.results.exit_code - SIGNALLED} ended the program"
            return Injection(FaultEffect.CRASH, hit, why, FaultSide.HOST)
        if ran.report is not None and hit is None:
            return Injection(FaultEffect.NOT_HIT, None)
        why = "; ".join(self.subject.differences(self.golden, ran.results))
        return Injection(FaultEffect.SDC if why else FaultEffect.MASKED, hit, why)

    def find_hit(self, options: Mapping[str, str], launch: int) -> Mapping[str, Any] | None:
        """Run the program with a fault that changes nothing, and give what the tool saw at its place. None where the
        wave did not come there, or the launch was not reported."""
        report = self._run(options, launch).report
        return None if report is None else report["hit"]

    def _run(self, options: Mapping[str, str], launch: int) -> ProgramRun:
        given = {**self.options, **options, **of_launch(launch)}
        return self.subject.run(self.settings, given, seconds=self.seconds)


@dataclass(frozen=True, slots=True)
class ProgramSubject:
    """A program, that a campaign injects faults into."""

    command: tuple[str, ...]
    check: ProgramCheck

    @property
    def name(self) -> str:
        """The command as a shell takes it, by which tables name the program."""
        return shlex.join(self.command)

    @property
    def stem(self) -> str:
        """The program's file name."""
        return Path(self.command[0]).name

    def content(self) -> object:
        """What decides, beside the campaign, what becomes of a fault."""
        return [*map(content_of, self.command)], self.check

    @contextmanager
    def bench(self, options: Mapping[str, str], settings: RunSettings) -> Iterator[ProgramBench]:
        """With the first runs, without a fault."""
        bare = self.run(settings, None)
        counted, instructions = self._run_and_count(options, settings)
        self._require_same(bare.results, counted)
        launches = launches_of(self.name, counted.done)
        rows = [launches.get(number, {}) for number in range(max(launches, default=-1) + 1)]
        written = tuple(tuple(row["report"]["executions"] or ()) if row else () for row in rows)
        limit = instruction_limit(settings.launch, instructions)
        limited = replace(settings, launch=replace(settings.launch, instruction_limit=limit))
        seconds = max(LEAST_SECONDS, TIMES_AS_LONG * counted.seconds)
        kernels = [row.get("kernel", "") for row in rows]
        yield ProgramBench(self, limited, options, written, kernels, bare.results, seconds)

    def _run_and_count(self, options: Mapping[str, str], settings: RunSettings) -> tuple[ProgramRun, int]:
        """A run under the tool, and how many instructions its longest launch had."""
        with TemporaryDirectory() as folder:
            profile = Path(folder) / "launches"
            ran = self.run(settings, {**options, **NO_FAULT.options()}, {PROFILE: str(profile)})
            lines = profile.read_text().splitlines() if profile.exists() else []
        return ran, max((int(json.loads(line)["instructions"]) for line in lines), default=0)

    def _require_same(self, bare: ProgramResults, counted: ProgramRun) -> None:
        """LuthierError where runs without a fault fail or differ, so that no fault can be judged."""
        if counted.done.failures:
            raise LuthierError(f"{self.name}: without a fault a launch failed: {counted.done.failures[0]['error']}")
        if differing := [*self.differences(bare, counted.results)]:
            raise LuthierError(f"{self.name}: twice without a fault it comes to different results: {differing[0]}; "
                               "choose what is compared with --results or --check")
        if bare.check:
            raise LuthierError(f"{self.name}: without a fault --check ends with {bare.check}")
        for path, left in zip(self.check.files, bare.files, strict=False):
            if left is None:
                raise LuthierError(f"{self.name}: without a fault it writes no {path}; give --results another file")

    def again(self, options: Mapping[str, str], settings: RunSettings, launch: int) -> str:
        """The command that does it once more."""
        words = shlex.join(["luthier", "exec", *settings.words, "-t", TOOL])
        return f"{words} {as_words({**options, **of_launch(launch)})} -- {self.name}"

    def run(self, settings: RunSettings, options: Mapping[str, str] | None, variables: Mapping[str, str] | None = None,
            seconds: float | None = None) -> ProgramRun:
        """``options``: of the tool, None without it."""
        for path in self.check.files:
            if path != STDOUT:
                path.unlink(missing_ok=True)
        with TemporaryDirectory() as folder:
            printed, errors = Path(folder) / "stdout", Path(folder) / "stderr"
            started = time.monotonic()
            with printed.open("wb") as out, errors.open("wb") as err:
                around = Surroundings(out.fileno(), err.fileno(), variables or {}, seconds)
                done = execute(self.command, settings, None if options is None else TOOL, options, reports=True,
                               around=around)
            if done.stopped is not None:  # this fault is not judged, and the user stopped the campaign
                raise SystemExit(SIGNALLED + done.stopped)
            took = time.monotonic() - started
            files = [printed if path == STDOUT else path for path in self.check.files]
            left = () if self.check.command else tuple(each.read_bytes() if each.exists() else None for each in files)
        return ProgramRun(done, ProgramResults(done.exit_code, left, self._run_check()), took)

    def _run_check(self) -> int:
        """The exit code of --check."""
        if not self.check.command:
            return 0
        return subprocess.run(self.check.command, shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              stdin=subprocess.DEVNULL).returncode

    def differences(self, expected: ProgramResults, got: ProgramResults) -> Iterator[str]:
        """The differences, in words."""
        if got.exit_code != expected.exit_code:
            yield f"exit code {got.exit_code}, not {expected.exit_code}"
        if got.check != expected.check:
            yield f"--check ends with {got.check}"
        for path, before, after in zip(self.check.files, expected.files, got.files, strict=False):
            if before != after:
                yield f"{'what it prints' if path == STDOUT else path}: {first_difference(before, after)}"


def of_launch(launch: int) -> dict[str, str]:
    """Options of any tool that choose it."""
    return {"START_GRID_NUM": str(launch), "END_GRID_NUM": str(launch + 1)}


def first_difference(before: bytes | None, after: bytes | None) -> str:
    """The first difference, in words."""
    if before is None or after is None:
        return "it is not there" if after is None else "it was not there"
    at = next((at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other),
              min(len(before), len(after)))
    sizes = "" if len(before) == len(after) else f" ({len(after)} bytes, not {len(before)})"
    return f"other from byte {at} on{sizes}"


def launches_of(name: str, done: Executed) -> dict[int, Mapping[str, Any]]:
    """Reports by number of the launch."""
    told = [facts for facts in done.verdicts if facts["reports"]]
    if len(told) > 1:
        raise LuthierError(f"{name}: {len(told)} of its processes launch kernels, whose launches cannot be told apart; "
                           "give one process alone a fault, or record a launch of it")
    if not told:
        reasons = "; ".join(done.reasons) or "no launch came to the tool"
        raise Invalid(f"{name}: there is nothing to inject a fault into: {reasons}")
    return {row["launch"]: row for row in told[0]["reports"] if row["report"] is not None}
