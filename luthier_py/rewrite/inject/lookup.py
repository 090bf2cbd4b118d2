"""What an indirect call reaches: function pointers keep pointing at originals, and their clones are to run.

In: a clone, its indirect calls, the functions that pointers may hold, registers that are free before a call. Out: the
clone with a short compare chain in front of each call, which maps originals to clones; any other address is called as
it is. The call itself takes its address from another pair.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from luthier_py.base.records import replace
from luthier_py.isa import Inst, InstructionSet, OperandKind, Reg, RegFile, build
from luthier_py.program.ir import Instr
from luthier_py.rewrite.inject.allocate import Pool
from luthier_py.rewrite.inject.items import Cause, Clone, Edit, Item, Label, Referent, Single, address_of, part


def look_up(
    isa: InstructionSet, clone: Clone, calls: Collection[int], pointed: Sequence[int], pool_at: Callable[[Instr], Pool]
) -> Clone:
    """``calls``: addresses of indirect calls; ``pointed``: original addresses of functions, ascending."""
    if not calls or not pointed:
        return clone
    items: list[Item] = []
    for item in clone.items:
        if isinstance(item, Single) and item.origin is not None and item.origin.pc in calls:
            chain = _Chain(isa, item, pool_at(item.origin))
            items += [*chain.items(pointed), replace(item, inst=chain.call())]
        else:
            items.append(item)
    return replace(clone, items=tuple(items))


class _Chain:
    """The compares in front of one call."""

    def __init__(self, isa: InstructionSet, call: Single, pool: Pool) -> None:
        assert call.origin is not None
        self.isa, self.inst = isa, call.inst
        self.base, self.distance = pool.take(RegFile.SGPR, 2), pool.take(RegFile.SGPR, 2)
        self.edit = Edit(Cause.LOOKUP, point=call.origin.pc)

    def single(self, inst: Inst, jump: Label | None = None) -> Single:
        return Single(inst, edit=self.edit, jump=jump)

    def items(self, pointed: Sequence[int]) -> list[Item]:
        isa, base, low, high = self.isa, self.base, part(self.distance, 0), part(self.distance, 1)
        pointer, stay, end = self.pointer(), Label(), Label()
        anchor = pointed[0]  # the lowest, so that all others are less than 4 GiB behind it
        found = [
            *self.address(Referent(address=anchor)),
            self.single(build.subtract(isa, low, part(pointer, 0), part(base, 0))),
            self.single(build.subtract_with_borrow(isa, high, part(pointer, 1), part(base, 1))),
            self.single(build.set_flag(isa, high)), self.single(build.jump_if_flag(isa), stay),
        ]
        for place, address in enumerate(pointed):
            following = stay if place + 1 == len(pointed) else Label()
            found += [
                self.single(build.set_flag(isa, low, address - anchor)),
                self.single(build.jump_if_flag(isa), following),
                *self.address(Referent(function=address)), self.single(build.jump(isa), end),
            ]
            found += [following] if following is not stay else []
        return [
            *found, stay, self.single(build.add(isa, part(base, 0), part(base, 0), low)),
            self.single(build.add_with_carry(isa, part(base, 1), part(base, 1), high)), end,
            self.single(build.nothing(isa)),
        ]

    def address(self, target: Referent) -> list[Item]:
        """Put the address of ``target`` into the base."""
        behind = Label()
        getpc = self.single(build.program_counter(self.isa, self.base))
        return [getpc, behind, *address_of(self.isa, self.edit, self.base, self.base, behind, target)]

    def pointer(self) -> Reg:
        """The pair that holds the called address."""
        pointer = next(o.reg for o in self.inst.operands if o.name == "src0" and o.kind is OperandKind.REGISTER)
        assert pointer is not None
        return pointer

    def call(self) -> Inst:
        """The call, through the base."""
        return self.isa.with_registers(self.inst, lambda o: self.base.index if o.name == "src0" else _index(o.reg))


def _index(reg: Reg | None) -> int:
    return reg.index if reg is not None else 0
