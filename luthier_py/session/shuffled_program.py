"""A program by many schedules: whether its exit code or what it prints depends on the order of waves.

In: a command, a device, a number. Out: the program's own output once, and the seeds that gave another. Invariant: what
the program prints by these schedules is kept, not shown; whoever stops it stops all of them.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from tempfile import TemporaryFile

from luthier_py.emulator.schedule import Schedule
from luthier_py.errors import Invalid
from luthier_py.session.execute import SIGNALLED, Executed, execute
from luthier_py.session.shuffle import Shuffled, shuffled, told_apart
from luthier_py.worker.edge import say

_STOPPED = {SIGNALLED + number for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)}


@dataclass(frozen=True, slots=True)
class ShuffledProgram:
    """``exit_code``, ``printed``, ``hints``: of the program with waves in their order; ``findings``: of checks, by all
    orders."""

    exit_code: int
    printed: bytes
    hints: tuple[str, ...]
    findings: int
    shuffled: Shuffled

    @property
    def lines(self) -> list[str]:
        return self.shuffled.lines


def shuffle_program(command: Sequence[str], tool: str | None, device: str | None, count: int,
                    time_limit: float | None = None, stack: str | None = None,
                    check: str | None = None, clock: str | None = None) -> ShuffledProgram:
    """Run ``command`` once, and then by ``count`` schedules; Invalid with a tool, or without an emulated device."""
    if tool is not None:
        raise Invalid("--shuffle compares what the program itself prints; leave out -t")
    if device is None:
        raise Invalid("schedules are for kernels on the emulator; give a device, as emulator:TARGET")
    ran: list[tuple[Executed, bytes]] = []

    def once(schedule: Schedule | None) -> dict[str, bytes]:
        with TemporaryFile() as output:
            done = execute(command, None, {}, device, time_limit=time_limit, stack=stack,
                           schedule="default" if schedule is None else str(schedule), check=check,
                           clock=clock, output=output.fileno())
            output.seek(0)
            printed = output.read()
        if done.exit_code in _STOPPED:
            raise SystemExit(done.exit_code)
        ran.append((done, printed))
        if done.findings:
            say(f"these by {schedule or 'waves in their order'}")
        return {"exit code": str(done.exit_code).encode(), "output": printed,
                "what checks find": told_apart(done.findings)}

    found = shuffled(count, once)
    first, printed = ran[0]
    findings = sum(len(done.findings) for done, _ in ran)
    return ShuffledProgram(first.exit_code, printed, first.hints, findings, found)
