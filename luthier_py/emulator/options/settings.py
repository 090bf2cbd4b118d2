"""What host functions depend on beside instructions, and the numbers by which they count.

In: nothing. Out: names for the code that writes host functions, and for the cache that finds them. Invariant: to
import it costs next to nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from enum import Enum, auto

from luthier_py.base.records import dataclass, field
from luthier_py.emulator.options.checks import Checks
from luthier_py.isa.model.target import Target


class CounterKind(Enum):
    """What a counter sums for each execution of its instructions."""

    WAVES = auto()         # 1
    ACTIVE_WAVES = auto()  # 1 if EXEC is not 0
    LANES = auto()         # lanes in EXEC


@dataclass(slots=True)
class CodeNumbers:
    """Mutable: numbers given out to counters and memory sites of one host function, or of all that run together."""

    counters: list[tuple[CounterKind, tuple[int, ...]]] = field(default_factory=list)
    """(what it sums, the instructions it counts)."""
    sites: list[int] = field(default_factory=list)
    """The instruction of each memory site."""


FIRST_COUNTER, FIRST_SITE = "first_counter", "first_site"
"""Symbols whose addresses are numbers: those that a host function's own count from."""


def number_of(symbol: str) -> str:
    """As an operand of LLVM."""
    return f"ptrtoint (ptr @{symbol} to i64)"


class Style(Enum):
    """What becomes of vector instructions. All styles give the same results and counts, and have the same counters."""

    CALLS = auto()       # each is a call: soon there
    LOOPS = auto()       # loops over strips of lanes
    EVEN_LOOPS = auto()  # and others for even lanes: twice as long, and faster


@dataclass(frozen=True, slots=True)
class Weights:
    """What the cycle model multiplies all times of an instruction by: ``chosen`` at ``pcs``, addresses that ascend, and
    elsewhere ``others``. Its time is homogeneous: with both multiplied by n, a launch takes n times as long."""

    pcs: tuple[int, ...]
    chosen: int
    others: int

    def at(self, pc: int) -> int:
        """The factor for the instruction at the address ``pc``."""
        place = bisect_left(self.pcs, pc)
        return self.chosen if pc in self.pcs[place : place + 1] else self.others


@dataclass(frozen=True, slots=True)
class Settings:
    """What the generated code depends on beside the instructions."""

    wave_size: int
    mode: int  # MODE as a kernel starts, and wherever a function is entered and left
    target: Target
    cycles: bool = False  # with the cycle model
    yields: bool = False
    """Whether a wave may give way wherever others could notice: before accesses of memory, waits, and at branches."""
    checks: Checks = Checks.NONE
    weights: Weights | None = None
    d16_clears: bool = False  # of the device's target ID
