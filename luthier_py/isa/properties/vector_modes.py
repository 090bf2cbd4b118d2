"""Instructions that change what the vector instructions behind them mean: operands relative to M0, other banks of
registers, nothing at all, other results of floats.

In: an instruction. Out: whether such a mode is on behind it, and which bits of MODE it writes. Invariant: a mode that
may be on is on, and bits that may be written are.
"""

from __future__ import annotations

from enum import Enum, auto

from luthier_py.isa.encoding.errata import READS_ANY, WRITES_ANY
from luthier_py.isa.encoding.instruction import Inst, OperandKind, OpFlag
from luthier_py.isa.model.registers import MODE
from luthier_py.isa.model.target import Target

MODE_REGISTER = 1
"""Its number in s_setreg and s_getreg (HW_REG_MODE)."""
FIRST_OTHER_BIT = 27  # of MODE: gpr_idx_en, then vskip (Vega ISA 3.3.2)
BANKS = 0xFF << 12     # of MODE on gfx1250: what s_set_vgpr_msb sets (LLVM, SIDefines.h)
_SETS = ("S_SETREG_B32", "S_SETREG_IMM32_B32")
_OPCODES = {"S_ROUND_MODE": 0xF, "S_DENORM_MODE": 0xF0}  # bits of MODE that they write

_RELATIVE = READS_ANY | WRITES_ANY | {"S_SET_GPR_IDX_ON", "S_SET_GPR_IDX_MODE"}


class Turned(Enum):
    """What an instruction does to these modes."""

    NOT = auto()
    BOTH_ON = auto()
    RELATIVE_ON = auto()
    RELATIVE_OFF = auto()
    SKIP_ON = auto()
    SKIP_OFF = auto()  # behind the next instruction: it wants one wait state (Vega ISA 12.4)


def classify_mode_switch(target: Target, inst: Inst) -> Turned:
    """What ``inst`` does to relative operands and to skipping; one that may turn either on counts as if it did."""
    base = inst.op.base
    if base in _SETS:
        return _by_setreg(target, inst)
    if base in ("S_SET_GPR_IDX_ON", "S_SET_GPR_IDX_MODE"):
        return Turned.RELATIVE_ON
    if base == "S_SET_GPR_IDX_OFF":
        return Turned.RELATIVE_OFF
    if base == "S_SET_VGPR_MSB":
        return Turned.RELATIVE_ON if inst["simm16"].value & 0xFF else Turned.RELATIVE_OFF
    return _skips(inst) if base == "S_SETVSKIP" else Turned.NOT


def _by_setreg(target: Target, inst: Inst) -> Turned:
    field = decode_mode_field(inst)
    if field is not None and field_bits(field) >> FIRST_OTHER_BIT:
        return Turned.BOTH_ON
    return Turned.RELATIVE_ON if compute_written_bank_bits(target, inst) else Turned.NOT


def compute_written_bank_bits(target: Target, inst: Inst) -> int:
    """Bits of MODE[19:12] that an s_setreg may set: all, of a register. Hardware takes them of any value for MODE,
    whatever field is named, and compilers rely on that (LLVM, AMDGPULowerVGPREncoding, handleSetregMode, and pull
    requests 187578: the field does not move them; 218941: a register sets them as well). Others that the field would
    put there count, too."""
    field, given = decode_mode_field(inst), inst.find("imm")
    if field is None or not target.vector_banks:
        return 0
    return BANKS if given is None else (given.value | given.value << (field >> 6 & 31) & field_bits(field)) & BANKS


def _skips(inst: Inst) -> Turned:
    """VSKIP = S0[S1[4:0]] (Vega ISA 12.4)."""
    value, bit = inst["src0"], inst["src1"]
    if value.kind is not OperandKind.CONSTANT:
        return Turned.SKIP_ON
    off = not value.value >> (bit.value & 31) & 1 if bit.kind is OperandKind.CONSTANT else value.value == 0
    return Turned.SKIP_OFF if off else Turned.SKIP_ON


def mode_field(first: int, count: int) -> int:
    """``count`` bits of MODE, as s_getreg and s_setreg name them."""
    return MODE_REGISTER | first << 6 | count - 1 << 11


def field_bits(field: int) -> int:
    """The bits of a hardware register that a field of it has."""
    return (2 << (field >> 11 & 31)) - 1 << (field >> 6 & 31)


def float_fields(target: Target) -> tuple[int, ...]:
    """Fields of MODE that decide what floats compute: rounding and denormals in 7:0; DX10_CLAMP and IEEE in 9:8, up to
    gfx11; FP16_OVFL in 23, from gfx9 on (AMDGPUUsage, "compute_pgm_rsrc1"; LLVM, SIDefines.h)."""
    clamp, overflow = (mode_field(8, 2),), (mode_field(23, 1),)
    return (mode_field(0, 8), *(clamp if target.clamps_by_mode else ()), *(overflow if target.generation >= 9 else ()))


def float_bits(target: Target) -> int:
    """The bits of MODE that these fields have."""
    return sum(map(field_bits, float_fields(target)))


def decode_mode_field(inst: Inst) -> int | None:
    """The field that an s_setreg or s_getreg names, if it is of MODE."""
    field = inst["simm16"].value & 0xFFFF
    return field if field & 63 == MODE_REGISTER else None


def compute_written_mode_bits(inst: Inst) -> int:
    """The bits of MODE that an instruction may write, but those that only say which registers operands mean."""
    if not inst.writes.sgpr >> MODE & 1 or OpFlag.INDEXES_REGISTERS in inst.op.flags:
        return 0
    if inst.op.base in _SETS:
        field = decode_mode_field(inst)
        return 0 if field is None else field_bits(field)
    return _OPCODES.get(inst.op.base, -1)


def moves_relative(inst: Inst) -> bool:
    """Whether it says, or makes others say, which register they mean by a number that is worked out at run time."""
    return inst.op.base in _RELATIVE
