"""Instructions that change what the vector instructions behind them mean: operands relative to M0, other banks of
registers, nothing at all.

In: an instruction. Out: whether such a mode is on behind it. Invariant: a mode that may be on is on.
"""

from __future__ import annotations

from enum import Enum, auto

from luthier_py.isa.errata import READS_ANY, WRITES_ANY
from luthier_py.isa.instruction import Inst, OperandKind

MODE_REGISTER = 1
"""Its number in s_setreg and s_getreg (HW_REG_MODE)."""
FIRST_OTHER_BIT = 27  # of MODE: gpr_idx_en, then vskip (Vega ISA 3.3.2)
FLOAT_BITS = 8        # of MODE: rounding in 3:0, denormals in 7:4

_RELATIVE = READS_ANY | WRITES_ANY | {"S_SET_GPR_IDX_ON", "S_SET_GPR_IDX_MODE"}


class Turned(Enum):
    """What an instruction does to these modes."""

    NOT = auto()
    BOTH_ON = auto()
    RELATIVE_ON = auto()
    RELATIVE_OFF = auto()
    SKIP_ON = auto()
    SKIP_OFF = auto()  # behind the next instruction: it wants one wait state (Vega ISA 12.4)


def turned(inst: Inst) -> Turned:
    base = inst.op.base
    if base in ("S_SETREG_B32", "S_SETREG_IMM32_B32"):
        field = inst["simm16"].value
        reaches = (field >> 6 & 31) + (field >> 11 & 31) >= FIRST_OTHER_BIT
        return Turned.BOTH_ON if field & 63 == MODE_REGISTER and reaches else Turned.NOT
    if base in ("S_SET_GPR_IDX_ON", "S_SET_GPR_IDX_MODE"):
        return Turned.RELATIVE_ON
    if base == "S_SET_GPR_IDX_OFF":
        return Turned.RELATIVE_OFF
    if base == "S_SET_VGPR_MSB":
        return Turned.RELATIVE_ON if inst["simm16"].value & 0xFF else Turned.RELATIVE_OFF
    return _skips(inst) if base == "S_SETVSKIP" else Turned.NOT


def _skips(inst: Inst) -> Turned:
    """VSKIP = S0[S1[4:0]] (Vega ISA 12.4)."""
    value, bit = inst["src0"], inst["src1"]
    if value.kind is not OperandKind.CONSTANT:
        return Turned.SKIP_ON
    off = not value.value >> (bit.value & 31) & 1 if bit.kind is OperandKind.CONSTANT else value.value == 0
    return Turned.SKIP_OFF if off else Turned.SKIP_ON


def float_field(inst: Inst) -> int | None:
    """The field of MODE that a s_setreg or s_getreg names, if it is of MODE and of float bits alone."""
    operand = inst.find("simm16")
    if inst.op.base not in ("S_SETREG_B32", "S_SETREG_IMM32_B32", "S_GETREG_B32") or operand is None:
        return None
    field = operand.value & 0xFFFF
    inside = (field >> 6 & 31) + (field >> 11 & 31) < FLOAT_BITS
    return field if field & 63 == MODE_REGISTER and inside else None


def moves_relative(inst: Inst) -> bool:
    """Whether it says, or makes others say, which register they mean by a number that is worked out at run time."""
    return inst.op.base in _RELATIVE
