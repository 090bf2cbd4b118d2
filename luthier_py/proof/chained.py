"""Hazards that are chains of instructions, followed through whole clones from where they begin.

In: the clones of functions that may call each other. Out: nothing, or CheckFailed. A chain counts that an inserted
instruction is part of. All links of a chain share a register; so it is enough to follow those registers that inserted
instructions have in it, and to look at the instructions to which these matter.

What is open at an address is one integer, in which chains are fields of registers (`_Fields`); then an instruction is
what it does to such integers: a few masks and shifts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from heapq import heappop, heappush
from itertools import pairwise
from operator import or_
from typing import NamedTuple

import numpy as np

from luthier_py.errors import CheckFailed, Location
from luthier_py.isa import Inst, InstructionSet
from luthier_py.isa.chains import joins, possible_chains, started
from luthier_py.isa.hazards_cured import Cured
from luthier_py.proof.code import bits_of
from luthier_py.proof.linked import Linked

_EVERY_SGPR = (1 << 108) - 1


def check_chains(isa: InstructionSet, codes: Sequence[Linked]) -> None:
    """Raises CheckFailed."""
    rows = _rows(isa, codes)
    if not rows:
        return
    fields = _Fields(isa, rows)
    steps = [[fields.step(inst, kind in code.used) for kind, inst in enumerate(code.insts)] for code in codes]
    called = any(code.calls for code in codes) or len(codes) > 1
    outside = fields.anything(own[kind] for code, own in zip(codes, steps, strict=True)
                              for kind in np.unique(code.kind).tolist()) if called else 0
    for code, own in zip(codes, steps, strict=True):
        _Walk(fields, code, own, outside).run()


def missing(isa: InstructionSet, code: Linked, at: int, what: str) -> CheckFailed:
    return CheckFailed(f"the patch could change the application: a wait is missing ({what})",
                       Location(code.name, int(code.pcs[at]), isa.text(code.inst(at))))


def _rows(isa: InstructionSet, codes: Sequence[Linked]) -> dict[Cured, int]:
    """Chains that there may be, each with the registers that inserted instructions have in it."""
    possible = possible_chains(isa, {inst.op for code in codes for inst in code.insts})
    found: dict[Cured, int] = defaultdict(int)
    for inst in {code.insts[kind] for code in codes for kind in code.used} if possible else ():
        for (row, *_), regs in (*started(isa, inst).items(), *joins(isa, inst).items()):
            if row in possible:
                found[row] |= bits_of(regs)
    return found


Moves = tuple[tuple[int, int], ...]  # which bits go how far up


class _Step(NamedTuple):
    """What an instruction does to open chains: those that it leaves, those of which it is the next link, those that it
    begins, and those that must not be open there."""

    leaves: Moves
    carries: Moves
    begins: int
    ends: int


class _Fields:
    """Where chains are in an integer: a field of registers for each row, links made and counted since the first; below
    ``inserted`` are those of the application alone, above it those with something inserted in them."""

    def __init__(self, isa: InstructionSet, rows: Mapping[Cured, int]) -> None:
        self.isa, self.rows = isa, rows
        self.width = max(regs.bit_length() for regs in rows.values())
        self.counts = {row: 1 + max(link.reach or 0 for link in row.links) for row in rows}
        self.first, fields = dict[Cured, int](), 0
        for row, count in self.counts.items():
            self.first[row], fields = fields * self.width, fields + count
        self.link = fields * self.width
        self.inserted = self.link * max(len(row.links) for row in rows)
        self.every = (1 << 2 * self.inserted) - 1

    def of(self, row: Cured, made: int, regs: int, counts: int) -> int:
        """Chains with so many links made, and less than ``counts`` counted."""
        at = self.first[row] + (made - 1) * self.link
        return reduce(or_, (regs << at + count * self.width for count in range(counts)), 0)

    def step(self, inst: Inst, inserted: bool) -> _Step | None:
        """None where it is nothing to chains of ``rows``."""
        stay, moved = self._passed(inst)
        begins = carried = ends = 0
        for (row, made, _), regs in started(self.isa, inst).items():
            begins |= self.of(row, made, bits_of(regs) & self.rows.get(row, 0), 1) if row in self.rows else 0
        for (row, made), regs in joins(self.isa, inst).items():
            met = self.of(row, made, bits_of(regs) & self.rows[row], self.counts[row]) if row in self.rows else 0
            carried, ends = (carried, ends | met) if made == len(row.links) else (carried | met, ends)
        if stay == self.every and not (moved or begins or carried or ends):
            return None
        above = self.inserted
        leaves = (stay, 0), *((mask | mask << above, far) for far, mask in moved.items())
        if inserted:
            carries = (carried, self.link + above), (carried << above, self.link)
            return _Step(leaves, carries if carried else (), begins << above, ends | ends << above)
        return _Step(leaves, ((carried | carried << above, self.link),) if carried else (), begins, ends << above)

    def _passed(self, inst: Inst) -> tuple[int, dict[int, int]]:
        """What stays open behind an instruction as it is, and what is counted on, by how far that moves it."""
        gone, moved = 0, dict[int, int]()
        for row, regs in self.rows.items():
            for made, link in enumerate(row.links, 1):
                ended = bits_of(link.ended(inst)) & regs
                counted = row.counted(inst) if link.reach is not None else 0
                if counted:
                    far, going = counted * self.width, max((link.reach or 0) + 1 - counted, 0)
                    moved[far] = moved.get(far, 0) | self.of(row, made, regs & ~ended, going)
                if counted or ended:
                    gone |= self.of(row, made, regs if counted else ended, self.counts[row])
        return self.every & ~(gone | gone << self.inserted), moved

    def anything(self, steps: Iterable[_Step | None]) -> int:
        """What may be open where a function is entered or a call returns: of chains that compilers end there, any first
        link; if there are such, what any of some instructions makes of them, or begins."""
        settled = {row: regs & _EVERY_SGPR for row, regs in self.rows.items() if row.settled_at_calls}
        found, before = reduce(or_, (self.of(row, 1, regs, 1) for row, regs in settled.items()), 0), -1
        carries = defaultdict[int, int](int)
        for step in filter(None, steps if settled else ()):
            found |= step.begins
            for mask, far in step.carries:
                carries[far] |= mask
        while found != before:
            before = found
            for far, mask in carries.items():
                found |= (found & mask) << far
        return found

    def names(self, chains: int) -> list[str]:
        """Of the rows of some chains."""
        chains |= chains >> self.inserted
        return sorted(row.name for row, regs in self.rows.items()
                      if chains & self.of(row, len(row.links), regs, self.counts[row]))


class _Walk:
    """One clone, followed from its entry until nothing new is open anywhere (mutable). Its code is cut into stretches
    that begin where control comes from elsewhere than from above."""

    def __init__(self, fields: _Fields, code: Linked, steps: Sequence[_Step | None], outside: int) -> None:
        self.fields, self.code, self.steps, self.outside = fields, code, steps, outside
        cut = {0, *code.targets.values(), *(at + 1 for at, falls in enumerate(code.falls) if not falls)}
        starts = sorted(cut - {len(code)})
        self.stop = dict(pairwise([*starts, len(code)]))
        self.open = dict.fromkeys(starts, 0)
        matter = np.array([step is not None for step in steps], bool)[code.kind]
        self.places = sorted({*np.flatnonzero(matter).tolist(), *code.targets, *code.calls})
        self.seen: set[int] = set()
        self.work: list[int] = []  # a heap: what comes first in the code is followed first, so that most is met once

    def run(self) -> None:
        for start in self.stop:  # the entry, and what is reached in no way that shows
            if start not in self.seen:
                self.open[start] |= 0 if self.seen else self.outside
                heappush(self.work, start)
                self.follow()

    def follow(self) -> None:
        while self.work:
            start = heappop(self.work)
            while self.work and self.work[0] == start:
                heappop(self.work)
            self.seen.add(start)
            due, stop = self.open[start], self.stop[start]
            for at in self.places[bisect_left(self.places, start):bisect_left(self.places, stop)]:
                due = self.through(at, due)
                if (target := self.code.targets.get(at)) is not None:
                    self.reach(target, due)
            if self.code.falls[stop - 1] and stop < len(self.code):
                self.reach(stop, due)

    def reach(self, start: int, due: int) -> None:
        known = self.open[start]
        together = known | due
        if together != known or start not in self.seen:
            self.open[start] = together
            heappush(self.work, start)

    def through(self, at: int, due: int) -> int:
        """What is open behind an instruction; CheckFailed where one ends at it."""
        step = self.steps[self.code.kinds[at]]
        if step is not None and due & step.ends:
            raise missing(self.fields.isa, self.code, at, ", ".join(self.fields.names(due & step.ends)))
        if at in self.code.calls:
            return self.outside
        if step is None:
            return due
        found = step.begins
        if due:
            for mask, far in (*step.leaves, *step.carries):
                found |= (due & mask) << far
        return found
