"""A program by many schedules: whether its exit code or what it prints depends on the order of waves.

In: a command, a device, a number. Out: the program's own output once, and the seeds that gave another. Invariant: what
the program prints by these schedules is compared, not shown; stopping this process stops all runs.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from tempfile import TemporaryFile

from luthier_py.base.records import dataclass
from luthier_py.emulator.options.schedule import Schedule
from luthier_py.features.exec.execute import SIGNALLED, Executed, Surroundings, execute
from luthier_py.features.run.shuffle import Shuffled, compare_schedules, encode_findings
from luthier_py.features.settings.run_settings import RunSettings
from luthier_py.host.worker.error_boundary import say

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
        """Sentences that say which seeds gave another outcome (`Shuffled.lines`)."""
        return self.shuffled.lines


def shuffle_program(command: Sequence[str], settings: RunSettings) -> ShuffledProgram:
    """Run ``command`` once, and then by other schedules, as many as the settings say."""
    ran: list[tuple[Executed, bytes]] = []

    def once(schedule: Schedule | None) -> dict[str, bytes]:
        with TemporaryFile() as output:
            done = execute(command, settings.by(schedule), around=Surroundings(output.fileno()))
            output.seek(0)
            printed = output.read()
        if done.exit_code in _STOPPED:
            raise SystemExit(done.exit_code)
        ran.append((done, printed))
        if done.findings:
            say(f"these by {schedule or 'waves in their order'}")
        return {"exit code": str(done.exit_code).encode(), "output": printed,
                "what checks find": encode_findings(done.findings)}

    found = compare_schedules(settings.shuffle, once)
    first, printed = ran[0]
    findings = sum(len(done.findings) for done, _ in ran)
    return ShuffledProgram(first.exit_code, printed, first.hints, findings, found)
