"""A program by many schedules: whether its exit code or what it prints depends on the order of waves.

In: a command, a device, a number. Out: the program's own output once, and the seeds that gave another. Invariant: what
the program prints by these schedules is kept, not shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from tempfile import TemporaryFile

from luthier_py.emulator.schedule import Schedule
from luthier_py.errors import Invalid
from luthier_py.session.execute import execute
from luthier_py.session.shuffle import Shuffled, shuffled


@dataclass(frozen=True, slots=True)
class ShuffledProgram:
    """``exit_code``, ``printed``: of the program with waves in their order."""

    exit_code: int
    printed: bytes
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
    first: list[tuple[int, bytes]] = []

    def once(schedule: Schedule | None) -> dict[str, bytes]:
        with TemporaryFile() as output:
            done = execute(command, None, {}, device, time_limit=time_limit, stack=stack,
                           schedule="default" if schedule is None else str(schedule), check=check,
                           clock=clock, output=output.fileno())
            output.seek(0)
            printed = output.read()
        first.append((done.exit_code, printed))
        return {"exit code": str(done.exit_code).encode(), "output": printed}

    found = shuffled(count, once)
    return ShuffledProgram(*first[0], found)
