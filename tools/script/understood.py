"""A text that was understood: probes with what they do, and what is printed outside of all that runs.

In: a text. Out: a ReadScript. Invariant: what is wrong in it is a Misread, and nothing of it is executed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import chain, count

from .actions import Action, Probe, probe_of
from .ending import Printed, printed
from .reading import OUTSIDE, ReadProbe, ScriptText


@dataclass(frozen=True, slots=True)
class ReadScript:
    """``begin``, ``end``: what is printed then."""

    text: str
    probes: tuple[Probe, ...]
    begin: tuple[Printed, ...]
    end: tuple[Printed, ...]

    @property
    def actions(self) -> tuple[Action, ...]:
        return tuple(action for probe in self.probes for action in probe.actions)


@cache
def script_of(written: str, origin: str = "script") -> ReadScript:
    """Misread where it is none. ``origin``: its file, where it has one."""
    text = ScriptText(written, origin)
    try:
        return _read(text, list(text.probes()))
    except RecursionError:
        text.refuse((1, 0), "an expression in it is too deep; name parts of it")


def _read(text: ScriptText, found: list[ReadProbe]) -> ReadScript:
    numbers, named = count(), dict[str, Action]()
    probes = [probe_of(text, read, numbers, named) for read in found if read.head not in OUTSIDE]
    begin, end = (tuple(chain.from_iterable(printed(text, read, tables) for read in found if read.head == head))
                  for head, tables in zip(OUTSIDE, ({}, named), strict=True))
    return ReadScript(text.text, tuple(probes), begin, end)
