"""What becomes of a fault: of a recorded launch, or of a program.

In: a bench, which runs its subject with options of the tool; a drawn fault. Out: a JudgedFault. Invariant: what says
where a fault is, is what the tool saw there, also where the launch failed before it could report.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Protocol

from luthier_py.base.errors import FaultKind
from luthier_py.base.records import dataclass
from luthier_py.emulator.options.launch_options import LaunchOptions
from luthier_py.features.faults.drawing import EVERY_LANE, OF_OPCODE, ONCE, InjectedFault, WrittenRegisters

LIMITS = FaultKind.MODE.value, FaultKind.SURFACE.value
"""What only the emulator does not let pass."""
LEAST_INSTRUCTIONS, TIMES_AS_MANY = 10_000, 20
"""Of a launch with a fault until it hangs, and beside one without."""


class FaultEffect(Enum):
    """What becomes of a launch with a fault."""

    MASKED = "masked"          # results are what they are without
    SDC = "sdc"                # silent data corruption: they differ, and no error was raised
    CRASH = "crash"            # a wave did what no device lets pass, or the program died
    HANG = "hang"              # no end within the limit, or no wave can continue
    NOT_HIT = "not hit"        # the kernel does not do the same each time
    NOT_JUDGED = "not judged"  # it came to what the emulator does not run


class FaultSide(Enum):
    """Where a crash or a hang is seen."""

    DEVICE = "device"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class Injection:
    """One run. ``hit``: as the tool reports it, if it could. ``why``: what differs, or went wrong."""

    effect: FaultEffect
    hit: Mapping[str, Any] | None
    why: str = ""
    side: FaultSide | None = None


@dataclass(frozen=True, slots=True)
class JudgedFault:
    """``options``: of the tool, that inject it again."""

    fault: InjectedFault
    options: Mapping[str, str]
    injection: Injection


class Bench(Protocol):
    """What is run with faults. ``written``: registers that waves write without one."""

    @property
    def written(self) -> WrittenRegisters: ...

    def inject(self, options: Mapping[str, str], launch: int) -> Injection:
        """Run it once; ``options``: of the tool, in the place of those that the campaign gives."""

    def find_hit(self, options: Mapping[str, str], launch: int) -> Mapping[str, Any] | None:
        """What the tool sees there and leaves alone."""

    def kernel(self, launch: int) -> str:
        """Its name."""


def judge_fault(bench: Bench, fault: InjectedFault, given: Mapping[str, str], every_lane: bool) -> JudgedFault:
    """``given``: the campaign's options of the tool. ``every_lane``: of a permanent fault, not the drawn one alone."""
    wider = EVERY_LANE if every_lane and fault.model not in ONCE else {}
    if fault.model not in OF_OPCODE:
        return _judge_injection(bench, fault, {**fault.options(), **wider}, bench.inject({**fault.options(), **wider},
                                                                               fault.launch))
    hit = bench.find_hit(fault.look(), fault.launch)
    if hit is None:
        return JudgedFault(fault, fault.look(), Injection(FaultEffect.NOT_HIT, None))
    options = {**fault.options_of_opcode(hit, given.get("INSTRUMENT", "")), **wider}
    return JudgedFault(fault, options, _at(bench.inject(options, fault.launch), hit))


def _judge_injection(bench: Bench, fault: InjectedFault, options: Mapping[str, str],
                     injection: Injection) -> JudgedFault:
    """Judge with the place that a second run reports, if the launch failed before it was reported."""
    if injection.hit is None and injection.effect not in (FaultEffect.NOT_HIT, FaultEffect.MASKED):
        injection = _at(injection, bench.find_hit(fault.look(), fault.launch))
    return JudgedFault(fault, options, injection)


def _at(injection: Injection, seen: Mapping[str, Any] | None) -> Injection:
    """Take the place from what the tool saw without the fault; the faulty value only the faulty run can report."""
    hit = injection.hit or (None if seen is None else {**seen, "after": None})
    return Injection(injection.effect, hit, injection.why, injection.side)


def instruction_limit(chosen: LaunchOptions, instructions: int) -> int:
    """The limit of launches that execute so many without a fault."""
    return chosen.instruction_limit or max(LEAST_INSTRUCTIONS, TIMES_AS_MANY * instructions)


def effect_of_failure(fault: str | None) -> FaultEffect:
    """The effect in a launch that failed; ``fault``: the kind, None where no wave did anything wrong."""
    if fault is None:
        return FaultEffect.HANG
    return FaultEffect.NOT_JUDGED if fault in LIMITS else FaultEffect.CRASH
