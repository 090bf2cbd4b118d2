"""Elements of formatted buffers and images: what is loaded and stored, and how numbers are converted on the way.

In: the field of an element, or a component of a register. Out: rows, and functions of values. Sources: RDNA 3 ISA, 9.2
and 9.3 (components, D16, mismatches of both), 10.4.1 (what registers hold); RDNA 4 ISA, 9.3; CDNA 3 ISA, 9.1.4.
Normalized numbers are those of Direct3D 11.3's functional specification, 3.2.3, which no manual of AMD's contradicts:
they are rounded to the nearest, ties to the even one; so is where floats that are too large go, for which "conversion
of float32 to float16 uses truncation" leaves the largest number.

``width`` and ``numbers`` are values too (u32): of untyped buffers they come from the resource.
"""

from __future__ import annotations

from luthier_py.base.records import dataclass
from luthier_py.isa.model.element_formats import NumberFormat
from luthier_py.isa.semantics.algebra import (
    F16,
    F32,
    F64,
    I32,
    U16,
    U32,
    Type,
    Value,
    is_nan,
    maximum,
    rint,
    select,
)
from luthier_py.isa.semantics.conversions import toward_zero_f16
from luthier_py.isa.semantics.meaning import declare


@dataclass(frozen=True, slots=True)
class FormatLoad:
    """Components X, or X to W, of an element to registers, converted."""

    components: int
    narrow: bool = False   # D16: to 16 bits, two in a register, if the target packs them
    high: bool = False     # of one: into the high half
    typed: bool = False    # the instruction says the format, and nothing is selected; else the resource does
    status: bool = False   # as in Load
    to_lds: bool = False
    whole: bool = False    # of one to 16 bits: the other half becomes 0


@dataclass(frozen=True, slots=True)
class FormatStore:
    """As FormatLoad. Components of the format that are not given are 0, on RDNA 4 the first one."""

    components: int
    narrow: bool = False
    high: bool = False
    typed: bool = False
    status: bool = False


LARGEST_INTEGER = 16
"""Bits of fields up to which D16 loads have integers: what becomes of larger ones no manual says."""


def decode_field(field: Value, width: Value, numbers: Value, narrow: bool) -> Value:
    """A field of ``width`` bits (0: there is none, which gives 0), as it is in the lowest of 32 or 16 bits (u32)."""
    signed = _sign_extend(field, width)
    most, least = _most(width), _most(width) >> 1
    if narrow:
        unorm = _norm(field.to(F64), most, F64).to(F16).as_(U16).to(U32)
        snorm = _not_below(_norm(signed.to(F64), least, F64), -1.0).to(F16).as_(U16).to(U32)
        uscaled, sscaled = (x.to(F32).to(F16).as_(U16).to(U32) for x in (field, signed))
        number = select(width.eq(32), toward_zero_f16(field.as_(F32)).as_(U16).to(U32), _half(field, width))
    else:
        unorm = _norm(field.to(F32), most, F32).as_(U32)
        snorm = _not_below(_norm(signed.to(F32), least, F32), -1.0).as_(U32)
        uscaled, sscaled = (x.to(F32).as_(U32) for x in (field, signed))
        wide = _half(field, width).to(U16).as_(F16).to(F32).as_(U32)
        number = select(width.eq(32), field, wide)
    integer = signed.as_(U32) & 0xFFFF if narrow else signed.as_(U32)
    found = _by_numbers(numbers, (unorm, snorm, uscaled, sscaled, field, integer, number))
    return select(width.eq(0), 0, found)


def encode_field(component: Value, width: Value, numbers: Value, narrow: bool) -> Value:
    """The field of ``width`` bits for what is in the lowest of 32 or 16 bits (u32). Integers must fit, see `fits`."""
    single = component.to(U16).as_(F16).to(F32) if narrow else component.as_(F32)
    wide = single.to(F64)
    most = _most(width)
    unorm = rint(_between(wide, 0.0) * most.to(F64)).to(U32)
    snorm = rint(_between(wide, -1.0) * (most >> 1).to(F64)).to(I32).as_(U32)
    half = component & 0xFFFF if narrow else toward_zero_f16(single).as_(U16).to(U32)
    number = select(width.eq(32), single.as_(U32), select(width.eq(16), half, _convert_to_unsigned_float(half, width)))
    given = _integer(component, numbers, narrow)
    return _by_numbers(numbers, (unorm, snorm, given, given, given, given, number)) & most


def fits(component: Value, width: Value, numbers: Value, narrow: bool) -> Value:
    """Whether it can be stored: as an integer without loss, as what is no scaled integer."""
    given = _integer(component, numbers, narrow)
    as_signed = _sign_extend(given & _most(width), width).as_(U32).eq(given)
    as_unsigned = (given & _most(width)).eq(given)
    integer = select(numbers.eq(NumberFormat.SINT), as_signed.to(U32), as_unsigned.to(U32))
    scaled = numbers.eq(NumberFormat.USCALED) | numbers.eq(NumberFormat.SSCALED)
    is_integer = numbers.eq(NumberFormat.SINT) | numbers.eq(NumberFormat.UINT)
    return width.eq(0) | ~scaled & (~is_integer | integer.ne(0))


def one(numbers: Value, narrow: bool) -> Value:
    """What a component is for which the resource selects 1."""
    is_integer = numbers.eq(NumberFormat.SINT) | numbers.eq(NumberFormat.UINT)
    return select(is_integer, numbers.lift(1), 0x3C00 if narrow else 0x3F800000)


def _by_numbers(numbers: Value, results: tuple[Value, ...]) -> Value:
    found = results[-1]
    for number, result in enumerate(results[:-1]):
        found = select(numbers.eq(number), result, found)
    return found


def _most(width: Value) -> Value:
    """All bits of a field; 1 of one without bits, so that it divides."""
    return select(width.eq(0), 1, width.lift(0xFFFFFFFF) >> ((32 - width) & 31))


def _sign_extend(field: Value, width: Value) -> Value:
    unused = (32 - width) & 31
    return (field << unused).as_(I32) >> unused.as_(I32)


def _norm(number: Value, most: Value, type: Type) -> Value:
    return number / maximum(most, 1).to(type)


def _not_below(a: Value, least: float) -> Value:
    return select(a < least, least, a)


def _between(a: Value, least: float) -> Value:
    clamped = select(a > least, select(a < 1.0, a, 1.0), least)
    return select(is_nan(a), 0.0, clamped)


def _half(field: Value, width: Value) -> Value:
    """A float of 10, 11 or 16 bits as one of 16: those have no sign, and so many bits of the mantissa less."""
    return field << select(width.eq(10), 5, select(width.eq(11), width.lift(4), 0))


def _convert_to_unsigned_float(half: Value, width: Value) -> Value:
    """f16 as a float without a sign: what is below 0 becomes 0, a NaN stays one."""
    missing = select(width.eq(10), width.lift(5), 4)
    magnitude = half & 0x7FFF
    nan = magnitude > 0x7C00
    kept = select(half.ne(magnitude) & ~nan, 0, magnitude >> missing)
    return select(nan, _most(width), kept)


def _integer(component: Value, numbers: Value, narrow: bool) -> Value:
    if not narrow:
        return component
    low = component & 0xFFFF
    return select(numbers.eq(NumberFormat.SINT), (low << 16).as_(I32) >> 16, low.as_(I32)).as_(U32)


_COMPONENTS = {"X": 1, "XY": 2, "XYZ": 3, "XYZW": 4}
for _typed, _prefix in (False, ""), (True, "T"):
    for _word, _count in _COMPONENTS.items():
        for _narrow, _infix in (False, ""), (True, "D16_"):
            declare(f"{_prefix}BUFFER_LOAD_FORMAT_{_infix}{_word}", FormatLoad(_count, _narrow, typed=_typed))
            declare(f"{_prefix}BUFFER_STORE_FORMAT_{_infix}{_word}", FormatStore(_count, _narrow, typed=_typed))
            if not _typed:
                declare(f"BUFFER_LOAD_FORMAT_{_infix}{_word}_TFE", FormatLoad(_count, _narrow, status=True))
                declare(f"BUFFER_STORE_FORMAT_{_infix}{_word}_TFE", FormatStore(_count, _narrow, status=True))
for _status, _suffix in (False, ""), (True, "_TFE"):
    declare(f"BUFFER_LOAD_FORMAT_D16_HI_X{_suffix}", FormatLoad(1, True, True, status=_status))
    declare(f"BUFFER_STORE_FORMAT_D16_HI_X{_suffix}", FormatStore(1, True, True, status=_status))
declare("BUFFER_LOAD_FORMAT_X_LDS", FormatLoad(1, to_lds=True))
