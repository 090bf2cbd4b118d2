"""Vector ALU on floats: arithmetic, minimum and maximum, division steps, exponents, conversions, packed.

In: one lane's operands, with abs and neg applied. Out: the result before clamp and omod.
Source: AMD Instinct MI200 ISA, 12.7 to 12.12. Assumed: round to nearest even, IEEE mode and
DX10_CLAMP set, as compute kernels have them. The sign of a NaN that an operation makes is the host's.
"""

from __future__ import annotations

from functools import cache

from luthier_py.isa.semantics.algebra import (
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    Prim,
    Type,
    Value,
    ceil,
    concat,
    floor,
    fma,
    is_nan,
    maximum,
    minimum,
    rint,
    select,
    sqrt,
    trunc,
    unary,
    unordered,
)
from luthier_py.isa.semantics.meaning import lanes

_TYPES = {"F16": F16, "F32": F32, "F64": F64}


def quiet(a: Value) -> Value:
    """A signalling NaN made quiet; other values as they are."""
    mantissa = {16: 10, 32: 23, 64: 52}[a.type.bits]
    bits = a.as_(a.type.unsigned)
    return select(is_nan(a), bits | (1 << mantissa - 1), bits).as_(a.type)


def _signalling(a: Value) -> Value:
    mantissa = {16: 10, 32: 23, 64: 52}[a.type.bits]
    return is_nan(a) & ((a.as_(a.type.unsigned) >> mantissa - 1) & 1).eq(0)


def _ieee(a: Value, b: Value, ordered: Value) -> Value:
    """minNum and maxNum of IEEE 754-2008: a signalling NaN wins, quiet ones lose."""
    number = select(is_nan(a), b, select(is_nan(b), a, ordered))
    return select(_signalling(a), quiet(a), select(_signalling(b), quiet(b), number))


def _sign(a: Value) -> Value:
    return (a.as_(a.type.unsigned) >> a.type.bits - 1).ne(0)


def fmin(a: Value, b: Value) -> Value:
    """-0 is less than +0."""
    return _ieee(a, b, select((a < b) | (a.eq(b) & _sign(a)), a, b))


def fmax(a: Value, b: Value) -> Value:
    return _ieee(a, b, select((b < a) | (a.eq(b) & _sign(b)), a, b))


def _med3(a: Value, b: Value, c: Value) -> Value:
    least = fmin(fmin(a, b), c)
    middle = fmax(fmin(a, b), fmin(fmax(a, b), c))
    return select(unordered(a, b) | is_nan(c), least, middle)


def _mad(a: Value, b: Value, c: Value) -> Value:
    """Two roundings."""
    return a * b + c


def _zero_wins(a: Value, b: Value) -> Value:
    return select(a.eq(0.0) | b.eq(0.0), 0.0, a * b)


def _fract(a: Value) -> Value:
    below_one = {16: 0x3BFF, 32: 0x3F7FFFFF, 64: 0x3FEFFFFFFFFFFFFF}[a.type.bits]
    limit = a.ops.constant(a.type.unsigned, below_one).as_(a.type)
    fraction = a - floor(a)
    return select(fraction > limit, limit, fraction)


for _name, _type in _TYPES.items():
    _t = _name.lower()
    _one, _two, _three = f"{_t} -> {_t}", f"{_t} {_t} -> {_t}", f"{_t} {_t} {_t} -> {_t}"
    lanes(f"V_ADD_{_name}", _two, lambda a, b: a + b)
    lanes(f"V_MUL_{_name}", _two, lambda a, b: a * b)
    lanes(f"V_MIN_{_name}", _two, fmin)
    lanes(f"V_MAX_{_name}", _two, fmax)
    lanes(f"V_FMA_{_name} V_FMAC_{_name}", _three, fma)
    lanes(f"V_FLOOR_{_name}", _one, floor)
    lanes(f"V_CEIL_{_name}", _one, ceil)
    lanes(f"V_TRUNC_{_name}", _one, trunc)
    lanes(f"V_RNDNE_{_name}", _one, rint)
    lanes(f"V_FRACT_{_name}", _one, _fract)
    lanes(f"V_SQRT_{_name}", _one, sqrt)
    lanes(f"V_RCP_{_name}", _one, lambda a: 1.0 / a)
    lanes(f"V_RSQ_{_name}", _one, lambda a: _reciprocal_root(a))
    lanes(f"V_FREXP_MANT_{_name}", _one, lambda a: _mantissa(a))
    lanes(f"V_FREXP_EXP_I{'16' if _name == 'F16' else '32'}_{_name}", f"{_t} -> {'i16' if _name == 'F16' else 'i32'}",
          lambda a: _exponent(a))
    if _name == "F64":
        continue
    lanes(f"V_SUB_{_name}", _two, lambda a, b: a - b)
    lanes(f"V_SUBREV_{_name}", _two, lambda a, b: b - a)
    lanes(f"V_MIN3_{_name}", _three, lambda a, b, c: fmin(fmin(a, b), c))
    lanes(f"V_MAX3_{_name}", _three, lambda a, b, c: fmax(fmax(a, b), c))
    lanes(f"V_MED3_{_name}", _three, _med3)
    lanes(f"V_MAD_{_name} V_MAC_{_name} V_MADAK_{_name}", _three, _mad)
    lanes(f"V_FMAAK_{_name}", _three, fma)
    lanes(f"V_MADMK_{_name}", _three, _mad)  # operands in the order a, constant, b
    lanes(f"V_FMAMK_{_name}", _three, fma)
    lanes(f"V_EXP_{_name}", _one, lambda a: unary(Prim.EXP2, a))
    lanes(f"V_LOG_{_name}", _one, lambda a: unary(Prim.LOG2, a))
    lanes(f"V_SIN_{_name}", _one, lambda a: unary(Prim.SIN, a))
    lanes(f"V_COS_{_name}", _one, lambda a: unary(Prim.COS, a))

lanes("V_RCP_IFLAG_F32", "f32 -> f32", lambda a: 1.0 / a)
lanes("V_EXP_LEGACY_F32", "f32 -> f32", lambda a: unary(Prim.EXP2, a))
lanes("V_LOG_LEGACY_F32", "f32 -> f32", lambda a: unary(Prim.LOG2, a))
lanes("V_MUL_LEGACY_F32", "f32 f32 -> f32", _zero_wins)
lanes("V_MAD_LEGACY_F32", "f32 f32 f32 -> f32", lambda a, b, c: _zero_wins(a, b) + c)


def _reciprocal_root(a: Value) -> Value:
    """Within one unit in the last place, as in hardware."""
    return 1.0 / sqrt(a)


# Exponent and mantissa. Everything narrower than f64 goes through f64, which has no denormals there.
_F64_EXPONENT, _F64_SIGN_AND_MANTISSA = 0x7FF, 0x800FFFFFFFFFFFFF


def _normal_f64(a: Value) -> tuple[Value, Value]:
    """Bits of a double that is no denormal, and the power of two it was scaled by."""
    wide = a.to(F64)
    tiny = abs(wide) < 2.0**-1022
    return select(tiny, wide * 2.0**54, wide).as_(U64), select(tiny, wide.as_(I64).lift(54), 0)


def _special(a: Value) -> Value:
    """Zero, infinity or NaN."""
    return a.eq(0.0) | ~(abs(a) < float("inf"))


def _mantissa(a: Value) -> Value:
    bits, _ = _normal_f64(a)
    mantissa = ((bits & _F64_SIGN_AND_MANTISSA) | 0x3FE0000000000000).as_(F64)
    return select(_special(a), a, mantissa.to(a.type))


def _exponent(a: Value) -> Value:
    result = I16 if a.type == F16 else I32
    bits, scale = _normal_f64(a)
    exponent = ((bits >> 52) & _F64_EXPONENT).as_(I64) - 1022 - scale
    return select(_special(a), 0, exponent.to(result))


def _power_of_two(exponent: Value) -> Value:
    """2 ** exponent as f64, for exponents of normal numbers."""
    return ((exponent.to(I64) + 1023) << 52).as_(F64)


def ldexp(a: Value, exponent: Value) -> Value:
    """a * 2 ** exponent, rounded once."""
    exponent = exponent.to(I32)
    if a.type != F64:
        near = maximum(minimum(exponent, 400), -400)
        return (a.to(F64) * _power_of_two(near)).to(a.type)
    exponent = maximum(minimum(exponent, 2200), -2200)
    for _ in range(2):
        step = maximum(minimum(exponent, 1023), -969)  # stay clear of denormals until the last step
        a = a * _power_of_two(step)
        exponent = exponent - step
    return a * _power_of_two(maximum(minimum(exponent, 1023), -1022))


lanes("V_LDEXP_F32", "f32 i32 -> f32", ldexp)
lanes("V_LDEXP_F16", "f16 i16 -> f16", ldexp)
lanes("V_LDEXP_F64", "f64 i32 -> f64", ldexp)


_PI_BITS = 1280


@cache
def _two_over_pi() -> tuple[int, ...]:
    """2 / pi in words of 64 bits, most significant first, the binary point before the first."""
    unit = 1 << _PI_BITS + 64

    def arctan_of_inverse(x: int) -> int:
        term = unit // x
        total, divisor, sign = term, 1, 1
        while term:
            term //= x * x
            divisor, sign = divisor + 2, -sign
            total += sign * (term // divisor)
        return total

    pi = 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))
    fraction = (2 * unit << _PI_BITS) // pi
    return tuple(fraction >> _PI_BITS - 64 * (i + 1) & 0xFFFFFFFFFFFFFFFF for i in range(_PI_BITS // 64))


def _trig_preop(a: Value, segment: Value) -> Value:
    """53 bits of 2 / pi, for the argument reduction of ``a``: the segment's, farther down for large arguments."""
    exponent = _biased_exponent(a)
    start = (segment & 31) * 53 + maximum(exponent - 1077, 0)
    word, bit = (start >> 6), (start & 63).to(U64)
    high = low = bit.lift(0)
    words = (*_two_over_pi(), 0)
    for i in range(len(words) - 1):
        here = word.eq(i)
        high, low = select(here, words[i], high), select(here, words[i + 1], low)
    below = select(bit.eq(0), 0, low >> ((64 - bit) & 63))
    bits = ((high << bit) | below) >> 11
    scale = select(exponent >= 1968, -start + 128, -start) - 53
    return ldexp(bits.to(F64), scale)


lanes("V_TRIG_PREOP_F64", "f64 i32 -> f64", _trig_preop)


# Division in steps (MI200 ISA, V_DIV_SCALE, V_DIV_FMAS, V_DIV_FIXUP).
def _biased_exponent(a: Value) -> Value:
    mantissa = {16: 10, 32: 23, 64: 52}[a.type.bits]
    return ((a.as_(a.type.unsigned) >> mantissa) & ((1 << a.type.bits - 1 - mantissa) - 1)).to(U32).as_(I32)


def _is_denormal(a: Value) -> Value:
    return _biased_exponent(a).eq(0) & a.ne(0.0)


def _div_scale(a: Value, denominator: Value, numerator: Value) -> tuple[Value, Value]:
    """Scale ``a``, which is the denominator or the numerator; the flag says that the quotient needs scaling back.

    Where both 1 / denominator and the quotient are denormal the manual scales the denominator up, to infinity;
    what the division needs, and so what is done here, is to scale it down.
    """
    far, tiny, scale = (96, 23, 64) if a.type == F32 else (768, 53, 128)
    up, down = a * 2.0**scale, a * 2.0**-scale
    is_denominator, is_numerator = (
        a.as_(a.type.unsigned).eq(other.as_(a.type.unsigned)) for other in (denominator, numerator))
    zero = numerator.eq(0.0) | denominator.eq(0.0)
    huge = _biased_exponent(numerator) - _biased_exponent(denominator) >= far
    denormal = _is_denormal(denominator)
    small_reciprocal = _is_denormal(1.0 / denominator)
    small_quotient = _is_denormal(numerator / denominator)
    small_numerator = _biased_exponent(numerator) <= tiny

    scaled = select(small_numerator, up, a)
    scaled = select(small_quotient, select(is_numerator, up, a), scaled)
    scaled = select(small_reciprocal, down, scaled)
    scaled = select(small_reciprocal & small_quotient, select(is_denominator, down, a), scaled)
    scaled = select(denormal, up, scaled)
    scaled = select(huge, select(is_denominator, up, a), scaled)
    flag = ~zero & (huge | (~denormal & small_quotient))
    return select(zero, float("nan"), scaled), flag


def _div_fmas(a: Value, b: Value, c: Value, scaled: Value) -> Value:
    """The scaled quotient is far from 1, so its exponent says which way to scale it back; f32 rounds once."""
    power, bias = (64, 127) if a.type == F32 else (128, 1023)
    wide = fma(a.to(F64), b.to(F64), c.to(F64))
    factor = select(_biased_exponent(c) > bias, wide.lift(2.0**power), 2.0**-power)
    return select(scaled, (wide * factor).to(a.type), fma(a, b, c))


def _div_fixup(quotient: Value, denominator: Value, numerator: Value) -> Value:
    """The special cases of a division whose ordinary result is ``quotient``."""
    infinity, sign_bit = float("inf"), 1 << quotient.type.bits - 1
    bits = quotient.type.unsigned
    sign = (denominator.as_(bits) ^ numerator.as_(bits)) & sign_bit

    def signed(value: Value) -> Value:
        return (value.as_(bits) | sign).as_(quotient.type)

    zero, inf = quotient.lift(0.0), quotient.lift(infinity)
    far = {16: 26, 32: 150, 64: 1075}[bits.bits]
    distance = _biased_exponent(numerator) - _biased_exponent(denominator)
    result = signed(abs(quotient))
    result = select(distance < -far, signed(zero), result)
    result = select(distance > {16: 16, 32: 128, 64: 1024}[bits.bits], signed(inf), result)
    result = select(abs(denominator).eq(infinity) | numerator.eq(0.0), signed(zero), result)
    result = select(denominator.eq(0.0) | abs(numerator).eq(infinity), signed(inf), result)
    nothing = (denominator.eq(0.0) & numerator.eq(0.0)) | (abs(denominator).eq(infinity) & abs(numerator).eq(infinity))
    result = select(nothing, -quotient.lift(float("nan")), result)
    result = select(is_nan(denominator), quiet(denominator), result)
    return select(is_nan(numerator), quiet(numerator), result)


for _name in "F32", "F64":
    _t = _name.lower()
    lanes(f"V_DIV_SCALE_{_name}", f"{_t} {_t} {_t} -> {_t} b", _div_scale, flushes=False)
    lanes(f"V_DIV_FMAS_{_name}", f"{_t} {_t} {_t} vcc -> {_t}", _div_fmas)
for _name in _TYPES:
    _t = _name.lower()
    lanes(f"V_DIV_FIXUP_{_name}", f"{_t} {_t} {_t} -> {_t}", _div_fixup, flushes=False)


# Conversions.
def _toward_zero_f16(a: Value) -> Value:
    """f32 to f16, rounded toward zero."""
    nearest = a.to(F16)
    away = abs(nearest.to(F32)) > abs(a)
    return select(away, nearest.as_(U16) - 1, nearest.as_(U16)).as_(F16)


def _normalized(a: Value, type: Type) -> Value:
    """-1..1 (0..1) to the integers of ``type``."""
    signed = type == type.signed
    top = float((1 << type.bits - signed) - 1)
    low = -1.0 if signed else 0.0
    wide = a.to(F32)
    clamped = select(wide > low, select(wide < 1.0, wide, 1.0), select(is_nan(wide), wide.lift(0.0), low))
    return rint(clamped * top).to(type)


def _pack(a: Value, b: Value) -> Value:
    return concat(b.as_(U16), a.as_(U16))


def _byte_to_float(number: int) -> object:
    return lambda a: ((a >> 8 * number) & 0xFF).to(F32)


def _insert_byte(a: Value, position: Value, word: Value) -> Value:
    place = (position & 3) * 8
    return (word & ~(0xFF << place)) | (rint(a).to(U8).to(U32) << place)


for _name, _type in (("I32", I32), ("U32", U32)):
    lanes(f"V_CVT_{_name}_F32", f"f32 -> {_name.lower()}", lambda a, t=_type: a.to(t))
    lanes(f"V_CVT_{_name}_F64", f"f64 -> {_name.lower()}", lambda a, t=_type: a.to(t))
    lanes(f"V_CVT_F32_{_name}", f"{_name.lower()} -> f32", lambda a: a.to(F32))
    lanes(f"V_CVT_F64_{_name}", f"{_name.lower()} -> f64", lambda a: a.to(F64))
for _name, _type in (("I16", I16), ("U16", U16)):
    lanes(f"V_CVT_{_name}_F16", f"f16 -> {_name.lower()}", lambda a, t=_type: a.to(t))
    lanes(f"V_CVT_F16_{_name}", f"{_name.lower()} -> f16", lambda a: a.to(F32).to(F16))
    lanes(f"V_CVT_NORM_{_name}_F16", f"f16 -> {_name.lower()}", lambda a, t=_type: _normalized(a, t))
    lanes(f"V_CVT_PKNORM_{_name}_F32", "f32 f32 -> u32", lambda a, b, t=_type: _pack(_normalized(a, t), _normalized(b, t)))
    lanes(f"V_CVT_PKNORM_{_name}_F16", "f16 f16 -> u32", lambda a, b, t=_type: _pack(_normalized(a, t), _normalized(b, t)))
for _number in range(4):
    lanes(f"V_CVT_F32_UBYTE{_number}", "u32 -> f32", _byte_to_float(_number))  # type: ignore[arg-type]
lanes("V_CVT_F32_F16", "f16 -> f32", lambda a: a.to(F32))
lanes("V_CVT_F16_F32", "f32 -> f16", lambda a: a.to(F16))
lanes("V_CVT_F32_F64", "f64 -> f32", lambda a: a.to(F32))
lanes("V_CVT_F64_F32", "f32 -> f64", lambda a: a.to(F64))
lanes("V_CVT_RPI_I32_F32", "f32 -> i32", lambda a: floor(a + 0.5).to(I32))
lanes("V_CVT_FLR_I32_F32", "f32 -> i32", lambda a: floor(a).to(I32))
lanes("V_CVT_OFF_F32_I4", "u32 -> f32", lambda a: ((a << 28).as_(I32) >> 28).to(F32) * 0.0625)
lanes("V_CVT_PKRTZ_F16_F32", "f32 f32 -> u32", lambda a, b: _pack(_toward_zero_f16(a), _toward_zero_f16(b)))
lanes("V_CVT_PK_U8_F32", "f32 u32 u32 -> u32", _insert_byte)
lanes("V_CVT_PKACCUM_U8_F32", "f32 u32 old -> u32", _insert_byte)
lanes("V_PACK_B32_F16", "f16 f16 -> u32", _pack)

# Packed.
for _t in "f16", "f32":
    _name, _two = _t.upper(), f"2{_t}"
    lanes(f"V_PK_ADD_{_name}", f"{_two} {_two} -> {_two}", lambda a, b: a + b)
    lanes(f"V_PK_MUL_{_name}", f"{_two} {_two} -> {_two}", lambda a, b: a * b)
    lanes(f"V_PK_FMA_{_name}", f"{_two} {_two} {_two} -> {_two}", fma)
lanes("V_PK_FMAC_F16", "2f16 2f16 2f16 -> 2f16", fma)
lanes("V_PK_MIN_F16", "2f16 2f16 -> 2f16", fmin)
lanes("V_PK_MAX_F16", "2f16 2f16 -> 2f16", fmax)

# Mixed precision and dot products. Hardware does not say how it rounds inside; here each step rounds.
Pair = tuple[Value, Value]
lanes("V_FMA_MIX_F32", "mix mix mix -> f32", fma)
lanes("V_MAD_MIX_F32", "mix mix mix -> f32", _mad)
lanes("V_FMA_MIXLO_F16 V_FMA_MIXHI_F16", "mix mix mix -> f16", lambda a, b, c: fma(a, b, c).to(F16))
lanes("V_MAD_MIXLO_F16 V_MAD_MIXHI_F16", "mix mix mix -> f16", lambda a, b, c: _mad(a, b, c).to(F16))


def _dot2_f16(a: Pair, b: Pair, c: Value) -> Value:
    return fma(a[1].to(F32), b[1].to(F32), fma(a[0].to(F32), b[0].to(F32), c))


def _dot(a: Value, b: Value, c: Value, bits: int, signed: bool) -> Value:
    """Sum of products of the elements of ``bits`` in two dwords, added to ``c``, in 64 bits."""
    wide = I64 if signed else U64
    total = c.to(wide)
    for place in range(0, 32, bits):
        x, y = ((v << 32 - bits - place) >> 32 - bits for v in (a, b))
        total = total + x.to(wide) * y.to(wide)
    return total


def _narrow(total: Value) -> Value:
    """Clamped to 32 bits."""
    signed = total.type == I64
    low = maximum(total, -(1 << 31)) if signed else total
    return minimum(low, (1 << 32 - signed) - 1).to(I32 if signed else U32)


lanes("V_DOT2_F32_F16 V_DOT2C_F32_F16", "2f16 2f16 f32 -> f32", _dot2_f16)
for _bits, _count in ((16, 2), (8, 4), (4, 8)):
    for _letter, _is_signed in (("I", True), ("U", False)):
        _word = f"{_letter.lower()}32"
        _names = f"V_DOT{_count}_{_letter}32_{_letter}{_bits}"
        _names += f" V_DOT{_count}C_{_letter}32_{_letter}{_bits}" if _is_signed else ""
        lanes(_names, f"{_word} {_word} {_word} -> {_word}",
              lambda a, b, c, n=_bits, s=_is_signed: _dot(a, b, c, n, s).to(c.type),
              lambda a, b, c, n=_bits, s=_is_signed: _narrow(_dot(a, b, c, n, s)))

__all__ = ["I8", "fmax", "fmin", "ldexp", "quiet"]
