"""Vector instructions that work lane by lane: operands with their modifiers, results with theirs.

In: a wave, an instruction and its Lanes row. Out: the wave after it. All lanes read before any lane is written.
Sources: AMD Instinct MI200 ISA, 6.2 (modifiers), 6.4 (SDWA), 6.6 (DPP), 6.7 (packed).
"""

from __future__ import annotations

import math
import struct
from dataclasses import replace
from typing import Any

from luthier_py.isa import EXEC, M0, MODE, VCC, Access, Inst, Operand, OperandKind, OpFlag, Reg, RegFile, vgpr
from luthier_py.isa.encoding.constants import LITERAL
from luthier_py.isa.encoding.dual import halves
from luthier_py.isa.encoding.instruction import SRC_EXECZ, SRC_NULL, SRC_SCC, SRC_VCCZ
from luthier_py.isa.model.registers import SCC
from luthier_py.isa.semantics import Dual, Lanes, Scalar, SignaturePart
from luthier_py.isa.semantics.algebra import BOOL, F16, F32, Kind, Type, Value
from luthier_py.isa.semantics.crossings import RelativeMove
from luthier_py.isa.semantics.meaning import Situation, Variants
from reference import floats
from reference.algebra import NEAR, NEW_NAN, PythonOps, flushed, modified_float
from reference.wave import LANES, M32, Freedom, Wave

NEG, ABS, OP_SEL, OP_SEL_HI, SEXT = 1, 2, 4, 8, 16  # bits of srcN_modifiers
BOTH = -1
APERTURES = {235: 1 << 48, 236: (1 << 48) + M32, 237: 2 << 48, 238: (2 << 48) + M32}  # as the bench has them


def field(inst: Inst, name: str, default: int = 0) -> int:
    operand = inst.find(name)
    return default if operand is None else operand.value


def raw(wave: Wave, operand: Operand, lane: int, bits: int) -> int:
    """An operand's bits before modifiers, as ``lane`` sees it."""
    if operand.reg is not None:
        value = wave.vector(operand.reg, lane)
    elif operand.kind in (OperandKind.CONSTANT, OperandKind.IMMEDIATE):
        value = operand.value
    elif operand.value in SRC_NULL:
        value = 0
    elif operand.value == SRC_SCC:
        value = wave.scalar(SCC)
    elif operand.value in (SRC_VCCZ, SRC_EXECZ):
        value = int(wave.mask(VCC if operand.value == SRC_VCCZ else EXEC) == 0)
    else:
        value = APERTURES[operand.value] >> (0 if bits == 64 else 32)
    return value & ((1 << bits) - 1)


def vector(wave: Wave, inst: Inst, row: Lanes) -> None:
    _written(wave, inst, row, {lane: _lane(wave, inst, row, lane) for lane in wave.lanes()})


def relative(wave: Wave, inst: Inst, row: RelativeMove) -> None:
    """V_MOVREL and V_SWAPREL: the same instruction with other register numbers, of which there are 256."""
    operands = []
    for operand in inst.operands:
        bits = {"src0": row.source, "vdst": row.target}.get(operand.name)
        if operand.name == "vdst":
            operand = replace(operand, access=operand.access | Access.WRITE)
        if bits is not None and operand.reg is not None and operand.reg.file is RegFile.VGPR:
            offset = (wave.scalar(M0) >> bits[0]) % (1 << bits[1])
            operand = replace(operand, reg=vgpr((operand.reg.index + offset) % 256))
        operands.append(operand)
    vector(wave, Inst(inst.op, inst.fields, inst.literal, inst.raw, tuple(operands)), row.row)


def dual(wave: Wave, inst: Inst, row: Dual) -> None:
    """RDNA 3 ISA, 7.6: both read before either writes."""
    pairs = []
    for half, each in zip(halves(inst), row.rows, strict=True):
        alone = in_situation(wave, half, each) if isinstance(each, Variants) else each
        pairs.append((half, alone, {lane: _lane(wave, half, alone, lane) for lane in wave.lanes()}))
    for half, alone, results in pairs:
        _written(wave, half, alone, results)


def in_situation(wave: Wave, inst: Inst, row: Variants) -> Lanes | Scalar:
    keeps_finite = bool(wave.scalar(MODE) >> 23 & 1)  # FP16_OVFL
    return row.of(Situation(lambda name: field(inst, name), wave.fnuz_floats, keeps_finite, wave.ieee, wave.numbers_win,
                            wave.first_nan, wave.half_products_flush,
                            wave.target is not None and wave.target.name.startswith("gfx12")))


def _written(wave: Wave, inst: Inst, row: Lanes, results: dict[int, Lane]) -> None:
    for number, (slot, operand) in enumerate(_targets(inst, row)):
        if (slot.type is BOOL or slot.name == "exec") and _writes_mask(inst, slot, operand):
            bits = sum((outputs[number][0] & 1) << lane for lane, (outputs, _, _) in results.items())
            wave.set_mask(EXEC if slot.name == "exec" else _mask_register(operand), bits)
        if slot.type is BOOL or slot.name == "exec":
            continue
        assert operand is not None and operand.reg is not None
        for lane, (outputs, notes, enabled) in results.items():
            if enabled:
                _write(wave, inst, slot, operand.reg, lane, outputs[number], notes)


def _writes_mask(inst: Inst, slot: SignaturePart, operand: Operand | None) -> bool:
    """V_CMPX has no mask but EXEC from RDNA on."""
    return slot.name == "exec" or operand is not None or bool(inst.op.implicit_writes.sgpr >> VCC & 1)


def _mask_register(operand: Operand | None) -> int:
    return VCC if operand is None or operand.reg is None else operand.reg.index


def _targets(inst: Inst, row: Lanes) -> list[tuple[SignaturePart, Operand | None]]:
    operands = iter([operand for operand in inst.operands if Access.WRITE in operand.access])
    return [(slot, None if slot.name == "exec" else next(operands, None)) for slot in row.signature.results]


Lane = tuple[list[list[int]], frozenset[str], bool]


def _lane(wave: Wave, inst: Inst, row: Lanes, lane: int) -> Lane:
    """The bits of each result (one for each packed element), what is free in them, and whether DPP lets it write."""
    ops = PythonOps()
    ops.lane = lane
    source_lane, enabled = dpp_lane(wave, inst, lane)
    clamps = bool(field(inst, "clamp"))
    compute = row.saturating if clamps and row.saturating is not None else row.compute
    packed = row.packed
    taken = [_sources(wave, inst, row, ops, lane, source_lane, element if packed else None)
             for element in range(2 if packed else 1)]
    computed = [compute(*sources) for sources in taken]
    outputs = [list(x) for x in zip(*(x if isinstance(x, tuple) else (x,) for x in computed), strict=True)]
    if row.whole:  # one result of several elements
        outputs = [[value for values in outputs for value in values]]
    finished = [[_finished(wave, inst, row, value) for value in values] for values in outputs]
    return finished, frozenset(ops.notes), enabled


def _sources(wave: Wave, inst: Inst, row: Lanes, ops: PythonOps, lane: int, source_lane: int | None,
             element: int | None) -> list[Any]:
    operands = iter([operand for operand in inst.operands if operand.name in ("src0", "src1", "src2")
                     or operand.name == "imm" and Access.READ in operand.access])
    taken: list[Any] = []
    for slot in row.signature.sources:
        operand = None if slot.special else next(operands, None)
        if slot.type is BOOL:
            taken.append(ops.value(BOOL, wave.mask(_mask_register(operand)) >> lane))
            continue
        type = slot.type if slot.type.bits else row.signature.results[0].type
        bits = max(32, type.bits * slot.count)
        if operand is None:  # the destination's old value
            upper = type.bits * slot.count < 32 and _is_upper_half(inst, _old(inst))
            bits_read = wave.vector(_old(inst), lane) >> 16 * upper
        elif operand.name == "src0" and OpFlag.DPP in inst.op.flags:
            bits_read = 0 if source_lane is None else raw(wave, operand, source_lane, bits)
        else:
            bits_read = raw(wave, operand, lane, bits)
        name = "" if operand is None else operand.name
        value = _Source(inst, name, slot, type, row.flushes and wave.flushes(type.bits), _loses_halves(wave, inst))
        if slot.count > 1 and element is None:
            taken.append(tuple(value.element(ops, bits_read, i) for i in range(slot.count)))
        else:
            taken.append(value.element(ops, bits_read, element or 0))
    return taken


def _loses_halves(wave: Wave, inst: Inst) -> bool:
    """Whether a denormal half is a zero to a MIX instruction: always to the older ones, to others of gfx9 where MODE
    flushes f32, to later ones where it flushes f16."""
    assert wave.target is not None
    return inst.op.base.startswith("V_MAD_MIX") or wave.flushes(32 if wave.target.name.startswith("gfx9") else 16)


def _old(inst: Inst) -> Reg:
    reg = next(operand.reg for operand in inst.operands if operand.name == "vdst")
    assert reg is not None
    return reg


def _code(inst: Inst, name: str) -> int:
    """Low bits of a source's field; these begin at bits 32, 41 and 50."""
    return int.from_bytes(inst.raw[:8], "little") >> 32 + 9 * int(name[-1]) & 0xFF


def _mixed_constant(inst: Inst, name: str) -> int | None:
    """The bits as f32 of an inline constant or a literal."""
    if inst[name].kind is not OperandKind.CONSTANT:
        return None
    code = _code(inst, name)
    if code == LITERAL:
        return int.from_bytes(inst.raw[8:], "little")
    powers = {240: 0.5, 241: -0.5, 242: 1, 243: -1, 244: 2, 245: -2, 246: 4, 247: -4, 248: 0.5 / math.pi}
    if code in powers:
        return int.from_bytes(struct.pack("<f", powers[code]), "little")
    return (code - 128 if code <= 192 else 192 - code) & M32


class _Source:
    """What modifiers make of an operand's bits."""

    def __init__(self, inst: Inst, name: str, slot: SignaturePart, type: Type, flushes: bool, of_half: bool) -> None:
        self.slot, self.type, self.flushes_half = slot, type, of_half
        self.modifiers = field(inst, f"{name}_modifiers") if name and slot.name != "raw" else 0
        if name and inst[name].kind is OperandKind.REGISTER and inst[name].value:  # a high half, from RDNA 3 on
            self.modifiers |= OP_SEL
        self.select = field(inst, f"{name}_sel", 6) if name else 6
        self.flushes = flushes and type.kind is Kind.FLOAT
        self.plain = not name or inst.op.format != "VOP3P"
        self.constant = _mixed_constant(inst, name) if slot.mixed else None
        self.twice = (slot.count == 2 and type.bits == 32 and not self.plain
                      and inst[name].kind is OperandKind.CONSTANT and _code(inst, name) == LITERAL)

    def element(self, ops: PythonOps, bits: int, number: int) -> Value:
        width, negate, absolute = self.type.bits, self.modifiers & NEG, self.modifiers & ABS
        if width == 8 and self.slot.count > 1:  # bytes of a half
            half = self._selected(bits) if self.select != 6 else bits >> 16 if self.modifiers & OP_SEL else bits
            bits = half >> 8 * number
            negate = absolute = 0
        elif self.slot.count > 1:
            high = number if self.plain else bool(self.modifiers & (OP_SEL_HI if number else OP_SEL))
            high = 0 if self.twice else high
            bits = bits >> width * high
            if not self.plain:
                negate, absolute = self.modifiers & (ABS if number else NEG), 0  # ABS is neg_hi there
        elif self.slot.name in ("mix", "zmix") and self.modifiers & OP_SEL_HI:
            half = (bits >> 16 if self.modifiers & OP_SEL else bits) & 0xFFFF
            bits = floats.resized(flushed(half, F16.bits) if self.flushes_half else half, F16.bits, F32.bits)
        elif self.slot.name == "bmix" and self.modifiers & OP_SEL_HI:
            bits = bits >> 16 << 16 if self.modifiers & OP_SEL and self.constant is None else bits << 16
        elif self.slot.mixed and self.constant is not None:
            bits = self.constant
        elif self.select != 6:
            bits = self._selected(bits)
        elif width == 16 and self.modifiers & OP_SEL:
            bits >>= 16
        bits &= (1 << width) - 1
        if absolute:
            bits &= floats.sign_bit(width) - 1
        if negate:
            bits ^= floats.sign_bit(width)
        return ops.value(self.type, flushed(bits, width) if self.flushes else bits)

    def _selected(self, bits: int) -> int:
        """SDWA: bytes 0 to 3, words 4 and 5."""
        width, place = (8, 8 * self.select) if self.select < 4 else (16, 16 * (self.select - 4))
        part = bits >> place & ((1 << width) - 1)
        return part - (1 << width) if self.modifiers & SEXT and part >> width - 1 else part


def _finished(wave: Wave, inst: Inst, row: Lanes, value: Value) -> int:
    if value.type.kind is not Kind.FLOAT:
        return value.ref
    width = value.type.bits
    scales = wave.flushes(width) and not wave.ieee  # neither denormals nor IEEE (CDNA 3 ISA, 6.2.2)
    omod = field(inst, "omod") if scales else 0
    bits = modified_float(PythonOps(), value.ref, width, omod, row.clamps and bool(field(inst, "clamp")))
    return flushed(bits, width) if row.flushes and wave.flushes(width) else bits


def _write(wave: Wave, inst: Inst, slot: SignaturePart, reg: Reg, lane: int, values: list[int], notes: frozenset[str]
           ) -> None:
    width = slot.type.bits
    word = sum(value << width * i for i, value in enumerate(values))
    shift = 0
    select = field(inst, "dst_sel", 6)
    if select != 6:
        shift = 8 * select if select < 4 else 16 * (select - 4)
        word = _sdwa(word, 8 if select < 4 else 16, shift, field(inst, "dst_unused"), wave.vector(reg, lane))
    elif width * slot.count < 32 and inst.op.partial:
        shift = 16 * _is_upper_half(inst, reg)
        word = wave.vector(reg, lane) & ~(0xFFFF << shift) | word << shift
    wave.set_vector(reg, lane, word)
    if slot.type.kind is Kind.FLOAT and notes:
        for dword in range(reg.dwords):
            free = _freedom(notes, slot, shift, dword)
            wave.free[reg.file, reg.index + dword, lane] = replace(
                free, extended=select == 4 and field(inst, "dst_unused") == 1)


def _is_upper_half(inst: Inst, reg: Reg) -> bool:
    """Whether a half that an instruction writes is the upper one."""
    high = "MIXHI" in inst.op.base or "MIX" not in inst.op.base and field(inst, "src0_modifiers") & OP_SEL_HI
    return inst.op.partial and bool(
        high or any(o.reg == reg and o.value for o in inst.operands if Access.WRITE in o.access))


def _freedom(notes: frozenset[str], slot: SignaturePart, shift: int, dword: int) -> Freedom:
    """Of one dword of a result; BOTH halves where two f16 share it."""
    if slot.type.bits == 16 and slot.count > 1:
        return Freedom(notes, 16, BOTH)
    return Freedom(notes, slot.type.bits, 32 * dword if slot.type.bits == 64 else shift)


def _sdwa(word: int, width: int, shift: int, unused: int, old: int) -> int:
    """dst_sel and dst_unused: 0 zeros, 1 sign above (zeros below), 2 the old bits (MI200 ISA, 13.3.8)."""
    mask = (1 << width) - 1
    part = word & mask
    if unused == 1:
        return (part - (1 << width) if part >> width - 1 else part) << shift & M32
    return part << shift | (old & ~(mask << shift) if unused == 2 else 0)


def dpp_lane(wave: Wave, inst: Inst, lane: int) -> tuple[int | None, bool]:
    """The lane that src0 comes from (None: it reads 0), and whether the destination is written."""
    if OpFlag.DPP not in inst.op.flags:
        return lane, True
    if inst.find("dpp8") is not None:  # fi is a code of src0 there: 0xe9 without, 0xea with
        source = lane & ~7 | field(inst, "dpp8") >> 3 * (lane & 7) & 7
        return source if wave.active(source) or field(inst, "fi") == 0xEA else None, True
    source = moved(field(inst, "dpp_ctrl"), lane)
    if source is not None and not wave.active(source) and not field(inst, "fi"):
        source = None
    row, bank = lane // 16, lane % 16 // 4
    masked = field(inst, "row_mask") >> row & field(inst, "bank_mask") >> bank & 1
    return source, bool(masked and (source is not None or field(inst, "bound_ctrl")))


def moved(control: int, lane: int) -> int | None:
    """DPP_CTRL (MI200 ISA, 13.3.9), a row being 16 lanes."""
    row, place, amount = lane & ~15, lane & 15, control & 15
    if control < 0x100:  # quad_perm
        return lane & ~3 | control >> 2 * (lane & 3) & 3
    if control < 0x130 or control >= 0x150:
        kind = control >> 4
        place = {0x10: place + amount, 0x11: place - amount, 0x12: (place - amount) % 16, 0x15: amount,
                 0x16: place ^ amount}[kind]
        return row + place if 0 <= place < 16 else None
    moved = {
        0x130: lane + 1, 0x134: (lane + 1) % LANES, 0x138: lane - 1, 0x13C: (lane - 1) % LANES,
        0x140: row + 15 - place, 0x141: row | place & 8 | 7 - place % 8, 0x142: row - 1, 0x143: 31 if lane > 31 else -1,
    }[control]  # fmt: skip
    return moved if 0 <= moved < LANES else None


def same(free: Freedom | None, ours: int, theirs: int, whole: tuple[int, int]) -> bool:
    """Whether two results are equal where the manual leaves nothing open; ``whole``: of 64 bits, both dwords."""
    if ours == theirs or free is None:
        return ours == theirs
    if free.shift == BOTH:
        halves = ((ours >> at & 0xFFFF, theirs >> at & 0xFFFF) for at in (0, 16))
        return all(_same_float(free.notes, 16, a, b) for a, b in halves)
    if free.width == 64:
        return _same_float(free.notes, 64, *whole)
    if free.extended:
        above = M32 << free.width & M32
        ours, theirs = (word ^ above * (word >> free.width - 1 & 1) for word in (ours, theirs))
    mask = ((1 << free.width) - 1) << free.shift
    if (ours ^ theirs) & ~mask & M32:
        return False
    return _same_float(free.notes, free.width, (ours & mask) >> free.shift, (theirs & mask) >> free.shift)


def _same_float(notes: frozenset[str], width: int, a: int, b: int) -> bool:
    if a == b:
        return True
    if NEW_NAN in notes and floats.is_nan(a, width) and floats.is_nan(b, width):
        return True
    near = abs(a - b) <= 1 and not floats.is_nan(a, width) and not floats.is_nan(b, width)
    return NEAR in notes and near and floats.negative(a, width) == floats.negative(b, width)
