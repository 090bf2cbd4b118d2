"""Faults drawn at random: each register that waves wrote is as likely as any other.

In: how many registers each wave of each launch wrote without a fault, a seed. Out: InjectedFaults. Invariant: a fault
follows from the seed and its own number, so that a campaign of 2,000 begins with the 1,000 of a shorter one.
"""

from __future__ import annotations

import shlex
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from random import Random
from typing import Any

from luthier_py.base.errors import Invalid
from luthier_py.base.records import dataclass
from luthier_py.rewrite.tool.chosen.filters import narrow_filter

TOOL = "fault_injection"
ONCE, STUCK = ("flip", "flip_two", "value", "zero"), ("stuck_0", "stuck_1")
"""Of the tool: those that happen once, and those of a register from then on."""
OF_OPCODE = {"opcode_0": "and", "opcode_1": "or", "opcode_flip": "xor"}
"""Faults in each execution of the opcode at the drawn place, and the tool's names for them."""
MODELS = *ONCE, *STUCK, *OF_OPCODE
EVERY_LANE = {"LANE": "-1"}

DRAWN = "MODEL", "WAVE", "WHEN", "BIT", "MASK", "TURNS", "LANE", "UNIT"
"""Options of the tool that say which fault it is."""

WrittenRegisters = Sequence[Sequence[int]]
"""Registers by launch and wave."""


@dataclass(frozen=True, slots=True)
class FaultCampaign:
    """``faults``: of each subject, from number ``first`` on. ``options``: of the tool, by names in capitals: which
    instructions, for example. ``every_lane``: permanent faults are in all lanes, not in the drawn one."""

    faults: int
    seed: int
    models: tuple[str, ...]
    options: Mapping[str, str]
    every_lane: bool = False
    first: int = 0

    def __post_init__(self) -> None:
        if unknown := [each for each in self.models if each not in MODELS]:
            raise Invalid(f"model {unknown[0]!r} is none; choose some of {','.join(MODELS)}")
        if drawn_ones := [name for name in self.options if name in DRAWN]:
            raise Invalid(f"option {drawn_ones[0]}: a campaign draws that; see its models")

    @property
    def numbers(self) -> range:
        """Numbers of the faults that this campaign injects into each subject."""
        return range(self.first, self.first + self.faults)

    @property
    def drawing(self) -> object:
        """What decides which fault has a number."""
        return self.seed, self.models, sorted(self.options.items()), self.every_lane


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """``when``: which of the registers that the wave writes, those of each active lane one by one. ``bit``: that flips,
    or is stuck; ``mask``: the value of model value."""

    number: int
    model: str
    wave: int
    when: int
    bit: int
    mask: int
    launch: int = 0

    def options(self) -> dict[str, str]:
        """What the tool's options say of a fault in a register."""
        found = {**self.place(), "MODEL": self.model}
        if self.model in ("flip", "flip_two", *STUCK):
            found["BIT"] = str(self.bit)
        if self.model == "value":
            found["MASK"] = str(self.mask)
        return found

    def place(self) -> dict[str, str]:
        """The tool's options that say which wave is hit, and at which of its register writes."""
        return {"WAVE": str(self.wave), "WHEN": str(self.when)}

    def look(self) -> dict[str, str]:
        """The tool's options that report what is there, and leave it."""
        return {**self.place(), "MODEL": "none"}

    def options_of_opcode(self, hit: Mapping[str, Any], chosen: str) -> dict[str, str]:
        """The options of a fault in each execution of the opcode that was ``hit``, in its lane; ``chosen``:
        INSTRUMENT."""
        mask = 1 << self.bit ^ (0xFFFFFFFF if self.model == "opcode_0" else 0)
        return {"MODEL": OF_OPCODE[self.model], "MASK": str(mask), "LANE": str(hit["lane"] or 0),
                "INSTRUMENT": narrow_filter(chosen, f"opcode = {hit['opcode']}")}


NO_FAULT = InjectedFault(-1, MODELS[0], 0, -1, 0, 0)
"""Counts, and hits nothing."""


def draw_fault(number: int, seed: int, models: Sequence[str], written: WrittenRegisters) -> InjectedFault:
    """``written``: there are some."""
    random = Random(f"{seed}/{number}")
    places = [(launch, wave) for launch, waves in enumerate(written) for wave in range(len(waves))]
    ends = list(accumulate(count for waves in written for count in waves))
    at = random.randrange(ends[-1])
    place = bisect_right(ends, at)
    launch, wave = places[place]
    return InjectedFault(number, random.choice(models), wave, at - (ends[place] - written[launch][wave]),
                         random.randrange(32), random.getrandbits(32), launch)


def as_words(options: Mapping[str, str]) -> str:
    """The options as a command line has them."""
    return shlex.join(word for name, value in options.items() for word in ("-O", f"{name}={value}"))
