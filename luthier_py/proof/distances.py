"""That inserted code and the application's keep the distance that the hardware wants, on every path of linked bytes.

In: the clones of functions that may call each other, and what of them is inserted. Out: nothing, or CheckFailed. What
the application's instructions owe each other was their compiler's business; a chain that an inserted instruction is
part of, on either side or between, must have met its wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise

from luthier_py.errors import CheckFailed, Location
from luthier_py.isa import Inst, InstructionSet, OpFlag
from luthier_py.isa.owed import NOTHING, Owed, Possible, missing, own, possible, unknown
from luthier_py.proof.application import Clone


@dataclass(frozen=True, slots=True)
class Code:
    """One clone: its instructions by address, ascending, and where the application's stand."""

    name: str
    instructions: Mapping[int, Inst]
    application: AbstractSet[int]


@dataclass(frozen=True, slots=True)
class Due:
    """What is owed at an address: by the application among itself, and by chains with something inserted."""

    old: Owed = NOTHING
    new: Owed = NOTHING

    def __bool__(self) -> bool:
        return bool(self.old or self.new)

    def __or__(self, other: Due) -> Due:
        return Due(self.old.join(other.old), self.new.join(other.new))


def code_of(clone: Clone, inserted: Mapping[int, Inst]) -> Code:
    """``inserted``: what was inserted, by address."""
    own = {clone.places[at]: clone.instruction(at)[0] for at in range(len(clone.code))}
    return Code(clone.function.name, dict(sorted((own | dict(inserted)).items())), own.keys())


def check_distances(isa: InstructionSet, codes: Sequence[Code]) -> None:
    """Raises CheckFailed."""
    calls = any(OpFlag.CALL in inst.op.flags for code in codes for inst in code.instructions.values())
    rows = possible(isa, {inst.op for code in codes for inst in code.instructions.values()})
    outside = _outside(isa, codes, rows) if calls or len(codes) > 1 else Due()
    for code in codes:
        _Walk(isa, code, outside, rows).run()


class _Walk:
    """One clone, followed from its entry until nothing new is owed anywhere (mutable)."""

    def __init__(self, isa: InstructionSet, code: Code, outside: Due, rows: Possible) -> None:
        self.isa, self.code, self.outside, self.rows = isa, code, outside, rows
        self.after = {pc: following for pc, following in pairwise(code.instructions)
                      if not _leaves(code.instructions[pc].op.flags)}
        self.calls = {pc for pc, inst in code.instructions.items() if OpFlag.CALL in inst.op.flags}
        self.targets = {pc: target for pc, inst in code.instructions.items()
                        if (target := inst.branch_target(pc)) in code.instructions}
        self.met = {pc: Due() for pc in self.targets.values()}
        self.seen: set[int] = set()
        self.work: list[int] = []  # a heap: what comes first in the code is followed first, so that most is met once

    def run(self) -> None:
        for pc in self.code.instructions:  # the entry, and what is reached in no way that shows
            if pc not in self.seen:
                self.met[pc] = self.met.get(pc, Due()) | (Due() if self.seen else self.outside)
                heappush(self.work, pc)
                self.follow()

    def follow(self) -> None:
        while self.work:
            head = heappop(self.work)
            while self.work and self.work[0] == head:
                heappop(self.work)
            pc: int | None = head
            due = self.met[head]
            while pc is not None:
                self.seen.add(pc)
                due = self.through(pc, due)
                if (target := self.targets.get(pc)) is not None:
                    self.reach(target, due)
                pc = self.after.get(pc)
                if pc is not None and pc in self.met:
                    self.reach(pc, due)
                    pc = None

    def reach(self, pc: int, due: Due) -> None:
        known = self.met[pc]
        joined = known | due
        if joined != known or pc not in self.seen:
            self.met[pc] = joined
            heappush(self.work, pc)

    def through(self, pc: int, due: Due) -> Due:
        """What is owed behind an instruction; CheckFailed where something is due at it."""
        isa, inst = self.isa, self.code.instructions[pc]
        inserted = pc not in self.code.application
        lacks = missing(isa, (due.old, due.new) if inserted else (due.new,), inst)
        if lacks:
            names = sorted(row.name for row in lacks.rows) or [f"{lacks.states} wait states"]
            raise CheckFailed(f"the patch could change the application: a wait is missing ({', '.join(names)})",
                              Location(self.code.name, pc, isa.text(inst)))
        if pc in self.calls:
            return self.outside
        adds = _adds(isa, own(isa, inst, self.rows), inst, inserted, due)
        return Due(due.old.behind(isa, inst), due.new.behind(isa, inst)) | adds if due or adds else due


def _leaves(flags: OpFlag) -> bool:
    """Whether what comes next in the code never runs next."""
    return OpFlag.TERMINATOR in flags and OpFlag.CONDITIONAL not in flags


def _adds(isa: InstructionSet, owing: Owed, inst: Inst, inserted: bool, due: Due) -> Due:
    """What an instruction owes itself, and the chains that it carries on."""
    old, new = due.old.carried(isa, inst), due.new.carried(isa, inst)
    return Due(NOTHING, owing.join(old).join(new)) if inserted else Due(owing.join(old), new)


def _outside(isa: InstructionSet, codes: Sequence[Code], rows: Possible) -> Due:
    """What may be owed where a function is entered or a call returns: by any instruction of any of the clones."""
    places = {(inst.raw, pc not in code.application): inst
              for code in codes for pc, inst in code.instructions.items()}
    found, before = Due(unknown(rows)), Due()
    while found != before:
        before = found
        for (_, inserted), inst in places.items():
            if (more := _adds(isa, own(isa, inst, rows), inst, inserted, before)) != Due():
                found |= more
    return found
