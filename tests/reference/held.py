"""Registers of a case that hold telling operands, wherever modifiers say that they come from.

In: an instruction and its Lanes or Scalar row. Out: what its registers hold, lane by lane. What an operand's modifiers
leave out (the other half, other bytes) holds another lane's, so that it shows who looks at the wrong one. Where they
change signs, every other lane has the other sign: one or the other is telling after that.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from luthier_py.isa import EXEC, M0, VCC, Access, Inst, InstructionSet, Operand, OpInfo, RegFile, Target
from luthier_py.isa.model.registers import SCC
from luthier_py.isa.semantics import Lanes, Scalar, find_meaning
from luthier_py.isa.semantics.algebra import BOOL, Kind
from luthier_py.isa.semantics.meaning import SignaturePart, Situation, Variants
from luthier_py.isa.semantics.memory import ScalarAtomic
from reference.spaces import ADDRESS
from reference.telling import telling, width_of, word_of
from reference.vector import ABS, NEG, OP_SEL, OP_SEL_HI, field, moved
from reference.wave import LANES
from reference.ways import TELLING

_SPECIAL = {"scc": SCC, "m0": M0, "exec": EXEC}
ALWAYS = 12  # first lanes of every case, which so come in every mode
ALONE = 0xFAC688  # of DPP8: each lane its own


@cache
def row_of(op: OpInfo, target: Target, ieee: bool = True) -> Lanes | Scalar | None:
    """The function of values that it is, if it is one."""
    row = find_meaning(op)
    if isinstance(row, Variants):
        row = row.of(Situation(lambda name: 0, target.fnuz_floats, False, ieee, not target.clamps_by_mode,
                               target.first_nan, target.half_products_flush, target.dots_keep_denormals))
    return row if isinstance(row, Lanes | Scalar) else None


def completed(target: Target, op: OpInfo, first: int, given: dict[str, int]) -> dict[str, int]:
    """With fields of operands that can hold something: masks in VCC, scalars in registers from the first one on."""
    row = row_of(op, target)
    more: dict[str, int] = {"sdata": first - ADDRESS} if given and isinstance(find_meaning(op), ScalarAtomic) else {}
    for info in op.operands if given and row is not None else ():
        if isinstance(row, Lanes):
            if info.kind in ("sgpr", "bool") and info.access is Access.READ:
                more[info.name] = VCC
            elif info.name == "dpp8":
                more[info.name] = ALONE
        elif info.name in ("src0", "src1"):
            more[info.name] = first + (2 if info.name == "src1" else 0)
    if isinstance(row, Scalar) and TELLING in given:
        named = _named(op, row, given[TELLING])
        more |= {name: elements[0] for _, name, elements in named if name in ("simm16", "imm")}
    return more | given


def lanes_of(isa: InstructionSet, inst: Inst, number: int) -> Iterator[tuple[Operand | None, list[int]]]:
    """What each source holds in each lane of the case of that number; None: VCC, of which a lane's value is a bit."""
    size, row = isa.wave_size, row_of(inst.op, isa.target, ieee=number % 3 != 0)
    if not isinstance(row, Lanes):
        return
    known = telling(row, bool(field(inst, "clamp")))
    apart = 3 if len(known) > size else 1
    each_twice = any(operand.name.endswith("_modifiers") and operand.value & (NEG | ABS) for operand in inst.operands)
    places = [lane >> each_twice for lane in range(LANES)]
    chosen = [known[place % len(known)] if place < ALWAYS else
              known[(number + number // 3 + apart * (place + size * (number // 3))) % len(known)] for place in places]
    others = [known[(5 * lane + number) % len(known)] for lane in range(LANES)]
    operands = iter([operand for operand in inst.operands if operand.name in ("src0", "src1", "src2")
                     or operand.name == "imm" and Access.READ in operand.access])
    for at, slot in enumerate(row.signature.sources):
        operand = None if slot.special else next(operands, None)
        own, noise = ([each[at] for each in tuples] for tuples in (chosen, others))
        if slot.type is BOOL:
            if operand is None or operand.reg is not None and operand.reg.index == VCC:
                yield None, [elements[0] for elements in own]
            continue
        operand = inst.find("vdst") if operand is None else operand
        if operand is None or operand.reg is None or operand.reg.file is RegFile.SGPR:
            continue
        bits = slot.type.bits or width_of(row).bits
        if row.packed:
            words = [low[0] | high[0] << bits for low, high in zip(own, noise, strict=True)]
            modifiers = field(inst, f"{operand.name}_modifiers", OP_SEL_HI)
            if modifiers & OP_SEL or not modifiers & OP_SEL_HI:
                words = [word >> bits | (word & (1 << bits) - 1) << bits for word in words]
        elif bits == 16 and slot.count == 1:
            high = _upper(inst, operand)
            words = [a[0] << 16 * high | b[0] << 16 * (not high) for a, b in zip(own, noise, strict=True)]
            if slot.type.kind is Kind.FLOAT and field(inst, f"{operand.name}_modifiers") & (NEG | ABS):
                words = [word ^ (lane & 1) * 0x80008000 for lane, word in enumerate(words)]
        else:
            words = [word_of(slot, elements) for elements in own]
            if slot.type.kind is Kind.FLOAT and field(inst, f"{operand.name}_modifiers") & (NEG | ABS):
                words = [word ^ (lane & 1) << bits - 1 for lane, word in enumerate(words)]
        yield operand, _before_dpp(inst, words) if operand.name == "src0" else words


def _upper(inst: Inst, operand: Operand) -> bool:
    """Whether it is read from the upper half of its register."""
    return bool(operand.value or field(inst, f"{operand.name}_modifiers") & OP_SEL
                or field(inst, f"{operand.name}_sel", 6) == 5)


def _before_dpp(inst: Inst, words: list[int]) -> list[int]:
    """Each where the lane reads it that it is for."""
    found = list(words)
    for lane, word in enumerate(words):
        source: int | None = lane
        if inst.find("dpp8") is not None:
            source = lane & ~7 | field(inst, "dpp8") >> 3 * (lane & 7) & 7
        elif inst.find("dpp_ctrl") is not None:
            source = moved(field(inst, "dpp_ctrl"), lane)
        if source is not None:
            found[source] = word
    return found


def scalars_of(target: Target, inst: Inst, number: int) -> dict[int, int]:
    """Scalar registers before the instruction in the case of that number, SCC among them."""
    row = row_of(inst.op, target, ieee=number % 3 != 0)
    assert isinstance(row, Scalar)
    held: dict[int, int] = {}
    for slot, name, elements in _named(inst.op, row, number):
        index = _SPECIAL.get(slot.name)
        if index is None:
            reg = inst[name].reg
            index = None if reg is None else reg.index
        if index is not None:
            bits = slot.type.bits or width_of(row).bits
            held |= {index + i: elements[0] >> 32 * i & 0xFFFFFFFF for i in range(-(-bits // 32))}
    return held


def _named(op: OpInfo, row: Scalar, number: int) -> Iterator[tuple[SignaturePart, str, tuple[int, ...]]]:
    """Each source, its operand's name, and what is telling."""
    names = iter([info.name for info in op.operands if info.name in ("src0", "src1", "simm16")
                  or info.name in ("sdst", "imm") and info.access is Access.READ])
    known = telling(row)
    for slot, elements in zip(row.signature.sources, known[number % len(known)], strict=True):
        yield slot, "sdst" if slot.name == "old" else "" if slot.special else next(names), elements
