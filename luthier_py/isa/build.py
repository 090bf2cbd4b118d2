"""Instructions that rewriting puts around code of others, by what they do.

In: an InstructionSet and registers. Out: instructions; branches go nowhere yet, literals are PLACEHOLDERs where
addresses will be filled in. Equal ones are shared.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from luthier_py.isa.encoding.instruction import FLAT_SCR_LO, Inst, OpFlag
from luthier_py.isa.model.registers import EXEC, SCC, Reg, RegFile, sgpr

if TYPE_CHECKING:
    from luthier_py.isa import InstructionSet

PLACEHOLDER = 0x7FFFFFFF  # no inline constant: a literal follows the instruction
PLACEHOLDER64 = 0x7FFFFFFF_7FFFFFFF
_FLAG = sgpr(SCC)


@lru_cache(maxsize=1 << 16, typed=True)
def _make_inst(isa: InstructionSet, mnemonic: str, *operands: Reg | int) -> Inst:
    return isa.make(mnemonic, *operands)


def copy(isa: InstructionSet, to: Reg, source: Reg | int) -> Inst:
    """``to`` := ``source``, one dword or two scalars; SCC becomes 0 or 1, scalars fill vector registers."""
    if to.file is RegFile.SGPR:
        if source == _FLAG:
            return _make_inst(isa, "s_cselect_b32", to, 1, 0)
        return _make_inst(isa, "s_mov_b64" if to.dwords == 2 else "s_mov_b32", to, source)
    if isinstance(source, Reg) and source.file is RegFile.AGPR:
        return _make_inst(isa, "v_accvgpr_read_b32", to, source)
    return _make_inst(isa, "v_accvgpr_write_b32" if to.file is RegFile.AGPR else "v_mov_b32", to, source)


def to_lane(isa: InstructionSet, to: Reg, lane: int, source: Reg | int) -> Inst:
    """One lane of a vector register := a scalar, whatever EXEC is."""
    return _make_inst(isa, "v_writelane_b32", to, source, lane)


def from_lane(isa: InstructionSet, to: Reg, source: Reg, lane: int) -> Inst:
    """A scalar := one lane of a vector register, whatever EXEC is."""
    return _make_inst(isa, "v_readlane_b32", to, source, lane)


def first_lane(isa: InstructionSet, to: Reg, source: Reg) -> Inst:
    """A scalar := what the lowest active lane has."""
    return _make_inst(isa, "v_readfirstlane_b32", to, source)


def mask_bits(isa: InstructionSet, reg: Reg, bits: int) -> Inst:
    """A vector register without other bits than these."""
    return _make_inst(isa, "v_and_b32", reg, bits, reg)


def shift_left(isa: InstructionSet, to: Reg, source: Reg, by: int) -> Inst:
    """A scalar; destroys SCC, as do the next three."""
    return _make_inst(isa, "s_lshl_b32", to, source, by)


def or_bits(isa: InstructionSet, to: Reg, source: Reg, other: Reg) -> Inst:
    """All bits of two scalars."""
    return _make_inst(isa, "s_or_b32", to, source, other)


def lower_half(isa: InstructionSet, to: Reg, source: Reg) -> Inst:
    """``to`` := bits 15:0 of a scalar; destroys SCC."""
    return _make_inst(isa, "s_and_b32", to, source, 0xFFFF)


def upper_half(isa: InstructionSet, to: Reg, source: Reg) -> Inst:
    """``to`` := bits 31:16 of a scalar; destroys SCC."""
    return _make_inst(isa, "s_lshr_b32", to, source, 16)


def to_private(
    isa: InstructionSet, reg: Reg, base: Reg | None, offset_bytes: int, resource: Reg | None = None
) -> Inst:
    """A dword of each active lane's private memory := a vector register. ``base`` has a part of the offset, if any;
    that of the wave, where there is a ``resource``."""
    if resource is not None:
        return _private(isa, f"buffer_store_dword {reg}, off, {resource}, {base or 0}", offset_bytes)
    return _private(isa, f"scratch_store_{_dword(isa)} off, {reg}, {base or 'off'}", offset_bytes)


def from_private(
    isa: InstructionSet, reg: Reg, base: Reg | None, offset_bytes: int, resource: Reg | None = None
) -> Inst:
    """A vector register := a dword of each active lane's private memory; its place is given as to `to_private`. The
    value is there once the load has been waited for."""
    if resource is not None:
        return _private(isa, f"buffer_load_dword {reg}, off, {resource}, {base or 0}", offset_bytes)
    return _private(isa, f"scratch_load_{_dword(isa)} {reg}, off, {base or 'off'}", offset_bytes)


def _dword(isa: InstructionSet) -> str:
    return "b32" if isa.target.generation >= 11 else "dword"


@lru_cache(maxsize=1 << 12)
def _private(isa: InstructionSet, text: str, offset_bytes: int) -> Inst:
    return isa.parse(f"{text} offset:{offset_bytes}" if offset_bytes else text)


def load_arguments(isa: InstructionSet, to: Reg, pointer: Reg, offset_bytes: int) -> Inst:
    """1, 2, 4, 8 or 16 dwords of the kernarg segment."""
    size = f"x{to.dwords}" if to.dwords > 1 else ""
    return isa.make(f"s_load_dword{size}", to, pointer, offset_bytes)  # targets with a second entry have it


def set_flag(isa: InstructionSet, reg: Reg, number: int = 0) -> Inst:
    """SCC := whether ``reg`` is not ``number``."""
    return _make_inst(isa, "s_cmp_lg_u32", reg, number)


def flag(isa: InstructionSet, is_set: bool) -> Inst:
    """SCC := a number."""
    return _make_inst(isa, "s_cmp_eq_u32" if is_set else "s_cmp_lg_u32", 0, 0)


def other_lanes(isa: InstructionSet) -> Inst:
    """EXEC := all lanes that are not active; destroys SCC."""
    return _make_inst(isa, "s_not_b64", sgpr(EXEC, 2), sgpr(EXEC, 2))


def program_counter(isa: InstructionSet, to: Reg) -> Inst:
    """``to`` := the address of what follows."""
    return _make_inst(isa, "s_getpc_b64", to)


def add(isa: InstructionSet, to: Reg, source: Reg, number: Reg | int = PLACEHOLDER) -> Inst:
    """Low half of a sum; destroys SCC, as do all sums and differences here."""
    return _make_inst(isa, "s_add_u32", to, source, number)


def add_with_carry(isa: InstructionSet, to: Reg, source: Reg, number: Reg | int = PLACEHOLDER) -> Inst:
    """High half of a sum: adds SCC, the carry that `add` of the low half has left."""
    return _make_inst(isa, "s_addc_u32", to, source, number)


def subtract(isa: InstructionSet, to: Reg, source: Reg, other: Reg | int = PLACEHOLDER) -> Inst:
    """Low half of the difference ``source - other``; SCC becomes the borrow."""
    return _make_inst(isa, "s_sub_u32", to, source, other)


def subtract_with_borrow(isa: InstructionSet, to: Reg, source: Reg, other: Reg | int = PLACEHOLDER) -> Inst:
    """High half of a difference: takes off SCC, the borrow that `subtract` of the low half has left."""
    return _make_inst(isa, "s_subb_u32", to, source, other)


def with_long_literal(isa: InstructionSet, inst: Inst) -> Inst:
    """A sum of 64 bits, ``inst``, with a literal as wide."""
    to, source = inst["sdst"].reg, inst["src0"].reg
    assert to is not None and source is not None
    return _make_inst(isa, inst.op.mnemonic, to, source, PLACEHOLDER64)


def jump(isa: InstructionSet, distance_dwords: int = 0) -> Inst:
    """``distance_dwords`` from its end."""
    return _make_inst(isa, "s_branch", distance_dwords)


def jump_if_flag(isa: InstructionSet) -> Inst:
    """A branch that is taken if SCC is 1; its displacement is to be filled in."""
    return _make_inst(isa, "s_cbranch_scc1", 0)


def jump_if_no_lane(isa: InstructionSet) -> Inst:
    """A branch that is taken if EXEC is 0; its displacement is to be filled in."""
    return _make_inst(isa, "s_cbranch_execz", 0)


def nothing(isa: InstructionSet) -> Inst:
    """``s_nop 0``: four bytes, one wait state."""
    return _make_inst(isa, "s_nop", 0)


def times_one(isa: InstructionSet, reg: Reg) -> Inst:
    """A scalar register becomes what it is, SCC stays: a product, of which nothing is known."""
    return _make_inst(isa, "s_mul_i32", reg, reg, 1)


def keep_mode(isa: InstructionSet, to: Reg, field: int) -> Inst:
    """``to`` := a field of MODE (vector_modes.mode_field)."""
    return _make_inst(isa, "s_getreg_b32", to, field)


def set_mode(isa: InstructionSet, field: int, source: Reg | int) -> Inst:
    """A field of MODE (vector_modes.mode_field) := the low bits of a scalar, or of a literal behind the instruction."""
    return _make_inst(isa, "s_setreg_b32" if isinstance(source, Reg) else "s_setreg_imm32_b32", field, source)


def set_scratch_base(isa: InstructionSet, half: int, source: Reg) -> Inst:
    """A half of where private memory is, as a hardware register has it."""
    return _make_inst(isa, "s_setreg_b32", FLAT_SCR_LO + half | 31 << 11, source)


MOST_IN_GROUP = 63  # S_CLAUSE, SIMM16[5:0] + 1 (RDNA ISA); 63 is no group


def group_size(inst: Inst) -> int:
    """How many of the instructions behind ``inst`` the hardware issues as one group with it; 0 if it begins none."""
    return (inst["simm16"].value & 0x3F) + 1 if OpFlag.CLAUSE in inst.op.flags else 0
