"""How long a launch may take, and for which writers it may wait.

In: seconds or instructions, and others who write memory. Out: the same. Invariant: a time limit is one that a timer
takes, as LaunchOptions have it.
"""

from __future__ import annotations

from typing import Protocol

from luthier_py.base.records import dataclass


@dataclass(frozen=True, slots=True)
class LaunchLimits:
    """How long a launch may take. ``others_write``: its memory, while it runs, so that it may wait for them."""

    time_limit: float | None = None  # seconds
    instruction_limit: int | None = None  # of all waves together
    others_write: bool = False
    standstill: float = 30.0         # seconds until waiting for work-groups that cannot start is an error all the same

    @property
    def limited(self) -> bool:
        """Whether there is a limit of time or of instructions, for which a launch has to be looked at while it runs."""
        return self.time_limit is not None or self.instruction_limit is not None


class ExternalWriter(Protocol):
    """What writes the device's memory, beside the device, while kernels run."""

    @property
    def changes(self) -> int:
        """A number that is another one after each time."""

    def will_write(self) -> bool:
        """Whether it is going to, whatever the waves do."""
