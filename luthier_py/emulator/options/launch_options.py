"""Options of launches on the emulator, and how command lines and the environment spell them.

In: options, parsed. Out: the same, together; for each a row by which command lines, the environment and other processes
have it. Invariant: without any, generated code is as if there were none.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

from luthier_py.base.records import dataclass, replace
from luthier_py.emulator.options.checks import MISTAKES, Checks, join_checks, parse_checks
from luthier_py.emulator.options.clock_kind import ClockKind, parse_clock
from luthier_py.emulator.options.schedule import Schedule, parse_schedule
from luthier_py.emulator.options.time_limit import check_time_limit, parse_instruction_limit, parse_time_limit

if TYPE_CHECKING:
    from luthier_py.emulator.options.settings import Settings


@dataclass(frozen=True, slots=True)
class LaunchOption:
    """How one of them is given: by an option, or an environment variable. ``parse`` reads its text, also an empty one;
    ``text`` is the way back. ``kind``: of what stands behind the option. ``limits``: it is a limit, as runs have that
    are made again and again."""

    option: str
    variable: str
    parse: Callable[[str], Any]
    metavar: str
    help: str
    text: Callable[[Any], str] = str
    kind: type = str
    limits: bool = False


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """``time_limit``: seconds of a launch, or None; ``instruction_limit``: executed instructions. ``clock``: what the
    core's clock counts; by the model, one work-group runs at a time. ``schedule``: by which waves take turns; None for
    their order."""

    time_limit: Annotated[float | None, LaunchOption(
        "--time-limit", "LUTHIER_TIME_LIMIT", parse_time_limit, "SECONDS",
        "of a launch on the emulator; then it ends, and says where its waves stand", kind=float, limits=True,
    )] = None
    clock: Annotated[ClockKind, LaunchOption(
        "--clock", "LUTHIER_CLOCK", parse_clock, "instructions|model",
        "on the emulator: what kernels' clocks count, executed instructions (default) or cycles of a model",
        text=attrgetter("value"),
    )] = ClockKind.INSTRUCTIONS
    schedule: Annotated[Schedule | None, LaunchOption(
        "--schedule", "LUTHIER_SCHEDULE", parse_schedule, "seed=N",
        "on the emulator: waves take turns at random, the same again for the same N",
    )] = None
    checks: Annotated[Checks, LaunchOption(
        "--check", "LUTHIER_CHECK", parse_checks, "all|bounds,...",
        "look for mistakes on the emulator: bounds, waits, races, init, barriers, hardware, which are all; or for "
        "alignment, and lockstep", text=join_checks,
    )] = Checks.NONE
    instruction_limit: Annotated[int | None, LaunchOption(
        "--instruction-limit", "LUTHIER_INSTRUCTION_LIMIT", parse_instruction_limit, "COUNT",
        "the same by instructions that its waves have executed, those of a tool, too: the same launches end each time",
        kind=int, limits=True,
    )] = None

    def __post_init__(self) -> None:
        if self.time_limit is not None:
            check_time_limit(self.time_limit)

    @property
    def models_cycles(self) -> bool:
        """Whether launches run under the cycle model."""
        return self.clock is ClockKind.MODEL

    @property
    def watched(self) -> bool:
        """Whether `launches/dispatch.py` begins such launches, since native code does not."""
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
LAUNCH_OPTIONS: dict[str, LaunchOption] = dict(sorted(
    ((name, get_args(hint)[1]) for name, hint in get_type_hints(LaunchOptions, include_extras=True).items()),
    key=lambda each: not each[1].limits))
"""By the field's name; limits come first."""
