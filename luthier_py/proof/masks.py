"""What instructions do to lane masks, seen from one lane: bits of one lane, each 0, 1 or not known.

In: an instruction. Out: for the masks that it writes, a function of the bits of others. Read from isa/semantics: logic
on whole masks is logic on the bits of each lane. Invariant: what is not understood is not known, never wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, reduce
from operator import or_
from typing import NamedTuple

from luthier_py.isa import EXEC, Inst, InstructionSet, OperandKind, OpFlag, Reg, RegFile
from luthier_py.isa.semantics import Scalar, find_meaning
from luthier_py.isa.semantics.algebra import Kind, Prim, Type, Value
from luthier_py.proof.meanings import UNKNOWN, read_source, results, sources_of

Bit = int | None
MASKS = (1 << 128) - 1  # scalar registers that may hold masks
HALF = 256  # where numbers of halves begin: of registers all of whose bits are the same
ZERO, ONE, ANY = -1, -2, -3


class Change(NamedTuple):
    """An instruction's effect on masks, which are named by their first register: ``targets`` become what ``compute``
    makes of the bits of ``sources`` (masks, ZERO, ONE or ANY); ``lost`` are not known any more. ``written`` and
    ``read`` are these masks as bits. Halves of masks of 64 lanes are there, too, named by HALF and their register:
    they are known where they are the same for all of their lanes."""

    targets: tuple[int, ...]
    sources: tuple[int, ...]
    compute: Callable[[tuple[Bit, ...]], tuple[Bit, ...]]
    lost: int
    written: int = 0
    read: int = 0


class _OneLane:
    """Ops of the bit of one lane in whole masks; other values are not known."""

    def __init__(self, width: int) -> None:
        self.width = width

    def constant(self, type: Type, value: int | float) -> Value:
        whole = (1 << self.width) - 1
        same = type.bits == self.width and isinstance(value, int)
        return Value(self, type, {0: 0, whole: 1}.get(int(value) & whole) if same else None)

    def apply(self, prim: Prim, type: Type, *operands: Value) -> Value:
        rule = _RULES.get(prim)
        same = type.bits == self.width and rule is not None
        return Value(self, type, rule(*(operand.ref for operand in operands)) if same and rule is not None else None)


def _and(a: Bit, b: Bit) -> Bit:
    return 0 if a == 0 or b == 0 else None if a is None or b is None else 1


def _or(a: Bit, b: Bit) -> Bit:
    return 1 if a == 1 or b == 1 else None if a is None or b is None else 0


def _xor(a: Bit, b: Bit) -> Bit:
    return None if a is None or b is None else a ^ b


_RULES: dict[Prim, Callable[..., Bit]] = {
    Prim.AND: _and, Prim.OR: _or, Prim.XOR: _xor, Prim.BITS: lambda a: a,
    Prim.SELECT: lambda condition, a, b: a if a == b else None,
}


@lru_cache(maxsize=1 << 14)
def change(isa: InstructionSet, inst: Inst) -> Change | None:
    """What ``inst`` does to masks; None where it writes no register that may hold one."""
    written = inst.writes.sgpr & MASKS
    if not written:
        return None
    step = isa.wave_size // 32
    lost = 0
    for index in range(written.bit_length()):
        if written >> index & 1:
            lost |= 1 << index - index % step | (1 << HALF + index if step == 2 else 0)
    row = find_meaning(inst.op)
    if OpFlag.VALU in inst.op.flags:
        found = _model_comparison(inst, lost)
    else:
        found = _model_logic(isa, inst, row) if isinstance(row, Scalar) else None
    if found is None:
        return Change((), (), lambda bits: (), lost, lost)
    targets = reduce(or_, (1 << target for target in found.targets), 0)
    read = reduce(or_, (1 << source for source in found.sources if source >= 0), 0)
    return found._replace(lost=lost & ~targets, written=lost | targets, read=read)


def _model_comparison(inst: Inst, masks: int) -> Change | None:
    """A comparison gives 0 in lanes that are not active."""
    if inst.writes.vgpr or inst.writes.agpr or inst.find("vdst") is not None or OpFlag.DPP in inst.op.flags:
        return None
    targets = tuple(index for index in range(masks.bit_length()) if masks >> index & 1)
    return Change(targets, (EXEC,), lambda bits: (_and(bits[0], None),) * len(targets), 0)


def _model_logic(isa: InstructionSet, inst: Inst, row: Scalar) -> Change | None:
    """Logic on one mask, or on two of 32 lanes at once."""
    target = inst.find("sdst")
    if target is None or target.reg is None:
        return None
    if target.reg.dwords * 32 < isa.wave_size:
        return _half_of_exec(inst, row, target.reg) if target.reg.index in (EXEC, EXEC + 1) else _half(
            inst, target.reg.index)
    width = target.reg.dwords * 32
    parts = range(width // isa.wave_size)
    slots = sources_of(inst.op)
    types = [slot.type if slot.type.bits else Type(Kind.UINT, width) for slot, _ in slots]
    if not any(type.bits == width for type in types):
        return None
    chosen = [[EXEC + part if slot.name == "exec" else _source(isa, inst, name, type, width, part)
               for (slot, name), type in zip(slots, types, strict=True)] for part in parts]
    places = [k for k, slot in enumerate(row.signature.results) if slot.name != "scc"]
    names = [(EXEC if row.signature.results[k].name == "exec" else target.reg.index) + part
             for part in parts for k in places]
    ops, count = _OneLane(width), len(types)

    def compute(bits: tuple[Bit, ...]) -> tuple[Bit, ...]:
        found: list[Bit] = []
        for part in parts:
            mine = bits[part * count:(part + 1) * count]
            made = row.compute(*(Value(ops, type, bit) for type, bit in zip(types, mine, strict=True)))
            made = made if isinstance(made, tuple) else (made,)
            found += [made[k].ref if made[k].type.bits == width else None for k in places]
        return tuple(found)

    sources = tuple(source for part in chosen for source in part)
    return Change(tuple(names), sources, lru_cache(maxsize=None)(compute), 0)


def _half(inst: Inst, index: int) -> Change | None:
    """One number for 32 lanes of 64: with the same number in the other half it is the mask's."""
    made = results(inst, lambda source, bits: read_source(source, bits, lambda register: UNKNOWN), 64)
    numbers = [term for name, _, term in made if name == "dst" and isinstance(term, int)]
    bit = {0: 0, (1 << 32) - 1: 1}.get(numbers[0]) if numbers else None
    if bit is None:
        return None

    def compute(bits: tuple[Bit, ...]) -> tuple[Bit, ...]:
        return bit, bit if bits[0] == bit else None

    return Change((HALF + index, index & ~1), (HALF + (index ^ 1),), compute, 0)


def _half_of_exec(inst: Inst, row: Scalar, target: Reg) -> Change | None:
    """Logic on 32 lanes of 64: a lane is one of them, or keeps its bit."""
    slots = sources_of(inst.op)
    places = [k for k, slot in enumerate(row.signature.results) if slot.name != "scc"]
    if target.index not in (EXEC, EXEC + 1) or len(places) != 1 or any(
            slot.special for slot in (row.signature.results[places[0]], *row.signature.sources)):
        return None
    types = [slot.type if slot.type.bits else Type(Kind.UINT, 32) for slot, _ in slots]
    sources = [_half_source(inst, name, target) for _, name in slots]
    ops = _OneLane(32)

    def compute(bits: tuple[Bit, ...]) -> tuple[Bit, ...]:
        made = row.compute(*(Value(ops, type, bit) for type, bit in zip(types, bits[:-1], strict=True)))
        mine = made[places[0]] if isinstance(made, tuple) else made
        return (mine.ref if mine.type.bits == 32 and mine.ref == bits[-1] else None,)

    return Change((EXEC,), (*sources, EXEC), lru_cache(maxsize=None)(compute), 0)


def _half_source(inst: Inst, name: str | None, target: Reg) -> int:
    """The mask of which it is the same half as ``target`` is."""
    operand = inst.find(name) if name is not None else None
    if operand is not None and operand.kind is OperandKind.CONSTANT:
        return {0: ZERO, (1 << 32) - 1: ONE}.get(operand.value & (1 << 32) - 1, ANY)
    reg = operand.reg if operand is not None else None
    same = reg is not None and reg.file is RegFile.SGPR and reg.dwords == 1 and not (reg.index - target.index) % 2
    return reg.index - reg.index % 2 if reg is not None and same else ANY


def _source(isa: InstructionSet, inst: Inst, name: str | None, type: Type, width: int, part: int) -> int:
    operand = inst.find(name) if name is not None else None
    if operand is None or type.bits != width:
        return ANY
    if operand.kind is OperandKind.CONSTANT:
        whole = (1 << isa.wave_size) - 1
        return {0: ZERO, whole: ONE}.get(operand.value >> part * isa.wave_size & whole, ANY)
    reg = operand.reg
    if reg is None or reg.file is not RegFile.SGPR or reg.dwords * 32 != width:
        return ANY
    return reg.index + part * isa.wave_size // 32
