"""Operands of vector instructions: typed values in, typed results out, with all modifiers.

In: an instruction and its signature. Out: for each source a reader that gives a typed value of one
strip, for each result a writer. What modifiers mean (abs, neg, clamp, omod, op_sel, SDWA selects,
DPP controls) stands here once, for every instruction. Sources: AMD Instinct MI200 ISA, 6.2, 6.4, 6.5.

Invariant: scalar operands are read when the instruction is put off, vector ones when it is written.
"""

from __future__ import annotations

from luthier_py.base.errors import Unsupported
from luthier_py.emulator.instructions.dpp import Dpp
from luthier_py.emulator.instructions.wave_code import OperandContext
from luthier_py.emulator.records.layout import AGPR_ROW
from luthier_py.emulator.vector_regions.lane_strip import LaneStrip
from luthier_py.isa.encoding.instruction import (
    SRC_EXECZ,
    SRC_NULL,
    SRC_SCC,
    SRC_VCCZ,
    Access,
    Inst,
    Operand,
    OperandKind,
    OpFlag,
)
from luthier_py.isa.encoding.operands import SCRATCH_BASE
from luthier_py.isa.model.registers import EXEC, VCC, Reg, RegFile
from luthier_py.isa.semantics.algebra import (
    F16,
    F32,
    I8,
    I16,
    U8,
    U16,
    U32,
    Kind,
    Type,
    Value,
    concat,
    high_half,
    is_nan,
    low_half,
    select,
)
from luthier_py.isa.semantics.floats import flush_denormals, quiet
from luthier_py.isa.semantics.meaning import Lanes, SignaturePart
from luthier_py.isa.semantics.operand_parts import constant_of

# Bits of srcN_modifiers (LLVM, SISrcMods).
NEG, ABS, OP_SEL, OP_SEL_HI, SEXT = 1, 2, 4, 8, 16
NEG_HI = ABS                  # packed
DESTINATION_HIGH = OP_SEL_HI  # of src0_modifiers, not packed: op_sel of the destination

SDWA_DWORD, SDWA_WORD = 6, 4
UNUSED_PAD, UNUSED_SEXT, UNUSED_PRESERVE = 0, 1, 2


def row_of(reg: Reg) -> int:
    """The row of a vector register in the wave's record, of a tuple the first; AGPRs are AGPR_ROW rows further."""
    return reg.index + (AGPR_ROW if reg.file is RegFile.AGPR else 0)


def field(inst: Inst, name: str, default: int = 0) -> int:
    """The value of the operand ``name``; ``default`` where the encoding has no such operand."""
    operand = inst.find(name)
    return default if operand is None else operand.value


def names_high_half(operand: Operand | None) -> bool:
    """Of a register, as 16-bit operands may from RDNA 3 on."""
    return operand is not None and operand.kind is OperandKind.REGISTER and operand.value == 1


def is_high_half(inst: Inst, destination: Operand) -> bool:
    """Whether a destination is the upper half of its register, by its own name or by op_sel."""
    selects = inst.op.partial and inst.op.format != "VOP3P"  # there these bits are the sources'
    return bool(selects and field(inst, "src0_modifiers") & DESTINATION_HIGH) \
        or OpFlag.WRITES_HIGH_HALF in inst.op.flags or names_high_half(destination)


class Raw:
    """Bits of one operand before modifiers: vector rows, or a scalar taken when the instruction was put off."""

    def __init__(self, operand: Operand | None, reg: Reg | None, bits: int, context: OperandContext,
                 dpp: Dpp | None) -> None:
        self.dpp = dpp
        self.row = row_of(reg) if reg is not None and reg.file is not RegFile.SGPR else None
        self.constant = operand.value if operand is not None and operand.kind is OperandKind.CONSTANT else None
        self.scalar: Value | None = None
        if self.row is None and self.constant is None and operand is not None:
            self.scalar = read_scalar(operand, max(bits, 32), context)
        self.halves = () if self.scalar is None or bits < 64 else (self.scalar.to(U32), high_half(self.scalar))

    def texts(self) -> list[str]:
        """Of all scalars and literals that it may read."""
        if self.constant is not None:
            return [str(self.constant & (1 << 64) - 1), *(str(self.constant >> at & (1 << 32) - 1) for at in (0, 32))]
        return [] if self.scalar is None else [str(one.ref) for one in (self.scalar, *self.halves)]

    def read(self, strip: LaneStrip, bits: int) -> Value:
        """Unsigned, ``bits`` wide (32 or 64)."""
        type = Type(Kind.UINT, bits)
        if self.constant is not None:
            return strip.literal(type, self.constant)
        if self.scalar is not None:
            return strip.splat(self.scalar)
        assert self.row is not None
        if bits == 64:
            if self.dpp is not None:
                return concat(self.dpp.read(strip, self.row + 1), self.dpp.read(strip, self.row))
            return strip.pair(self.row)
        return self.dpp.read(strip, self.row) if self.dpp is not None else strip.row(self.row)

    def read_half(self, strip: LaneStrip, high: int) -> Value:
        """One dword of a pair, or of more in vector registers."""
        if self.constant is not None:
            return strip.literal(U32, self.constant >> 32 * high)
        if self.scalar is not None:
            return strip.splat(self.halves[high])
        assert self.row is not None
        return strip.row(self.row + high)


def read_scalar(operand: Operand, bits: int, context: OperandContext) -> Value:
    """A scalar register, constant, or special source as an unsigned value of ``bits``."""
    type = Type(Kind.UINT, bits)
    scalars = context.scalars
    if operand.reg is not None:
        value = scalars.read(operand.reg.index, min(operand.reg.dwords, -(-bits // 32)))
    elif operand.kind in (OperandKind.CONSTANT, OperandKind.IMMEDIATE):
        return scalars.ops.constant(type, operand.value)
    elif operand.value in SRC_NULL:
        return scalars.ops.constant(type, 0)
    elif operand.value == SRC_SCC:
        value = scalars.scc()
    elif operand.value in (SRC_VCCZ, SRC_EXECZ):
        value = scalars.read(VCC if operand.value == SRC_VCCZ else EXEC, context.wave_size // 32).eq(0)
    elif operand.value in context.apertures:
        value = context.apertures[operand.value]
        value = value if bits == 64 else low_half(value) if operand.value == SCRATCH_BASE[0] else high_half(value)
    else:
        raise Unsupported(f"source operand {operand.value}")
    return value.to(type)


class SourceReader:
    """One operand of the signature, ready to be read in a strip. Without ``operand``: what ``reg`` holds, of a half its
    ``high`` one."""

    def __init__(self, slot: SignaturePart, operand: Operand | None, reg: Reg | None, inst: Inst,
                 context: OperandContext, dpp: Dpp | None, flushes: bool, high: bool = False) -> None:
        self.type = slot.type
        self.count = slot.count
        self.mixed, self.of_bf16 = slot.mixed, slot.name == "bmix"
        name = operand.name if operand is not None else ""
        self.modifiers = field(inst, f"{name}_modifiers") if name and slot.name != "raw" else 0
        if names_high_half(operand) or operand is None and high:
            self.modifiers |= OP_SEL
        self.by_halves = inst.op.format == "VOP3P" and bool(name)  # elements have modifiers of their own
        self.sdwa = field(inst, f"{name}_sel", SDWA_DWORD) if name else SDWA_DWORD
        self.bits = 64 if max(slot.type.bits * slot.count, 32) > 32 else 32
        self.raw = Raw(operand, reg, self.bits, context, dpp if name == "src0" else None)
        if operand is not None and operand.kind is OperandKind.CONSTANT:
            self.raw.constant = constant_of(inst, operand)
        self.flush = flushes and context.flushes_sources(slot.type)
        self.flush_half = slot.name == "zmix" or flushes and context.flushes_sources(
            F32 if context.mixes_by_f32 else F16)

    def read(self, strip: LaneStrip, element: int = 0) -> Value:
        """The typed value; of packed operands the element for the low (0) or high (1) result."""
        if self.count > 1:
            return self._read_packed(strip, element)
        if self.mixed:
            return self._read_mixed(strip)
        value = self._select_part(self.raw.read(strip, self.bits))
        if self.type.bits == 8 * (self.type.bits // 8) and self.type.bits < self.bits:
            value = value.to(Type(Kind.UINT, self.type.bits))
        return self._finish(value, bool(self.modifiers & NEG), bool(self.modifiers & ABS))

    def _finish(self, value: Value, negate: bool, absolute: bool) -> Value:
        value = with_sign(value, negate, absolute).as_(self.type)
        return flush_denormals(value) if self.flush else value

    def _select_part(self, value: Value) -> Value:
        """What SDWA or op_sel choose of a register."""
        if self.sdwa != SDWA_DWORD:
            return self._sdwa(value)
        halves = self.type.bits * self.count == 16
        return value >> 16 if halves and self.modifiers & OP_SEL else value

    def _sdwa(self, value: Value) -> Value:
        """A byte or half-word, extended to 32 bits by SEXT."""
        bits, place = (16, 16 * (self.sdwa - SDWA_WORD)) if self.sdwa >= SDWA_WORD else (8, 8 * self.sdwa)
        narrow = (value >> place).to(Type(Kind.UINT, bits))
        return (narrow.as_(narrow.type.signed) if self.modifiers & SEXT else narrow).to(U32)

    def _read_packed(self, strip: LaneStrip, element: int) -> Value:
        if self.type.bits == 8:
            return (self._select_part(self.raw.read(strip, 32)) >> 8 * element).to(U8)
        high = bool(self.modifiers & (OP_SEL_HI if element else OP_SEL)) if self.by_halves else bool(element)
        if self.count > 2:
            return self._finish(self.raw.read_half(strip, element), False, False)
        if self.type.bits == 32:
            value = self.raw.read_half(strip, high)
        else:
            value = self.raw.read(strip, 32)
            value = (value >> 16 if high else value).to(U16)
        if not self.by_halves:  # neg and abs are of both
            return self._finish(value, bool(self.modifiers & NEG), bool(self.modifiers & ABS))
        return self._finish(value, bool(self.modifiers & (NEG_HI if element else NEG)), False)

    def _read_mixed(self, strip: LaneStrip) -> Value:
        value = self.raw.read(strip, 32)
        negate, absolute = bool(self.modifiers & NEG), bool(self.modifiers & ABS)
        if not self.modifiers & OP_SEL_HI:
            return self._finish(value, negate, absolute)
        if self.of_bf16:  # a constant is that number, whichever half is named
            high = self.modifiers & OP_SEL and self.raw.constant is None
            return self._finish(value & 0xFFFF0000 if high else value << 16, negate, absolute)
        half = (value >> 16 if self.modifiers & OP_SEL else value).to(U16).as_(F16)
        half = flush_denormals(half) if self.flush_half else half
        return self._finish(half.to(F32).as_(U32), negate, absolute)


class ResultWriter:
    """One vector result of the signature, ready to be written in a strip."""

    def __init__(self, slot: SignaturePart, operand: Operand, inst: Inst, context: OperandContext, dpp: Dpp | None,
                 row: Lanes) -> None:
        assert operand.reg is not None
        self.row = row_of(operand.reg)
        self.type = slot.type
        self.count = slot.count
        self.keeps_high = inst.op.partial
        self.high = is_high_half(inst, operand)
        self.clamp = row.clamps and bool(field(inst, "clamp"))
        self.omod = field(inst, "omod") if context.scales(slot.type) else 0
        self.sdwa = field(inst, "dst_sel", SDWA_DWORD)
        self.unused = field(inst, "dst_unused")
        self.dpp = dpp
        self.flush = row.flushes and context.flushes_results(slot.type)
        self.passes_nan = not context.mode.clamps_nan

    def write(self, strip: LaneStrip, values: tuple[Value, ...]) -> None:
        """``values``: one, or one for each packed element."""
        words = [self._finish(value) for value in values]
        if len(words) > 1 and words[0].type.bits == 32:
            if self.dpp is not None and len(words) == 2:
                strip.write_pair(self.row, self._keep_disabled(strip, concat(words[1], words[0])))
                return
            for number, one in enumerate(words):
                strip.write_row(self.row + number, one)
            return
        word = words[0] if len(words) == 1 else concat(words[1], words[0])
        if word.type.bits == 64:
            strip.write_pair(self.row, self._keep_disabled(strip, word))
        else:
            strip.write_row(self.row, self._keep_disabled(strip, self._merge_result(strip, word)))

    def _keep_disabled(self, strip: LaneStrip, word: Value) -> Value:
        """DPP leaves lanes alone whose source is out of range, or that the masks exclude."""
        writes = None if self.dpp is None else self.dpp.compute_enabled_lanes(strip)
        if writes is None:
            return word
        return select(writes, word, strip.pair(self.row) if word.type.bits == 64 else strip.row(self.row))

    def _finish(self, value: Value) -> Value:
        """Output modifiers, then bits of at least 16."""
        if value.type.kind is Kind.FLOAT:
            value = apply_output_modifiers(value, self.omod, self.clamp, self.passes_nan)
            value = flush_denormals(value) if self.flush else value
        return value.as_(value.type.unsigned)

    def _merge_result(self, strip: LaneStrip, word: Value) -> Value:
        """The whole 32-bit register after a result of 32 bits or less."""
        if self.sdwa != SDWA_DWORD:
            return self._sdwa(strip, word)
        if word.type.bits == 32:
            return word
        if not self.keeps_high:
            return word.to(U32)
        old = strip.row(self.row)
        if self.high:
            return (old & 0xFFFF) | (word.to(U32) << 16)
        return (old & 0xFFFF0000) | word.to(U32)

    def _sdwa(self, strip: LaneStrip, word: Value) -> Value:
        bits, place = (16, 16 * (self.sdwa - SDWA_WORD)) if self.sdwa >= SDWA_WORD else (8, 8 * self.sdwa)
        narrow = word.to(U16 if bits == 16 else U8)
        if self.unused == UNUSED_SEXT:
            return narrow.as_(I16 if bits == 16 else I8).to(U32) << place
        placed = narrow.to(U32) << place
        if self.unused == UNUSED_PAD:
            return placed
        return (strip.row(self.row) & ~(((1 << bits) - 1) << place)) | placed


def with_sign(value: Value, negate: bool, absolute: bool) -> Value:
    """The bits of a source after its modifiers."""
    top = 1 << value.type.bits - 1
    if absolute:
        value = value & (top - 1)
    return value ^ top if negate else value


def apply_output_modifiers(value: Value, omod: int, clamp: bool, passes_nan: bool) -> Value:
    """A float after omod and clamp."""
    if omod:
        value = flush_denormals(value * (2.0, 4.0, 0.5)[omod - 1])
        value = select(value.eq(0.0), 0.0, value)  # "-0 is flushed to +0"
    if not clamp:
        return value
    clamped = clamp_float(value)
    return select(is_nan(value), quiet(value), clamped) if passes_nan else clamped


def clamp_float(value: Value) -> Value:
    """To 0..1; NaN gives 0 (DX10_CLAMP, which compute kernels set). -0 is not below 0 and stays, as LLVM folds it."""
    return select(value >= 0.0, select(value < 1.0, value, 1.0), 0.0)


def register(operand: Operand) -> Reg:
    """The register of an operand that must be one: what the table and the decoder have made sure of."""
    assert operand.reg is not None
    return operand.reg


def present(operand: Operand | None) -> bool:
    """Whether the encoding has the operand, and its field does not say that there is none (saddr off, null)."""
    return operand is not None and operand.kind is not OperandKind.ABSENT


def value_operands(inst: Inst) -> list[Operand]:
    """Sources that carry values, in order; literals of MADMK and MADAK among them."""
    return [operand for operand in inst.operands
            if operand.name in ("src0", "src1", "src2") or (operand.name == "imm" and Access.READ in operand.access)]


def scalar_operands(inst: Inst) -> list[Operand]:
    """Sources of a scalar instruction, in order; SOPK comparisons read their sdst field."""
    return [operand for operand in inst.operands
            if operand.name in ("src0", "src1", "simm16") or (operand.name == "sdst" and operand.access is Access.READ)
            or (operand.name == "imm" and Access.READ in operand.access)]


def destinations(inst: Inst) -> list[Operand]:
    """Operands that are written, in the order of the encoding; those that are read, too, are among them."""
    return [operand for operand in inst.operands if Access.WRITE in operand.access]
