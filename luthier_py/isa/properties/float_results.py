"""Which numbers of floating point an instruction makes, and of which: where each lies, in which format.

In: an instruction. Out: a :class:`FloatResult` for each number that a lane gets; of packed and dual ones several.
Sources: AMD Instinct MI200 ISA, 6.2 (operands, SDWA, op_sel) and 7 (matrices); RDNA 3 ISA, 7.2 and 7.6. Invariant: what
is said of a source is what the instruction takes of it in the same lane; where that comes from other lanes (DPP,
matrices), or is no float of these formats or more than three of them (conversions, dot products), ``sources`` is None.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from luthier_py.base.records import dataclass
from luthier_py.isa.encoding.dual import halves
from luthier_py.isa.encoding.instruction import Access, Inst, Operand, OperandKind, OpFlag, OpInfo
from luthier_py.isa.model.registers import Reg
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.algebra import Kind
from luthier_py.isa.semantics.meaning import Dual, Lanes, Scalar, SignaturePart, Variants
from luthier_py.isa.semantics.operand_parts import OP_SEL, OP_SEL_HI, constant_of, part_of
from luthier_py.isa.semantics.readers.composition import Composition, composition

NEG, ABS, NEG_HI = 1, 2, 2  # of a source's modifiers (LLVM, SISrcMods); NEG_HI where elements have their own
MOST_SOURCES = 3
_VALUES = ("src0", "src1", "src2", "imm")
_SDWA_WORDS = {4: 0, 5: 16, 6: 0}


class FloatFormat(Enum):
    """Bits, and how many of them are the mantissa."""

    F16 = (16, 10)
    BF16 = (16, 7)
    F32 = (32, 23)
    F64 = (64, 52)

    @property
    def bits(self) -> int:
        return self.value[0]

    @property
    def mantissa_bits(self) -> int:
        return self.value[1]

    @property
    def infinity(self) -> int:
        """Its bits: an exponent of ones."""
        return (1 << self.bits - 1) - (1 << self.mantissa_bits)


@dataclass(frozen=True, slots=True)
class FloatPart:
    """A number in an operand. ``place``: registers, from whose bit ``first_bit`` on it lies, or a constant's bits."""

    format: FloatFormat
    place: Reg | int
    first_bit: int = 0
    negate: bool = False
    absolute: bool = False


@dataclass(frozen=True, slots=True)
class FloatResult:
    """One number that an instruction makes.

    ``terms``: of a sum of two, which sources each is the product of; None for what is no sum, or is changed behind it
    (clamp, omod). ``pole``: of finite sources it may be infinite exactly, as 1 / 0 is."""

    result: FloatPart
    sources: tuple[FloatPart, ...] | None
    terms: tuple[frozenset[int], frozenset[int]] | None = None
    pole: bool = False


def ends_division(op: OpInfo) -> bool:
    """Whether it gives the quotient (src0) of a division in steps its special cases, by denominator and numerator."""
    return op.base.startswith("V_DIV_FIXUP")


def float_results(inst: Inst) -> tuple[FloatResult, ...] | None:
    """Empty for what makes no floats in registers; None where it does, but where they lie is not known here."""
    row = find_meaning(inst.op)
    if isinstance(row, Dual):
        found = [_of_row(half, alone) for half, alone in zip(halves(inst), row.rows, strict=True)]
        return None if None in found else tuple(each for part in found if part for each in part)
    if OpFlag.MATRIX in inst.op.flags:
        return _of_matrix(inst, getattr(row, "outcome", ""))
    return _of_row(inst, row)


def _of_row(inst: Inst, row: object) -> tuple[FloatResult, ...] | None:
    row = row.typical if isinstance(row, Variants) else row
    if not isinstance(row, (Lanes, Scalar)) or not any(_is_float(slot) for slot in row.signature.results):
        return ()
    slot, operand = row.signature.results[0], inst.find("vdst") or inst.find("sdst")
    if not _is_float(slot) or operand is None or operand.reg is None:
        return None
    elements = composition(row)[0]
    places = [_result_part(inst, operand, slot, number) for number in range(slot.count)]
    if len(elements) != len(places):
        return None
    mapped = isinstance(row, Lanes) and row.packed
    return tuple(_result(inst, row, made, place, number, mapped)
                 for number, (made, place) in enumerate(zip(elements, places, strict=True)) if place is not None)


def _is_float(slot: SignaturePart) -> bool:
    return slot.type.kind is Kind.FLOAT


def _result(
    inst: Inst, row: Lanes | Scalar, made: Composition, place: FloatPart, number: int, mapped: bool
) -> FloatResult:
    changed = any(_field(inst, name) for name in ("clamp", "omod"))
    taken = sorted(made.sources)
    slots = _bind_operands(inst, row)
    used = [each for each in taken if _is_float(row.signature.sources[each])]
    used = used[1:] if ends_division(inst.op) else used  # its special cases hang on denominator and numerator
    sources = [_source_part(inst, slots[each], row.signature.sources[each], number if mapped else None)
               for each in used]
    known = tuple(each for each in sources if each is not None)
    if not known or len(known) != len(used) or len(known) > MOST_SOURCES or OpFlag.DOT in inst.op.flags:
        return FloatResult(place, None, None, made.pole)
    terms = made.terms
    if terms is not None and (changed or not terms[0] | terms[1] <= {*used}):
        terms = None
    renumbered = terms and tuple(frozenset(used.index(each) for each in term) for term in terms)
    return FloatResult(place, known, renumbered or None, made.pole)  # type: ignore[arg-type]


def _bind_operands(inst: Inst, row: Lanes | Scalar) -> list[Operand | None]:
    """The operand of each source of the signature; one that the encoding has not is the destination's old value."""
    given = iter([operand for operand in inst.operands
                  if operand.name in _VALUES and (operand.name != "imm" or Access.READ in operand.access)])
    old = inst.find("vdst") or inst.find("sdst")
    return [None if slot.special else next(given, old) for slot in row.signature.sources]


def _field(inst: Inst, name: str) -> int:
    operand = inst.find(name)
    return 0 if operand is None else operand.value


def _source_part(inst: Inst, operand: Operand | None, slot: SignaturePart, element: int | None) -> FloatPart | None:
    """``element``: of a packed instruction. None where the lane's number is not known."""
    if operand is None or operand.kind not in (OperandKind.REGISTER, OperandKind.CONSTANT):
        return None
    if slot.count > 1 and element is None or OpFlag.DPP in inst.op.flags and operand.name == "src0":
        return None
    modifiers = _field(inst, f"{operand.name}_modifiers")
    if element is not None:
        return _make_packed_part(inst, operand, slot, element, modifiers)
    kind, first = _format(slot), 0
    if slot.mixed and modifiers & OP_SEL_HI:
        kind, first = FloatFormat.BF16 if slot.name == "bmix" else FloatFormat.F16, 16 * bool(modifiers & OP_SEL)
    elif (part := part_of(inst, operand)) is not None:
        if part[1] != kind.bits:
            return None
        first = part[0]
    negate, absolute = bool(modifiers & NEG), bool(modifiers & ABS)
    if operand.kind is OperandKind.CONSTANT:
        return FloatPart(kind, constant_of(inst, operand) >> first & (1 << kind.bits) - 1, 0, negate, absolute)
    assert operand.reg is not None
    return FloatPart(kind, _dwords(operand.reg, 0, kind), first, negate, absolute)


def _make_packed_part(inst: Inst, operand: Operand, slot: SignaturePart, element: int, modifiers: int) -> FloatPart:
    kind = _format(slot)
    high = bool(modifiers & (OP_SEL_HI if element else OP_SEL)) if inst.op.format == "VOP3P" else bool(element)
    if operand.name not in _VALUES:
        high = bool(element)
    first = kind.bits * high
    negate = bool(modifiers & (NEG_HI if element else NEG))
    if operand.kind is OperandKind.CONSTANT:
        return FloatPart(kind, operand.value >> first & (1 << kind.bits) - 1, 0, negate)
    assert operand.reg is not None
    if kind.bits == 32:
        return FloatPart(kind, _dwords(operand.reg, int(high), kind), 0, negate)
    return FloatPart(kind, _dwords(operand.reg, 0, kind), first, negate)


def _format(slot: SignaturePart) -> FloatFormat:
    return {16: FloatFormat.F16, 32: FloatFormat.F32, 64: FloatFormat.F64}[slot.type.bits]


def _dwords(reg: Reg, first: int, kind: FloatFormat) -> Reg:
    return Reg(reg.file, reg.index + first, max(kind.bits // 32, 1))


def _result_part(inst: Inst, operand: Operand, slot: SignaturePart, element: int) -> FloatPart | None:
    """None where a part of a register that SDWA chooses is no whole number."""
    kind, reg = _format(slot), operand.reg
    assert reg is not None
    if kind.bits > 16:
        return FloatPart(kind, _dwords(reg, element, kind))
    if slot.count > 1:
        return FloatPart(kind, reg, kind.bits * element)
    chosen = inst.find("dst_sel")
    if chosen is not None:
        return FloatPart(kind, reg, _SDWA_WORDS[chosen.value]) if chosen.value in _SDWA_WORDS else None
    selects = inst.op.partial and inst.op.format != "VOP3P"
    high = selects and _field(inst, "src0_modifiers") & OP_SEL_HI
    return FloatPart(kind, reg, 16 * bool(high or operand.value or OpFlag.WRITES_HIGH_HALF in inst.op.flags))


def _of_matrix(inst: Inst, outcome: str) -> tuple[FloatResult, ...] | None:
    operand, kind = inst.find("vdst"), {"f32": FloatFormat.F32, "f64": FloatFormat.F64}.get(outcome)
    if outcome.startswith("i"):
        return ()
    if kind is None or operand is None or operand.reg is None:
        return None
    return tuple(_of_dwords(operand.reg, kind))


def _of_dwords(reg: Reg, kind: FloatFormat) -> Iterator[FloatResult]:
    for first in range(0, reg.dwords, kind.bits // 32):
        yield FloatResult(FloatPart(kind, _dwords(reg, first, kind)), None)
