"""What whoever starts a run wants of its launches on the emulator, beside what they compute.

In: options, parsed. Out: the same, together. Invariant: without any, generated code is as if there were none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from luthier_py.emulator.options.checks import MISTAKES, Checks
from luthier_py.emulator.options.clock_kind import ClockKind
from luthier_py.emulator.options.schedule import Schedule
from luthier_py.emulator.options.settings import Settings
from luthier_py.emulator.options.time_limit import check_time_limit


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """``time_limit``: seconds of a launch, or None; ``instruction_limit``: executed instructions. ``clock``: what the
    core's clock counts; by the model, one work-group runs at a time. ``schedule``: by which waves take turns; None for
    their order."""

    time_limit: float | None = None
    clock: ClockKind = ClockKind.INSTRUCTIONS
    schedule: Schedule | None = None
    checks: Checks = Checks.NONE
    instruction_limit: int | None = None

    def __post_init__(self) -> None:
        if self.time_limit is not None:
            check_time_limit(self.time_limit)

    @property
    def models_cycles(self) -> bool:
        """Whether launches run under the cycle model."""
        return self.clock is ClockKind.MODEL

    @property
    def watched(self) -> bool:
        """Whether native code may not begin such launches: all of them are dispatch's from their start."""
        limited = self.instruction_limit is not None
        return self.models_cycles or self.schedule is not None or bool(self.checks) or limited

    @property
    def reported(self) -> bool:
        """Whether there is anything to say of such launches."""
        return self.models_cycles or bool(self.checks & MISTAKES)

    def settings(self, settings: Settings) -> Settings:
        """For code of such launches."""
        return replace(settings, cycles=self.models_cycles, yields=self.schedule is not None, checks=self.checks)


NO_OPTIONS = LaunchOptions()
