"""That inserted code and the application's keep the distance that the hardware wants, on every path of linked bytes.

In: the clones of functions that may call each other, and what of them is inserted. Out: nothing, or CheckFailed. What
the application's instructions owe each other was their compiler's business; a hazard that an inserted instruction is
part of must have met its wait.

Wait states lie between two instructions, so it looks around inserted ones alone, as far as each row reaches, forward
from those that produce a hazard and backward from those that run into one. Where a function is entered or a call
returns, OUTSIDE stands for whatever any of the clones has. Chains may be long: they are followed
through whole clones from where they begin.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from heapq import heappop, heappush
from itertools import pairwise

from luthier_py.errors import CheckFailed, Location
from luthier_py.isa import NO_REGS, Inst, InstructionSet, OpFlag, RegSet
from luthier_py.isa.chains import Chains, carried, left, met, possible, started
from luthier_py.isa.hazards import HAZARDS, Hazard, states_of
from luthier_py.isa.hazards_cured import Cured
from luthier_py.proof.application import Clone

OUTSIDE = -1  # a place that stands before entries and behind calls
_EVERY_SGPR = RegSet(sgpr=(1 << 108) - 1)
Sides = dict[Hazard, RegSet]


@dataclass(eq=False)
class Code:
    """One clone: its instructions by address, ascending, and where the application's stand."""

    name: str
    instructions: Mapping[int, Inst]
    application: AbstractSet[int]

    @cached_property
    def distinct(self) -> set[Inst]:
        return set(self.instructions.values())

    @cached_property
    def order(self) -> list[int]:
        return list(self.instructions)

    @cached_property
    def inserted(self) -> list[int]:
        return [pc for pc in self.order if pc not in self.application]

    @cached_property
    def targets(self) -> dict[int, int]:
        """Where branches go, by where they stand."""
        jumping = {inst for inst in self.distinct if inst.branch_target(0) is not None}
        goes = ((pc, inst.branch_target(pc)) for pc, inst in self.instructions.items() if inst in jumping)
        return {pc: target for pc, target in goes if target is not None and target in self.instructions}

    @cached_property
    def sources(self) -> dict[int, list[int]]:
        """Which branches come to a place."""
        found = defaultdict(list)
        for source, target in self.targets.items():
            found[target].append(source)
        return found

    @cached_property
    def calls(self) -> set[int]:
        calling = {inst for inst in self.distinct if OpFlag.CALL in inst.op.flags}
        return {pc for pc, inst in self.instructions.items() if inst in calling} if calling else set()

    def after(self, pc: int) -> list[int]:
        """Where control goes from a place."""
        if pc == OUTSIDE:
            starts = [0, *(bisect_left(self.order, call) + 1 for call in self.calls)]
            return [self.order[k] for k in starts if k < len(self.order)]
        if pc in self.calls:
            return []
        at = bisect_left(self.order, pc) + 1
        found = self.order[at:at + 1] if not leaves(self.instructions[pc]) else []
        return [*found, self.targets[pc]] if pc in self.targets else found

    def before(self, pc: int) -> list[int]:
        """Where it comes from."""
        at = bisect_left(self.order, pc)
        found = [source for source in self.sources.get(pc, ()) if source not in self.calls]
        if at and self.order[at - 1] not in self.calls:
            return found if leaves(self.instructions[self.order[at - 1]]) else [*found, self.order[at - 1]]
        return [*found, OUTSIDE]


def code_of(clone: Clone, inserted: Mapping[int, Inst]) -> Code:
    """``inserted``: what was inserted, by address."""
    own = dict(zip(clone.places, map(clone.code.insts.__getitem__, clone.code.kinds), strict=True))
    own.update((clone.places[at], clone.instruction(at)[0]) for at in clone.changed)
    return Code(clone.function.name, dict(sorted((own | dict(inserted)).items())), own.keys())


@lru_cache(maxsize=1 << 12)
def leaves(inst: Inst) -> bool:
    """Whether what comes next in the code never runs next."""
    return OpFlag.TERMINATOR in inst.op.flags and OpFlag.CONDITIONAL not in inst.op.flags


def check_distances(isa: InstructionSet, codes: Sequence[Code]) -> None:
    """Raises CheckFailed."""
    distinct = set[Inst]().union(*(code.distinct for code in codes))
    _States(isa, codes, distinct).check()
    chains = possible(isa, {inst.op for inst in distinct})
    if chains:
        called = any(code.calls for code in codes) or len(codes) > 1
        outside = _anything(isa, codes, chains) if called else Due()
        for code in codes:
            _Walk(isa, code, outside, chains).run()


def _missing(isa: InstructionSet, code: Code, pc: int, what: str) -> CheckFailed:
    return CheckFailed(f"the patch could change the application: a wait is missing ({what})",
                       Location(code.name, pc, isa.text(code.instructions[pc])))


# -- wait states ---------------------------------------------------------------------------------


class _States:
    """Rows of `hazards` between inserted instructions and others."""

    def __init__(self, isa: InstructionSet, codes: Sequence[Code], distinct: AbstractSet[Inst]) -> None:
        self.isa, self.codes = isa, codes
        ops = {inst.op for inst in distinct}
        self.rows = [row for row in HAZARDS if row.where(isa.target)
                     and any(map(row.produced.takes_part, ops)) and any(map(row.consumed.takes_part, ops))]
        self.made: dict[Inst, Sides] = {}
        self.met: dict[Inst, Sides] = {}
        called = len(codes) > 1 or any(code.calls for code in codes)
        self.anything = self.either(distinct) if called else {}
        self.inserted = self.either({code.instructions[pc] for code in codes for pc in code.inserted}) if called else {}

    def either(self, insts: Iterable[Inst]) -> Sides:
        """What any of some instructions produces."""
        found: Sides = {}
        for inst in insts:
            for row, regs in self.produces(inst).items():
                found[row] = found.get(row, NO_REGS) | regs
        return found

    def produces(self, inst: Inst) -> Sides:
        if inst not in self.made:
            self.made[inst] = {row: regs for row in self.rows
                               if row.produced.takes_part(inst.op) and (regs := row.produced.registers(inst))}
        return self.made[inst]

    def consumes(self, inst: Inst) -> Sides:
        if inst not in self.met:
            self.met[inst] = {row: regs for row in self.rows
                              if row.consumed.takes_part(inst.op) and (regs := row.consumed.registers(inst))}
        return self.met[inst]

    def check(self) -> None:
        for code in self.codes if self.rows else ():
            self.forward(code, OUTSIDE, self.inserted)
            for pc in code.inserted:
                self.forward(code, pc, self.produces(code.instructions[pc]))
                self.backward(code, pc, self.consumes(code.instructions[pc]))

    def forward(self, code: Code, start: int, made: Sides) -> None:
        for row, regs in made.items():
            for pc, passed in _within(code, start, row, code.after):
                met = self.consumes(code.instructions[pc]).get(row)
                if met is not None and met.overlaps(regs):
                    raise self.fail(code, pc, row, passed)

    def backward(self, code: Code, start: int, met: Sides) -> None:
        for row, regs in met.items():
            for pc, passed in _within(code, start, row, code.before):
                made = (self.anything if pc == OUTSIDE else self.produces(code.instructions[pc])).get(row)
                if made is not None and made.overlaps(regs):
                    raise self.fail(code, start, row, passed)

    def fail(self, code: Code, pc: int, row: Hazard, passed: int) -> CheckFailed:
        return _missing(self.isa, code, pc, f"{row.name}: {row.states - passed} wait states")


def _within(
    code: Code, start: int, row: Hazard, ways: Callable[[int], Iterable[int]]
) -> Iterator[tuple[int, int]]:
    """Places that lie so near along ``ways`` that ``row`` is not over between, and the wait states that are."""
    nearest: dict[int, int] = {}
    work = [(place, 0) for place in ways(start)]
    while work:
        place, passed = work.pop()
        if passed >= nearest.get(place, row.states):
            continue
        nearest[place] = passed
        yield place, passed
        if place == OUTSIDE:
            continue
        inst = code.instructions[place]
        if not row.clause:
            passed += states_of(inst)
        elif not row.produced.takes_part(inst.op):
            continue  # the clause ends
        if passed < row.states:
            work += [(to, passed) for to in ways(place)]


# -- chains --------------------------------------------------------------------------------------


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


class _Walk:
    """One clone, followed from its entry until nothing new is open anywhere (mutable)."""

    def __init__(self, isa: InstructionSet, code: Code, outside: Due, rows: AbstractSet[Cured]) -> None:
        self.isa, self.code, self.outside, self.rows = isa, code, outside, rows
        self.following = {pc: following for pc, following in pairwise(code.order) if not leaves(code.instructions[pc])}
        self.open = {pc: Due() for pc in code.targets.values()}
        self.seen: set[int] = set()
        self.work: list[int] = []  # a heap: what comes first in the code is followed first, so that most is met once

    def run(self) -> None:
        for pc in self.code.order:  # the entry, and what is reached in no way that shows
            if pc not in self.seen:
                self.open[pc] = self.open.get(pc, Due()) | (Due() if self.seen else self.outside)
                heappush(self.work, pc)
                self.follow()

    def follow(self) -> None:
        while self.work:
            head = heappop(self.work)
            while self.work and self.work[0] == head:
                heappop(self.work)
            pc: int | None = head
            due = self.open[head]
            while pc is not None:
                self.seen.add(pc)
                due = self.through(pc, due)
                if (target := self.code.targets.get(pc)) is not None:
                    self.reach(target, due)
                pc = self.following.get(pc)
                if pc is not None and pc in self.open:
                    self.reach(pc, due)
                    pc = None

    def reach(self, pc: int, due: Due) -> None:
        known = self.open[pc]
        together = known | due
        if together != known or pc not in self.seen:
            self.open[pc] = together
            heappush(self.work, pc)

    def through(self, pc: int, due: Due) -> Due:
        """What is open behind an instruction; CheckFailed where one ends at it."""
        isa, inst = self.isa, self.code.instructions[pc]
        inserted = pc not in self.code.application
        lacks = met(isa, due.new, inst) | (met(isa, due.old, inst) if inserted else set())
        if lacks:
            raise _missing(isa, self.code, pc, ", ".join(sorted(row.name for row in lacks)))
        if pc in self.code.calls:
            return self.outside
        adds = _adds(isa, inst, inserted, due, self.rows)
        return Due(left(due.old, inst), left(due.new, inst)) | adds if due or adds else due


def _adds(isa: InstructionSet, inst: Inst, inserted: bool, due: Due, rows: AbstractSet[Cured]) -> Due:
    """Chains that an instruction begins, and those that it carries on."""
    begun = _begun(isa, inst)
    if begun:
        begun = {key: regs for key, regs in begun.items() if key[0] in rows}
    old = carried(isa, due.old, inst) if due.old else {}
    new = carried(isa, due.new, inst) if due.new else {}
    return Due({}, _joined(begun, old, new)) if inserted else Due(_joined(begun, old), new)


@lru_cache(maxsize=1 << 16)
def _begun(isa: InstructionSet, inst: Inst) -> Chains:
    return started(isa, inst)


def _anything(isa: InstructionSet, codes: Sequence[Code], rows: AbstractSet[Cured]) -> Due:
    """What may be open where a function is entered or a call returns: chains by any instruction of any of the clones;
    of those that compilers end there, any first link."""
    places = {(inst, pc not in code.application) for code in codes for pc, inst in code.instructions.items()}
    found, before = Due({(row, 1, 0): _EVERY_SGPR for row in rows if row.settled_at_calls}), Due()
    while found != before:
        before = found
        for inst, inserted in places:
            if more := _adds(isa, inst, inserted, before, rows):
                found |= more
    return found
