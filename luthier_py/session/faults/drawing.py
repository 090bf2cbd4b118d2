"""Faults drawn at random: each register that waves wrote is as likely as any other.

In: how many registers each wave wrote without a fault, a seed. Out: InjectedFaults. Invariant: a fault follows from the
seed and its own number, so that a campaign of 2,000 begins with the 1,000 of a shorter one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random

TOOL = "fault_injection"
MODELS = "flip", "flip_two", "value", "zero"
"""Of the tool: those that happen once."""


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """What the tool's options say. ``when``: which of the registers that the wave writes, those of each active lane one
    by one. ``bit``: that flips; ``mask``: the value of model value."""

    number: int
    model: str
    wave: int
    when: int
    bit: int
    mask: int

    def options(self) -> dict[str, str]:
        found = {"WAVE": self.wave, "WHEN": self.when, "MODEL": self.model}
        if self.model in ("flip", "flip_two"):
            found["BIT"] = self.bit
        if self.model == "value":
            found["MASK"] = self.mask
        return {name: str(value) for name, value in found.items()}


NO_FAULT = InjectedFault(-1, MODELS[0], 0, -1, 0, 0)
"""Counts, and hits nothing."""


def drawn(number: int, seed: int, models: Sequence[str], written: Sequence[int]) -> InjectedFault:
    """``written``: registers that each wave of the launch writes; there are some."""
    random = Random(f"{seed}/{number}")
    ends = list(accumulate(written))
    at = random.randrange(ends[-1])
    wave = bisect_right(ends, at)
    return InjectedFault(number, random.choice(models), wave, at - (ends[wave] - written[wave]), random.randrange(32),
                         random.getrandbits(32))


def replay_options(fault: InjectedFault, options: Mapping[str, str]) -> str:
    """How the same fault is injected again, by the command line."""
    return " ".join(f"-O {name}={value}" if " " not in value else f"-O '{name}={value}'"
                    for name, value in {**options, **fault.options()}.items())
