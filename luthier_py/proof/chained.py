"""Hazards that are chains of instructions, followed through whole clones from where they begin.

In: the clones of functions that may call each other. Out: nothing, or CheckFailed. A chain counts that an inserted
instruction is part of. All links of a chain share a register; so it is enough to follow those registers that inserted
instructions have in it, and to look at the instructions to which these matter.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np

from luthier_py.errors import CheckFailed, Location
from luthier_py.isa import NO_REGS, Inst, InstructionSet, RegSet
from luthier_py.isa.chains import Chains, carried, left, met, possible_chains, started
from luthier_py.isa.hazards_cured import Cured
from luthier_py.proof.linked import Linked

_EVERY_SGPR = RegSet.by_file(sgpr=(1 << 108) - 1)
Rows = Mapping[Cured, RegSet]


def check_chains(isa: InstructionSet, codes: Sequence[Linked]) -> None:
    """Raises CheckFailed."""
    rows = _rows(isa, codes)
    if not rows:
        return
    kinds = [[_Kind(isa, inst, rows) for inst in code.insts] for code in codes]
    called = any(code.calls for code in codes) or len(codes) > 1
    outside = _anything(codes, kinds, rows) if called else Due()
    for code, own in zip(codes, kinds, strict=True):
        _Walk(isa, code, own, outside).run()


def missing(isa: InstructionSet, code: Linked, at: int, what: str) -> CheckFailed:
    return CheckFailed(f"the patch could change the application: a wait is missing ({what})",
                       Location(code.name, int(code.pcs[at]), isa.text(code.inst(at))))


def _rows(isa: InstructionSet, codes: Sequence[Linked]) -> dict[Cured, RegSet]:
    """Chains that there may be, each with the registers that inserted instructions have in it."""
    found: dict[Cured, RegSet] = {}
    inserted = {code.insts[kind] for code in codes for kind in code.used}
    for row in possible_chains(isa, {inst.op for code in codes for inst in code.insts}):
        for side in (*(link.side for link in row.links), row.consumed):
            for inst in inserted:
                if side.takes_part(inst.op) and (regs := side.registers(inst)):
                    found[row] = found.get(row, NO_REGS) | regs
    return found


@dataclass(frozen=True, slots=True)
class Due:
    """Chains that are open at an address: of the application alone, and with something inserted in them."""

    old: Chains = field(default_factory=dict)
    new: Chains = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.old or self.new)

    def __or__(self, other: Due) -> Due:
        return Due(_joined(self.old, other.old), _joined(self.new, other.new))


def _joined(*several: Chains) -> Chains:
    some = [chains for chains in several if chains]
    if len(some) < 2:
        return some[0] if some else {}
    found = dict(some[0])
    for chains in some[1:]:
        for key, regs in chains.items():
            found[key] = found[key] | regs if key in found else regs
    return found


class _Kind:
    """What a distinct instruction is to chains of the registers of ``rows``."""

    def __init__(self, isa: InstructionSet, inst: Inst, rows: Rows) -> None:
        self.isa, self.inst = isa, inst
        begun = {key: regs & rows[key[0]] for key, regs in started(isa, inst).items() if key[0] in rows}
        self.begun: Chains = {key: regs for key, regs in begun.items() if regs}
        every = {(row, made, 0): regs for row, regs in rows.items() for made in range(1, len(row.links) + 1)}
        self.matters = bool(self.begun) or left(every, inst) != every or bool(
            met(isa, every, inst) or carried(isa, every, inst)) or any(
            row.counted(inst) for row, made, _ in every if row.links[made - 1].reach is not None)

    def adds(self, inserted: bool, due: Due) -> Due:
        """Chains that it begins, and those that it carries on."""
        old = carried(self.isa, due.old, self.inst) if due.old else {}
        new = carried(self.isa, due.new, self.inst) if due.new else {}
        return Due({}, _joined(self.begun, old, new)) if inserted else Due(_joined(self.begun, old), new)


class _Walk:
    """One clone, followed from its entry until nothing new is open anywhere (mutable). Its code is cut into stretches
    that begin where control comes from elsewhere than from above."""

    def __init__(self, isa: InstructionSet, code: Linked, kinds: Sequence[_Kind], outside: Due) -> None:
        self.isa, self.code, self.kinds, self.outside = isa, code, kinds, outside
        cut = {0, *code.targets.values(), *(at + 1 for at, falls in enumerate(code.falls) if not falls)}
        starts = sorted(cut - {len(code)})
        self.stop = dict(pairwise([*starts, len(code)]))
        self.open = dict.fromkeys(starts, Due())
        matter = np.array([kind.matters for kind in kinds], bool)[code.kind]
        self.places = sorted({*np.flatnonzero(matter).tolist(), *code.targets, *code.calls})
        self.seen: set[int] = set()
        self.work: list[int] = []  # a heap: what comes first in the code is followed first, so that most is met once

    def run(self) -> None:
        for start in self.stop:  # the entry, and what is reached in no way that shows
            if start not in self.seen:
                self.open[start] |= Due() if self.seen else self.outside
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

    def reach(self, start: int, due: Due) -> None:
        known = self.open[start]
        together = known | due
        if together != known or start not in self.seen:
            self.open[start] = together
            heappush(self.work, start)

    def through(self, at: int, due: Due) -> Due:
        """What is open behind an instruction; CheckFailed where one ends at it."""
        kind = self.kinds[self.code.kinds[at]]
        if not due and not kind.begun and at not in self.code.calls:
            return due
        inserted, inst = bool(self.code.inserted[at]), kind.inst
        lacks = met(self.isa, due.new, inst) | (met(self.isa, due.old, inst) if inserted else set())
        if lacks:
            raise missing(self.isa, self.code, at, ", ".join(sorted(row.name for row in lacks)))
        if at in self.code.calls:
            return self.outside
        return Due(left(due.old, inst), left(due.new, inst)) | kind.adds(inserted, due)


def _anything(codes: Sequence[Linked], kinds: Sequence[Sequence[_Kind]], rows: Rows) -> Due:
    """What may be open where a function is entered or a call returns: chains by any instruction of any of the clones;
    of those that compilers end there, any first link."""
    places = {(own[kind], inserted) for code, own in zip(codes, kinds, strict=True)
              for kind, inserted in set(zip(code.kinds, code.inserted.tolist(), strict=True))}
    found, before = Due({(row, 1, 0): regs & _EVERY_SGPR for row, regs in rows.items() if row.settled_at_calls}), Due()
    while found != before:
        before = found
        for kind, inserted in places:
            if more := kind.adds(inserted, before):
                found |= more
    return found
