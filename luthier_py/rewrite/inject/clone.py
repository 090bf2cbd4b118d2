"""A copy of one function in which everything that depends on addresses is symbolic; nothing is inserted yet.

In: a function, what is cloned beside it, and the tool's replacements of some of its instructions. Out: a Clone.
Invariant: its other instructions are the original's, and each means what it meant: branches go to the clone of their
block, getpc chains make the address that they made, except that a direct call goes to the clone of its callee, and a
jump to the clone of its block. What of that is a distance is a literal in the two sums, also where these add registers:
so the instructions that put numbers into those are the original's, and the numbers are, for all other readers.
Instructions that end hardware's waits for operands do not (isa/hazards/own_waits): inserted code relies on these.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence

from luthier_py.base.errors import Location, Unsupported
from luthier_py.base.records import dataclass
from luthier_py.binary.patch import FixupKind
from luthier_py.isa import Inst, InstructionSet, OpFlag, OpInfo
from luthier_py.isa.build import add, add_with_carry, subtract, subtract_with_borrow, with_long_literal
from luthier_py.isa.hazards.own_waits import ends_of_hardware_waits, with_hardware_waits
from luthier_py.isa.properties.wave_registers import gives_back_vectors
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.control import Action
from luthier_py.program.ir import Function, Instr, PcBuilder, Program
from luthier_py.program.ir.model import instr_at
from luthier_py.rewrite.inject.items import Cause, Clone, Edit, Item, Label, Reference, Referent, Single, Slice

_HALVES = {  # of an address, by whether the distance is subtracted, and whether it is the upper one
    (False, False): (FixupKind.REL32_LO, add), (False, True): (FixupKind.REL32_HI, add_with_carry),
    (True, False): (FixupKind.BACK32_LO, subtract), (True, True): (FixupKind.BACK32_HI, subtract_with_borrow),
}


def clone_function(
    program: Program, function: Function, name: str, entries: Sequence[int], beside: Collection[int],
    instead: Mapping[int, Inst],
) -> Clone:
    """``entries``: those of the function that are cloned; what none of them leads to is left out. ``beside``: original
    addresses of the functions whose clones direct calls go to. ``instead``: by address, replacements of instructions.
    """
    code = function.code
    reached = _find_reachable_blocks(function, entries)
    blocks = [block for block in function.blocks if block.address in reached]
    labels = {block.address: Label(block.address) for block in blocks}
    apart = _Apart(program, function, labels, beside, instead).items()
    pcs = sorted(apart)
    items: list[Item] = []
    for block in blocks:
        start = block.start
        items.append(labels[block.address])
        for pc in pcs[bisect_left(pcs, block.address) : bisect_left(pcs, block.end)]:
            at = int(code.pcs.searchsorted(pc))
            if start < at:
                items.append(Slice(code, start, at))
            items += apart[pc]
            start = at + 1
        if start < block.stop:
            items.append(Slice(code, start, block.stop))
    return Clone(function.address, name, tuple(items), labels)


def _find_reachable_blocks(function: Function, entries: Sequence[int]) -> Collection[int]:
    """Addresses of blocks."""
    if tuple(entries) == function.entries:
        return {block.address for block in function.blocks}
    found, work = set(entries), list(entries)
    while work:
        new = set(function.block(work.pop()).successors) - found
        found |= new
        work += new
    return found


@dataclass(frozen=True, slots=True)
class _Apart:
    """Instructions that are no part of a slice: they name something that moves, or other passes change them."""

    program: Program
    function: Function
    labels: Mapping[int, Label]
    beside: Collection[int]
    instead: Mapping[int, Inst]

    @property
    def isa(self) -> InstructionSet:
        return self.program.isa

    def items(self) -> dict[int, tuple[Item, ...]]:
        """Their items, by address."""
        found: dict[int, tuple[Item, ...]] = {}
        code = self.function.code
        for instr in (instr_at(code, at) for at in code.find_flagged(OpFlag.CLAUSE)):
            found[instr.pc] = (Single(instr.inst, instr),)
        for instr in (instr_at(code, at) for at in ends_of_hardware_waits(code, self.isa.target)):
            waits = with_hardware_waits(self.isa, instr.inst)
            if waits is None:
                raise Unsupported("a register says here whether hardware waits for operands (WAVE_SCHED_MODE), on "
                                  "which inserted code relies; leave the kernel out", self.where(instr))
            found[instr.pc] = (Single(waits, instr),)
        messages = code.find_ops(_sends_message)
        for instr in (instr_at(code, at) for at in messages):
            if gives_back_vectors(instr.inst, self.isa.target):
                found[instr.pc] = (Single(instr.inst, instr),)
        for call in self.program.calls(self.function):
            if OpFlag.CALL in call.instr.op.flags and call.instr.inst.branch_target(call.instr.pc) is not None:
                message = "a function that calls with s_call_b64 cannot be moved away from its callee; "
                raise Unsupported(f"{message}leave its kernel out", self.where(call.instr))
            found[call.instr.pc] = (Single(call.instr.inst, call.instr),)
        for block in self.function.blocks:
            last = block.instrs[-1]
            if OpFlag.BRANCH in last.op.flags:
                found[last.pc] = (Single(last.inst, last, jump=self.labels[_target(last)]),)
        behind: dict[int, Label] = {}
        for builder in self.function.pc_builders:
            base = behind.setdefault(builder.getpc.pc, Label())
            found[builder.getpc.pc] = Single(builder.getpc.inst, builder.getpc), base
            for instr in dict.fromkeys((builder.lo, builder.hi)):
                found[instr.pc] = (self.make_relocatable(instr, builder, base),)
        for pc, inst in self.instead.items():
            instr = instr_at(code, int(code.pcs.searchsorted(pc)))
            found[pc] = (Single(inst, instr, Edit(Cause.INSTEAD, point=pc)),)
        return found

    def make_relocatable(self, instr: Instr, builder: PcBuilder, base: Label) -> Single:
        """``instr`` with a literal that link fills in, and what it refers to."""
        to, source = instr.inst["sdst"].reg, instr.inst["src0"].reg
        assert to is not None and source is not None
        if builder.lo == builder.hi:
            if not self.isa.target.literals64:
                raise Unsupported("an address is made by a 64-bit add whose literal has 32 bits; leave the kernel out",
                                  self.where(instr))
            kind, inst = FixupKind.REL64, with_long_literal(self.isa, instr.inst)
        else:
            kind, make = _HALVES[builder.back, instr == builder.hi]
            inst = make(self.isa, to, source)
        return Single(inst, instr, reference=Reference(kind, self.target(builder), base))

    def target(self, builder: PcBuilder) -> Referent:
        if builder.value in self.labels and builder.branch is not None:
            return Referent(label=self.labels[builder.value])
        if builder.call is not None and builder.value in self.beside:
            return Referent(function=builder.value)
        return Referent(address=builder.value)

    def where(self, instr: Instr) -> Location:
        return Location(self.function.name, instr.pc, self.isa.text(instr.inst))


def _sends_message(op: OpInfo) -> bool:
    return find_meaning(op) is Action.SENDMSG


def _target(branch: Instr) -> int:
    target = branch.inst.branch_target(branch.pc)
    assert target is not None
    return target
