"""Which bits of a source's register an instruction takes, where they are fewer than 32; what its constants are worth.

In: an instruction and one of its operands. Out: where the bits begin and how many they are, or None for whole dwords;
the bits of a constant.
Source: AMD Instinct MI200 ISA, 6.2.3 (SDWA), 6.2.2 (op_sel); RDNA 3 ISA, 7.2 (halves of registers).
"""

from __future__ import annotations

from luthier_py.isa.encoding.constants import LITERAL, constant_bits, width_of
from luthier_py.isa.encoding.instruction import Inst, Operand, OperandKind
from luthier_py.isa.semantics import Lanes, find_meaning
from luthier_py.isa.semantics.algebra import F32
from luthier_py.isa.semantics.meaning import Variants
from luthier_py.isa.semantics.readers.binding import DESTINATIONS, sources, width

OP_SEL, OP_SEL_HI = 4, 8  # of a source's modifiers: the upper half; in MIX instructions, that it is a half at all
_SDWA_PARTS = {0: (0, 8), 1: (8, 8), 2: (16, 8), 3: (24, 8), 4: (0, 16), 5: (16, 16)}


def constant_of(inst: Inst, operand: Operand) -> int:
    """What a constant is worth to the instruction: of MIX sources, which are f32 where op_sel_hi does not say that they
    are halves, all bits of it; their rows know the halves' type alone (RDNA 3 ISA, V_FMA_MIX_F32). Of packed f32 a
    literal is both numbers: only gfx1250 takes one (LLVM, hasPKF32InstsReplicatingLower32BitsOfScalarInput)."""
    row = find_meaning(inst.op)
    if isinstance(row, Lanes) and inst.literal is not None and _is_pair(row) and (
            inst.fields[inst.operands.index(operand)] & 0x1FF == LITERAL):
        return inst.literal << 32 | inst.literal
    modifiers = inst.find(f"{operand.name}_modifiers")
    if modifiers is None or modifiers.value & OP_SEL_HI or not _has_mixed_sources(row):
        return operand.value
    code = inst.fields[inst.operands.index(operand)] & 0xFF
    if code == LITERAL and inst.literal is not None:
        return inst.literal
    return constant_bits(code, "OPERAND_REG_INLINE_C_FP32")


def _is_pair(row: Lanes) -> bool:
    return any(slot.count == 2 and slot.type == F32 for slot in row.signature.sources)


def _has_mixed_sources(row: object) -> bool:
    return isinstance(row, Lanes) and any(slot.mixed for slot in row.signature.sources)


def part_of(inst: Inst, operand: Operand) -> tuple[int, int] | None:
    """The first bit and the number of bits, of a source; of a destination that is one, too, those that it adds to."""
    if operand.kind is not OperandKind.REGISTER:
        return None
    select = inst.find(f"{operand.name}_sel")
    if select is not None:
        return _SDWA_PARTS.get(select.value)
    row = find_meaning(inst.op)
    if _has_mixed_sources(row) or not _is_half(inst, operand, row.typical if isinstance(row, Variants) else row):
        return None
    old = operand.name in DESTINATIONS  # op_sel of a destination is a bit of the first source's modifiers
    modifiers = inst.find("src0_modifiers" if old else f"{operand.name}_modifiers")
    high = operand.value or modifiers is not None and modifiers.value & (OP_SEL_HI if old else OP_SEL)
    return (16 if high else 0), 16


def _is_half(inst: Inst, operand: Operand, row: object) -> bool:
    """By the type of what may be a constant; what is a register in any case is judged by what is computed of it."""
    if operand.type.startswith("OPERAND_REG_I"):
        return width_of(operand.type) == 16
    if not isinstance(row, Lanes):
        return False
    taken = zip(sources(inst.op, row), row.signature.sources, strict=True)
    return any(name == operand.name and slot.count == 1 and (slot.type.bits or width(row).bits) == 16
               for name, slot in taken)
