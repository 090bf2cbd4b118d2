"""A copy of one function, with inserted items woven in and everything PC-relative made symbolic.

In: a function, the items to insert before and after its instructions, what is cloned beside it.
Out: a Clone. Invariant: leaving out inserted items gives the original instructions in their order,
and each of them means what it meant: branches go to the clone of their block, literals of getpc chains
keep the address that they build, except that a direct call goes to the clone of its callee.

A kernel starts with its prologue, which clears wave variables; branches back to its first block do not run it again. A
second entry (kernarg preload) is 256 bytes behind the first one: then the clone starts with a stub for each.

An indirect call may reach any function whose address is taken, and function pointers keep pointing at
originals. So a short compare chain in front of it maps originals to clones; any other address is called as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from luthier_py.errors import Location, OutOfRegisters, Unsupported
from luthier_py.inject.allocate import Pool
from luthier_py.inject.model import (
    PLACEHOLDER,
    PLACEHOLDER64,
    Clone,
    Item,
    Reference,
    Target,
    distance_added,
    made,
    part,
)
from luthier_py.inject.patch import FixupKind
from luthier_py.inject.weave import scalar_move
from luthier_py.ir import Function, Instr, PcBuilder, Program
from luthier_py.isa import Inst, InstructionSet, OperandKind, OpFlag, Reg, RegFile

Inserted = Mapping[Instr, Sequence[Item]]


class Cloner:
    """Clones the functions of one component, one after the other (mutable: collects items)."""

    def __init__(
        self, program: Program, names: Mapping[int, str], pool_at: Callable[[Instr], Pool], homes: Iterable[Reg],
        before: Inserted, after: Inserted,
    ) -> None:
        self.isa: InstructionSet = program.isa
        self.program, self.names, self.pool_at = program, names, pool_at
        self.homes, self.before, self.after = tuple(homes), before, after
        self.pointed = sorted(program.address_taken & names.keys())

    def clone(self, function: Function) -> Clone:
        self.blocks = {block.address for block in function.blocks}
        self.calls = {call.instr: call for call in self.program.calls(function)}
        self.builders: dict[Instr, PcBuilder] = {}
        for builder in function.pc_builders:
            self.builders[builder.lo] = self.builders[builder.hi] = builder
        self.items: list[Item] = []
        self.getpcs: dict[Instr, Item] = {}
        if function.kernel:
            self.prologue(function)
        labels: dict[int, Item] = {}
        for block in function.blocks:
            start = len(self.items)
            for instr in block.instrs:
                self.items += self.before.get(instr, ())
                self.application(instr)
                self.items += self.after.get(instr, ())
            labels[block.address] = self.items[start]
        return Clone(function, self.names[function.address], self.items, labels)

    def prologue(self, function: Function) -> None:
        """What a wave runs first, once."""
        for entry in function.entries:
            start = len(self.items)
            for home in self.homes:
                self.add(scalar_move(home.dwords), home, 0)
            if len(function.entries) > 1:
                self.items.append(Item(made(self.isa, "s_branch", 0), jump=entry))
                if entry != function.entries[-1]:
                    self.pad(start, function.entries[1] - function.entries[0])

    def pad(self, start: int, size_bytes: int) -> None:
        """Make the items from ``start`` on so long."""
        have = sum(item.inst.size_bytes for item in self.items[start:])
        if have > size_bytes:
            raise OutOfRegisters("too many wave variables for a kernel with preloaded arguments; use fewer")
        for _ in range(have, size_bytes, 4):
            self.add("s_nop", 0)

    def application(self, instr: Instr) -> None:
        """Append what stands for ``instr``."""
        inst, flags = instr.inst, instr.inst.op.flags
        jump, reference = None, None
        if flags & OpFlag.BRANCH:
            jump = inst.branch_target(instr.pc)
        elif flags & OpFlag.CALL and inst.branch_target(instr.pc) is not None:
            message = "a function that calls with s_call_b64 cannot be moved away from its callee; leave its kernel out"
            raise Unsupported(message, Location(self.program.function_of(instr).name, instr.pc, self.isa.text(inst)))
        elif instr in self.builders:
            inst, reference = self.rebuilt(instr, self.builders[instr])
        elif instr in self.calls and self.calls[instr].indirect and self.pointed:
            inst = self.dispatch(instr)
        item = Item(inst, origin=instr, jump=jump, reference=reference)
        if inst.op.base == "S_GETPC_B64":
            self.getpcs[instr] = item
        self.items.append(item)

    def rebuilt(self, instr: Instr, builder: PcBuilder) -> tuple[Inst, Reference]:
        """``instr`` with a literal that link fills in, and what it refers to."""
        dst, src = instr.inst["sdst"].reg, instr.inst["src0"].reg
        assert dst is not None and src is not None
        if builder.lo == builder.hi:
            if not self.isa.target.literals64:
                raise Unsupported("an address is made by a 64-bit add whose literal has 32 bits; leave the kernel out",
                                  Location(self.program.function_of(instr).name, instr.pc, self.isa.text(instr.inst)))
            kind, inst = FixupKind.REL64, made(self.isa, instr.inst.op.mnemonic, dst, src, PLACEHOLDER64)
        elif instr == builder.lo:
            kind, inst = FixupKind.REL32_LO, made(self.isa, "s_add_u32", dst, src, PLACEHOLDER)
        else:
            kind, inst = FixupKind.REL32_HI, made(self.isa, "s_addc_u32", dst, src, PLACEHOLDER)
        return inst, Reference(kind, self.target(builder), self.getpcs[builder.getpc])

    def target(self, builder: PcBuilder) -> Target:
        if builder.value in self.blocks and builder.branch is not None:
            return Target(block=builder.value)
        if builder.call is not None and builder.value in self.names:
            return Target(function=builder.value)
        return Target(address=builder.value)

    def dispatch(self, instr: Instr) -> Inst:
        """Before an indirect call: the called address, with originals replaced by their clones."""
        isa, pool = self.isa, self.pool_at(instr)
        pointer = next(o.reg for o in instr.inst.operands if o.name == "src0" and o.kind is OperandKind.REGISTER)
        assert pointer is not None
        base, distance = pool.take(RegFile.SGPR, 2), pool.take(RegFile.SGPR, 2)
        low, high = part(distance, 0), part(distance, 1)
        anchor = self.pointed[0]  # the lowest, so that all others are less than 4 GiB behind it
        self.address_of(base, Target(address=anchor))
        self.add("s_sub_u32", low, part(pointer, 0), part(base, 0))
        self.add("s_subb_u32", high, part(pointer, 1), part(base, 1))
        stay = Item(isa.make("s_add_u32", part(base, 0), part(base, 0), low))
        call = Item(isa.make("s_nop", 0))
        self.add("s_cmp_lg_u32", high, 0)
        self.items.append(Item(isa.make("s_cbranch_scc1", 0), jump=stay))
        compares = [Item(made(isa, "s_cmp_lg_u32", low, address - anchor)) for address in self.pointed]
        for address, compare, following in zip(self.pointed, compares, [*compares[1:], stay], strict=True):
            self.items += [compare, Item(isa.make("s_cbranch_scc1", 0), jump=following)]
            self.address_of(base, Target(function=address))
            self.items.append(Item(isa.make("s_branch", 0), jump=call))
        self.items.append(stay)
        self.add("s_addc_u32", part(base, 1), part(base, 1), high)
        self.items.append(call)
        return isa.with_registers(instr.inst, lambda o: base.index if o.name == "src0" else _index(o.reg))

    def add(self, mnemonic: str, *operands: Reg | int) -> Item:
        item = Item(made(self.isa, mnemonic, *operands))
        self.items.append(item)
        return item

    def address_of(self, pair: Reg, target: Target) -> None:
        """Put the address of ``target`` into ``pair``."""
        getpc = self.add("s_getpc_b64", pair)
        self.items += distance_added(self.isa, pair, pair, getpc, target)


def _index(reg: Reg | None) -> int:
    return reg.index if reg is not None else 0
