"""Parts of a function that tools name, and which of them to count to know how often all of them run.

In: runs of a function and how control flows between them. Out: Counting. Invariant: what follows from the counts is
exact for every wave that comes to its end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from luthier_py.analysis import OUTSIDE, Flow, Spanning, Steps, estimated, going_round, spanning
from luthier_py.ir import Block, Function, Instr


@dataclass(frozen=True, slots=True)
class Stretch:
    """Instructions ``start`` to ``end`` (excluded) of a block, which all run with one value of EXEC."""

    block: Block
    start: int
    end: int

    @property
    def instrs(self) -> tuple[Instr, ...]:
        return tuple(self.block.instrs[self.start : self.end])

    def __len__(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Region:
    """Stretches of one function that a wave runs equally often until its end: what counts one counts all."""

    stretches: tuple[Stretch, ...]

    @property
    def instrs(self) -> tuple[Instr, ...]:
        return tuple(instr for stretch in self.stretches for instr in stretch.instrs)


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """What one counter counts, with Mutator.at_counted: each time that a region runs, or that a function is entered."""

    where: Region | Function
    often: float
    """An estimate."""
    again: bool
    """Whether one wave may run it more than once."""
    steps: Steps | None = None
    """A register that tells how often it ran, where it is a loop of one block."""


@dataclass(frozen=True, slots=True)
class Following:
    """What follows from the values of some counters; numbers only."""

    spanning: Spanning
    counted: tuple[int, ...]           # the run that each counter is for
    runs: tuple[tuple[int, ...], ...]  # of each run the numbers of its stretches

    def weights(self, values: Sequence[int]) -> tuple[int, ...]:
        """What to add each time that something is counted, to get the sum of ``values`` (one for each stretch) over all
        executions; may be zero or negative."""
        sums = [sum(values[number] for number in numbers) for numbers in self.runs]
        found = self.spanning.weights([*sums, 0])
        return tuple(found[run] for run in self.counted)

    def executions(self, counts: Sequence[int]) -> tuple[int, ...]:
        """Of each stretch, from the counters' values."""
        found = self.spanning.executions(dict(zip(self.counted, counts, strict=True)))
        return tuple(found[run] for run, numbers in enumerate(self.runs) for _ in numbers)


@dataclass(frozen=True, slots=True)
class Counting:
    """How often each of ``stretches`` runs, from few counters."""

    counters: tuple[Counted, ...]
    stretches: tuple[Stretch, ...]
    following: Following


def counting(function: Function, runs: Sequence[tuple[Stretch, ...]], flow: Flow, regions: Sequence[Region],
             entered: bool, steps: Mapping[int, Steps]) -> Counting:
    """Of the chosen part of each run, and the region that it is in: what is not chosen cannot be counted. Being
    ``entered`` is a piece as well, if it can be counted: a kernel's wave does that once."""
    often, again = estimated(len(runs), flow), going_round(len(runs), flow)
    around = [*((len(runs) if a == OUTSIDE else a, b) for a, b in flow), (OUTSIDE, len(runs))]
    wanted = [estimate if chosen else math.inf for estimate, chosen in zip(often, runs, strict=True)]
    tree = spanning(len(runs) + 1, around, [*wanted, 0.0 if entered else math.inf])
    counted = tuple(run for run in tree.counted if (runs[run] if run < len(runs) else entered))
    counters = [
        Counted(regions[run], often[run], again[run] or not function.kernel, steps.get(run)) if run < len(runs)
        else Counted(function, 1.0, not function.kernel)
        for run in counted
    ]
    numbers = iter(range(sum(map(len, runs))))
    return Counting(
        tuple(counters), tuple(stretch for chosen in runs for stretch in chosen),
        Following(tree, counted, tuple(tuple(next(numbers) for _ in chosen) for chosen in runs)),
    )
