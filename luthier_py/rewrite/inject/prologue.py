"""What a wave of a kernel runs first, once (`birth` says what that is).

In: a kernel's clone, its entries, instructions. Out: the clone with a prologue in front; branches back
to its first block do not run it again. A second entry (kernarg preload) is some bytes behind the first one: then the
clone starts with a stub for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, reduce
from operator import or_
from typing import NamedTuple

from luthier_py.base.errors import Location, OutOfRegisters, Unsupported
from luthier_py.base.records import replace
from luthier_py.binary.loader import KernelDescriptor
from luthier_py.isa import SCC, Inst, InstructionSet, RegFile, RegSet, build, sgpr
from luthier_py.program.analysis import Facts
from luthier_py.program.ir import Function, Kernel
from luthier_py.rewrite.inject.allocate import Pool
from luthier_py.rewrite.inject.fragment import general_registers
from luthier_py.rewrite.inject.initial_state import begun, initially, spare_initial_registers
from luthier_py.rewrite.inject.items import AssignedLocation, Cause, Clone, Edit, Item, PersistentValue, Single
from luthier_py.rewrite.inject.preloads import entries_of
from luthier_py.rewrite.inject.resources import collect_reserved_registers

_EDIT = Edit(Cause.PROLOGUE)


class Prologue(NamedTuple):
    """``entries``: original addresses, where waves may start; ``insts``: what a wave does first."""

    entries: tuple[int, ...]
    insts: list[Inst]

    def is_like(self, other: Prologue) -> bool:
        """Whether waves start in the same places and do the same, byte for byte."""
        return self.entries == other.entries and [i.raw for i in self.insts] == [i.raw for i in other.insts]


def prologues(
    isa: InstructionSet,
    facts: Facts,
    starts: Mapping[Kernel, KernelDescriptor],
    locations: Mapping[PersistentValue, AssignedLocation],
    private: bool,
) -> dict[Function, Prologue]:
    """Prologues by the function that waves start in; ``starts``: the descriptors of kernels' clones."""
    found: dict[Function, Prologue] = {}
    for kernel, start in starts.items():
        entries = entries_of(kernel, start)
        live = reduce(or_, (facts.live_before(kernel.function.block(entry).instrs[0]) for entry in entries))
        taken = initially(isa.target, start) | collect_reserved_registers(locations.values())
        spare = Pool(spare_initial_registers(general_registers(isa), live, taken), partial(Location, kernel.name))
        flag = spare.take(RegFile.SGPR) if live.overlaps(RegSet.of(sgpr(SCC))) else None
        prologue = Prologue(entries, begun(isa, kernel.record.descriptor, start, locations, spare, private, flag))
        if not found.setdefault(kernel.function, prologue).is_like(prologue):
            raise Unsupported(f"kernel {kernel.name} is the code of another one whose waves start in another way; "
                              "hooks cannot be given what they start with", Location(kernel.name))
    return found


def with_prologue(isa: InstructionSet, clone: Clone, prologue: Prologue) -> Clone:
    """The clone with its prologue in front, once for each entry, at the distance that the original's entries have.
    OutOfRegisters where there is no room for it between two entries."""
    entries, items = prologue.entries, list[Item]()
    for entry in entries:
        stub = [Single(inst, edit=_EDIT) for inst in prologue.insts]
        if entries != (clone.original,):
            stub.append(Single(build.jump(isa), edit=_EDIT, jump=clone.labels[entry]))
            if entry != entries[-1]:
                stub += _make_padding(isa, entries[1] - entries[0] - sum(single.size_bytes for single in stub))
        items += stub
    return replace(clone, items=(*items, *clone.items))


def _make_padding(isa: InstructionSet, size_bytes: int) -> list[Single]:
    if size_bytes < 0:
        raise OutOfRegisters("too much is kept for each wave of a kernel with preloaded arguments; use fewer "
                             "wave variables, or values of its birth")
    nothing = Single(build.nothing(isa), edit=_EDIT)
    return [nothing] * (size_bytes // nothing.size_bytes)
