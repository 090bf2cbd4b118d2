"""Which bits of a source's register an instruction takes, where they are fewer than 32.

In: an instruction and one of its operands. Out: where the bits begin and how many they are, or None for whole dwords.
Source: AMD Instinct MI200 ISA, 6.2.3 (SDWA), 6.2.2 (op_sel); RDNA 3 ISA, 7.2 (halves of registers).
"""

from __future__ import annotations

from luthier_py.isa.constants import LITERAL, constant_bits, width_of
from luthier_py.isa.instruction import Inst, Operand, OperandKind
from luthier_py.isa.semantics import Lanes, meaning

OP_SEL = 4  # of a source's modifiers: the upper half
_SDWA_PARTS = {0: (0, 8), 1: (8, 8), 2: (16, 8), 3: (24, 8), 4: (0, 16), 5: (16, 16)}


def constant_as_f32(inst: Inst, operand: Operand) -> int:
    """What a constant is worth in a source that is an f32 by op_sel_hi, which its row does not know (RDNA 3 ISA, 7.2.4,
    V_FMA_MIX_F32: "src is f32"; so compiles Mesa, instr_info of its operands); a literal is all 32 bits of it."""
    info = next(info for info in inst.op.operands if info.name == operand.name)
    word = int.from_bytes(inst.raw, "little")
    code = sum((word >> first & (1 << width) - 1) << at for first, width, at in info.segments) & 0xFF
    if code == LITERAL:
        return int.from_bytes(inst.raw[inst.op.size_bytes :][:4], "little")
    return constant_bits(code, "OPERAND_REG_INLINE_C_FP32")


def part_of(inst: Inst, operand: Operand) -> tuple[int, int] | None:
    """The first bit and the number of bits."""
    if operand.kind is not OperandKind.REGISTER:
        return None
    select = inst.find(f"{operand.name}_sel")
    if select is not None:
        return _SDWA_PARTS.get(select.value)
    if not operand.type.startswith("OPERAND_REG_I") or width_of(operand.type) != 16:
        return None
    row = meaning(inst.op)
    if isinstance(row, Lanes) and any(slot.mixed for slot in row.signature.sources):
        return None
    modifiers = inst.find(f"{operand.name}_modifiers")
    high = operand.value or modifiers is not None and modifiers.value & OP_SEL
    return (16 if high else 0), 16
