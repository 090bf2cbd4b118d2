"""What a checked launch looks for: names for people, numbers for native code (watching/watching.h).

In: names of checks. Out: Checks. Invariant: numbers are what native code knows them by.
"""

from __future__ import annotations

from enum import Flag, IntEnum, IntFlag, auto

from luthier_py.base.errors import Invalid


class Checks(Flag):
    """What native code looks for as waves run: kinds of mistakes, and what memory they come to."""

    NONE = 0
    BOUNDS = auto()     # accesses outside allocations, LDS and private memory; the launch continues
    ALIGNMENT = auto()  # addresses that are no multiple of the element, or of a dword
    WAITS = auto()      # registers that are used before their load was waited for
    RACES = auto()      # accesses of two waves in no order, of which one writes
    INIT = auto()       # memory and registers that were never written
    BARRIERS = auto()   # barriers to which not all of a work-group comes
    HARDWARE = auto()   # what this GPU quietly does not do
    LOCKSTEP = auto()   # with RACES: accesses of two lanes of one wave, too
    TOUCHED = auto()    # no mistake: pages of memory, and what they held before


MISTAKES = ~Checks.TOUCHED
NAMES = {str(check.name).lower(): check for check in Checks if check & MISTAKES}
NAMES["lockstep"] |= Checks.RACES
ALL = Checks.BOUNDS | Checks.WAITS | Checks.RACES | Checks.INIT | Checks.BARRIERS | Checks.HARDWARE
"""Of --check. Loads and stores that are not aligned are no mistakes on AMD's GPUs, and lanes of a wave run in lockstep
there: these checks have to be requested."""


class FindingKind(IntEnum):
    """What was found: native code's number, and which check looks for it, as ``--check`` has it."""

    check: str

    def __new__(cls, number: int, check: str = "") -> FindingKind:
        kind = int.__new__(cls, number)
        kind._value_, kind.check = number, check
        return kind

    BOUNDS = 1, "bounds"
    ALIGNMENT = 2, "alignment"
    WAIT = 3, "waits"
    RACE = 4, "races"
    MEMORY = 5, "init"
    REGISTER = 6, "init"
    BARRIER = 7, "barriers"
    HARDWARE = 8, "hardware"


class Race(IntEnum):
    """Of two accesses, the later first; as bits beside these: where, and why barriers, or what was seen of a flag, do
    not count."""

    READ_AFTER_WRITE = 1
    WRITE_AFTER_READ = 2
    WRITE_AFTER_WRITE = 3
    IN_LDS = 4
    NOT_WAITED = 8
    NOT_ACQUIRED = 16


class AccessUse(IntEnum):
    """What an access does."""

    READS = 1
    WRITES = 2
    MODIFIES = 3


class AccessTrait(IntFlag):
    """What else decides whether an access races, or does anything."""

    COHERENT = 1  # lets its wave know what others have just written
    COMPARES = 2  # an atomic that first compares what is there
    FLOATS = 4    # an atomic on floats


READ_ONLY, BLOCK_FREE, BLOCK_LEFT = 4, 8, 16
"""Beside the number of an access: what it may not do there, or how it is in no block that kernels have allocated."""
ACCESS_KINDS = ("near", "far", "flat", "lds", "private")
"""How its addresses are given: native code has their numbers."""


class Divergence(IntEnum):
    """Of a barrier."""

    OF_SOME_LANES = 1
    WITHOUT_WAVE = 2
    ELSEWHERE = 3


class UndefinedUse(IntEnum):
    """What an undefined register decides."""

    ADDRESS = 1
    BRANCH = 2
    MASK = 3
    STORED = 4


def join_checks(checks: Checks, between: str = ",") -> str:
    """Their names, as ``parse_checks`` takes them."""
    return between.join(name for name, check in NAMES.items() if check in checks)


def parse_checks(text: str) -> Checks:
    """Names with commas between them, or ``all``; nothing for none. Invalid for other names."""
    found = Checks.NONE
    for name in filter(None, (part.strip() for part in text.split(","))):
        if name == "all":
            found |= ALL
        elif name in NAMES:
            found |= NAMES[name]
        else:
            raise Invalid(f"check `{name}` is unknown; there are {', '.join(NAMES)}, and all")
    return found
