"""Schedules: in which order waves and work-groups get their turns.

In: text, as ``seed=7``. Out: a Schedule, and the numbers by which a launch's turns are drawn. Invariant: the same seed,
launch and program give the same turns, whatever was compiled or cached before.
"""

from __future__ import annotations

import random
import re

from luthier_py.base.errors import Invalid
from luthier_py.base.records import dataclass

_STRIPS = (1, 2, 4, 8, 16, 64)
"""Turns of one work-group before another may get some."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Waves take turns at random, drawn from ``seed``; so do work-groups, as many at a time as the device holds."""

    seed: int

    def __str__(self) -> str:
        return f"seed={self.seed}"


class RandomTurns:
    """Mutable: the numbers of one launch, the ``launch``-th on its device."""

    def __init__(self, schedule: Schedule, launch: int) -> None:
        self._random = random.Random(f"{schedule.seed} {launch}")

    def state(self) -> int:
        """From which a work-group's turns are drawn; not 0."""
        return self._random.getrandbits(64) | 1

    def strip(self) -> int:
        """So many turns."""
        return self._random.choice(_STRIPS)

    def one_of(self, count: int) -> int:
        """A number below ``count``, drawn: which work-group has the next turns."""
        return self._random.randrange(count)


def parse_schedule(text: str) -> Schedule | None:
    """``seed=N``, or N; None for no text, and for ``default``: waves take turns in their order. Invalid for others."""
    if text in ("", "default"):
        return None
    match = re.fullmatch(r"(?:seed=)?(\d{1,18})", text)
    if match is None:
        raise Invalid("give seed=N, with a number N, or default")
    return Schedule(int(match[1]))
