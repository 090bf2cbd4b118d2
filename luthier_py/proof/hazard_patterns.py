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
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from luthier_py.base.errors import CheckFailed, Location
from luthier_py.isa import Inst, InstructionSet, RegSet
from luthier_py.isa.encoding.instruction import OpInfo
from luthier_py.isa.hazards.mitigated import Link, Mitigated
from luthier_py.isa.hazards.patterns import joins, possible_patterns, start_patterns
from luthier_py.proof.linked import Linked

_EVERY_SGPR = (1 << 108) - 1


def check_hazard_patterns(isa: InstructionSet, codes: Sequence[Linked]) -> None:
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


def make_missing_wait_failure(isa: InstructionSet, code: Linked, at: int, what: str) -> CheckFailed:
    """The error, to be raised, where instruction ``at`` runs into a hazard; ``what`` names it."""
    return CheckFailed(f"the patch could change the application: a wait is missing ({what})",
                       Location(code.name, int(code.pcs[at]), isa.text(code.inst(at))))


def _rows(isa: InstructionSet, codes: Sequence[Linked]) -> dict[Mitigated, int]:
    """Chains that there may be, each with the registers that inserted instructions have in it."""
    possible = possible_patterns(isa, {inst.op for code in codes for inst in code.insts})
    found: dict[Mitigated, int] = defaultdict(int)
    for inst in {code.insts[kind] for code in codes for kind in code.used} if possible else ():
        for (row, *_), regs in (*start_patterns(isa, inst).items(), *joins(isa, inst).items()):
            if row in possible:
                found[row] |= regs.bits
    return found


Moves = tuple[tuple[int, int], ...]  # which bits go how far up


class _Step(NamedTuple):
    """What an instruction does to open chains: those that it leaves, those of which it is the next link, those that it
    begins, and those that must not be open there."""

    leaves: Moves
    carries: Moves
    begins: int
    ends: int


Registers = Callable[[Inst], RegSet]


class _Fields:
    """Where chains are in an integer: a field of registers for each row, links made and counted since the first; below
    ``inserted`` are those of the application alone, above it those with something inserted in them. Where fields begin
    is one more integer; times that registers are in all of these."""

    def __init__(self, isa: InstructionSet, rows: Mapping[Mitigated, int]) -> None:
        self.isa, self.rows = isa, rows
        self.width = max(regs.bit_length() for regs in rows.values())
        self.counts = {row: 1 + max(link.reach or 0 for link in row.links) for row in rows}
        starts = list(accumulate(self.counts.values(), initial=0))
        self.first = {row: start * self.width for row, start in zip(rows, starts, strict=False)}
        self.link = starts[-1] * self.width
        self.inserted = self.link * max(len(row.links) for row in rows)
        self.owned = sum(regs * self.at(row, made + 1) for row, regs in rows.items() for made in range(len(row.links)))
        self.parts: dict[OpInfo, Mapping[Registers, list[int]]] = {}
        self.ends: dict[Registers, int] = defaultdict(int)
        for row, made, link in self.links:
            self.ends[link.ended] |= self.at(row, made)
        self.counting = [(row, made, link.reach) for row, made, link in self.links if link.reach is not None]
        self.by_itself = self.within(-1, sum(self.at(row, 1) for row in rows if row.by_itself))

    @property
    def links(self) -> list[tuple[Mitigated, int, Link]]:
        return [(row, made, link) for row in self.rows for made, link in enumerate(row.links, 1)]

    def at(self, row: Mitigated, made: int, counts: int | None = None) -> int:
        """Where the fields begin that have so many links made, and less than ``counts`` counted."""
        first = self.first[row] + (made - 1) * self.link
        return sum(1 << first + count * self.width for count in range(self.counts[row] if counts is None else counts))

    def within(self, regs: int, fields: int) -> int:
        return (regs & (1 << self.width) - 1) * fields & self.owned

    def step(self, inst: Inst, inserted: bool) -> _Step | None:
        """None where it is nothing to chains of ``rows``."""
        stays, moved = self._advance_open_patterns(inst)
        if (parts := self.parts.get(inst.op)) is None:
            parts = self.parts[inst.op] = self._parts(inst.op)
        begins = carried = ends = 0
        for registers, (first, behind, last) in parts.items():
            if regs := registers(inst).bits:
                begins |= self.within(regs, first)
                carried |= self.within(regs, behind)
                ends |= self.within(regs, last)
        if stays == self.owned and not (begins or carried or ends):
            return None
        begins |= (begins & carried & self.by_itself) << self.link
        above = self.inserted
        leaves = tuple([(mask | mask << above, far) for far, mask in ((0, stays), *moved.items())])
        if inserted:
            carries = (carried, self.link + above), (carried << above, self.link)
            return _Step(leaves, carries if carried else (), begins << above, ends | ends << above)
        return _Step(leaves, ((carried | carried << above, self.link),) if carried else (), begins, ends << above)

    def _parts(self, op: OpInfo) -> Mapping[Registers, list[int]]:
        """By which registers an operation takes part in chains, and the fields of those that it begins, of those that
        it carries on, and of those that run into it."""
        found: dict[Registers, list[int]] = defaultdict(lambda: [0, 0, 0])
        for row in self.rows:
            for made, side in enumerate((*(link.side for link in row.links), row.consumed)):
                if side.takes_part(op):
                    role = 0 if not made else 1 if made < len(row.links) else 2
                    found[side.registers][role] |= self.at(row, made) if made else self.at(row, 1, 1)
        return found

    def _advance_open_patterns(self, inst: Inst) -> tuple[int, dict[int, int]]:
        """What stays open behind an instruction as it is, and what is counted on, by how far that moves it."""
        stays, moved = self.owned, dict[int, int]()
        for ended, fields in self.ends.items():
            if regs := ended(inst).bits:
                stays &= ~self.within(regs, fields)
        for row, made, reach in self.counting:
            if counted := row.counted(inst):
                far, going = counted * self.width, self.at(row, made, max(reach + 1 - counted, 0))
                moved[far] = moved.get(far, 0) | stays & self.within(-1, going)
                stays &= ~self.within(-1, self.at(row, made))
        return stays, moved

    def anything(self, steps: Iterable[_Step | None]) -> int:
        """What may be open where a function is entered or a call returns: what any of some instructions begins, or
        makes of what is open; of chains that compilers end there, first links alone, which any code may have made."""
        settled = sum(self.at(row, 1, 1) for row in self.rows if row.resolved_at_calls)
        crossing = self.within(-1, sum(self.at(row, made) for row, made, _ in self.links
                                       if made == 1 or not row.resolved_at_calls))
        crossing |= crossing << self.inserted
        found, before = self.within(_EVERY_SGPR, settled), -1
        carries = defaultdict[int, int](int)
        for step in filter(None, steps):
            found |= step.begins & crossing
            for mask, far in step.carries:
                carries[far] |= mask
        while found != before:
            before = found
            for far, mask in carries.items():
                found |= (found & mask) << far & crossing
        return found

    def names(self, patterns: int) -> list[str]:
        """The names of the rows of some chains."""
        patterns |= patterns >> self.inserted
        return sorted(row.name for row in self.rows if patterns & self.within(-1, self.at(row, len(row.links))))


class _Walk:
    """One clone, followed from its entry until nothing new is open anywhere (mutable). Its code is cut into
    straight-line segments that begin where control comes from elsewhere than from above."""

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
                self.open[start] |= self.outside if self.code.called and not self.seen else 0
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
            raise make_missing_wait_failure(self.fields.isa, self.code, at,
                                            ", ".join(self.fields.names(due & step.ends)))
        if at in self.code.calls:
            return self.outside
        if step is None:
            return due
        found = step.begins
        if due:
            for mask, far in (*step.leaves, *step.carries):
                found |= (due & mask) << far
        return found
