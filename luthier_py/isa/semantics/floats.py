"""Vector ALU on floats: arithmetic, minimum and maximum, roots, packed and mixed precision.

In: one lane's operands, with abs and neg applied. Out: the result before clamp and omod.
Source: AMD Instinct MI200 ISA, 12.7 to 12.12. How primitives round is MODE's matter, and what becomes of a NaN that of
MODE and the target. The sign of a NaN that an operation makes is the host's.
"""

from __future__ import annotations

from collections.abc import Callable

from luthier_py.isa.semantics.algebra import (
    F16,
    F32,
    F64,
    Prim,
    Value,
    ceil,
    floor,
    fma,
    is_nan,
    is_unordered,
    rint,
    select,
    sqrt,
    trunc,
    unary,
)
from luthier_py.isa.semantics.meaning import PLAIN, Lanes, Situation, by_nan, lanes

Two = Callable[[Value, Value], Value]
Three = Callable[[Value, Value, Value], Value]
_TYPES = {"F16": F16, "F32": F32, "F64": F64}


def flush_denormals(a: Value) -> Value:
    """Denormals to zero of the same sign."""
    mantissa = a.type.mantissa_bits
    sign_bit = 1 << a.type.bits - 1
    bits = a.as_(a.type.unsigned)
    exponent = bits & ((sign_bit - 1) & ~((1 << mantissa) - 1))
    return select(exponent.eq(0), bits & sign_bit, bits).as_(a.type)


def quiet(a: Value) -> Value:
    """A signalling NaN made quiet; other values as they are."""
    mantissa = a.type.mantissa_bits
    bits = a.as_(a.type.unsigned)
    return select(is_nan(a), bits | (1 << mantissa - 1), bits).as_(a.type)


def _is_signalling_nan(a: Value) -> Value:
    mantissa = a.type.mantissa_bits
    return is_nan(a) & ((a.as_(a.type.unsigned) >> mantissa - 1) & 1).eq(0)


def _number(a: Value, b: Value, ordered: Value, how: Situation) -> Value:
    """Of a minimum or maximum; ``ordered``: of two numbers.

    In IEEE mode minNum and maxNum of IEEE 754-2008: a signalling NaN wins, quiet ones lose; else any NaN loses, and
    stays as it is (MI200 ISA, 12.7; RDNA 3 ISA, 16.7: V_MIN_F32). RDNA 4 has minimumNumber and maximumNumber of IEEE
    754-2019: every NaN loses to a number, and of two the first is made quiet (RDNA 4 ISA, 16.7: V_MIN_NUM_F32).
    """
    if how.numbers_win:
        number = select(is_nan(a), b, select(is_nan(b), a, ordered))
        return select(is_nan(a) & is_nan(b), quiet(a), number)
    if how.first_nan:
        number = select(is_nan(b), a, select(is_nan(a), b, ordered))
    else:
        number = select(is_nan(a), b, select(is_nan(b), a, ordered))
    if not how.ieee:
        return number
    return select(_is_signalling_nan(a), quiet(a), select(_is_signalling_nan(b), quiet(b), number))


def _unless_nan(a: Value, b: Value, ordered: Value) -> Value:
    """minimum and maximum of IEEE 754-2019: any NaN wins, the first one."""
    return select(is_unordered(a, b), select(is_nan(a), quiet(a), quiet(b)), ordered)


def least(a: Value, b: Value) -> Value:
    """minimum of IEEE 754-2019: a NaN if either is one (V_MINIMUM_F32 and its like)."""
    return _unless_nan(a, b, fmin(a, b))


def greatest(a: Value, b: Value) -> Value:
    """maximum of IEEE 754-2019: a NaN if either is one (V_MAXIMUM_F32 and its like)."""
    return _unless_nan(a, b, fmax(a, b))


def _sign(a: Value) -> Value:
    return (a.as_(a.type.unsigned) >> a.type.bits - 1).ne(0)


def minimum_in(how: Situation) -> Two:
    """-0 is less than +0."""
    return lambda a, b: _number(a, b, select((a < b) | (a.eq(b) & _sign(a)), a, b), how)


def maximum_in(how: Situation) -> Two:
    """The maximum of two floats (V_MAX), where MODE and the target are as ``how`` says; +0 is greater than -0."""
    return lambda a, b: _number(a, b, select((b < a) | (a.eq(b) & _sign(b)), a, b), how)


fmin, fmax = minimum_in(PLAIN), maximum_in(PLAIN)


def of_three(inner: Callable[[Situation], Two], outer: Callable[[Situation], Two]) -> Callable[[Situation], Three]:
    """``outer`` of ``inner`` of the first two, and the third."""
    return lambda how: lambda a, b, c: outer(how)(inner(how)(a, b), c)


def _med3(how: Situation) -> Three:
    """The larger one of those that are not the largest, which is found by its value: -0 is as large as +0 (RDNA 3 ISA,
    16.12: V_MED3_F32; so does LLVM fold it)."""
    fmin, fmax = minimum_in(how), maximum_in(how)

    def compute(a: Value, b: Value, c: Value) -> Value:
        least, largest = fmin(fmin(a, b), c), fmax(fmax(a, b), c)
        middle = select(largest.eq(a), fmax(b, c), select(largest.eq(b), fmax(a, c), fmax(a, b)))
        return select(is_unordered(a, b) | is_nan(c), least, middle)

    return compute


def _mad(a: Value, b: Value, c: Value) -> Value:
    """Two roundings. That of f32 has no denormals, whatever MODE says (LLVM, FMAD_FTZ)."""
    if a.type != F32:
        return a * b + c
    return flush_denormals(flush_denormals(flush_denormals(a) * flush_denormals(b)) + flush_denormals(c))


def _zero_wins(a: Value, b: Value) -> Value:
    return select(a.eq(0.0) | b.eq(0.0), 0.0, a * b)


def _mad_legacy(a: Value, b: Value, c: Value) -> Value:
    product = flush_denormals(_zero_wins(flush_denormals(a), flush_denormals(b)))
    return flush_denormals(product + flush_denormals(c))


def _fract(a: Value) -> Value:
    below_one = {16: 0x3BFF, 32: 0x3F7FFFFF, 64: 0x3FEFFFFFFFFFFFFF}[a.type.bits]
    limit = a.ops.constant(a.type.unsigned, below_one).as_(a.type)
    fraction = a - floor(a)
    return select(fraction > limit, limit, fraction)


# Roots, reciprocals, powers and logarithms: within one unit in the last place, as in hardware.
def _reciprocal(a: Value) -> Value:
    return 1.0 / a


def _reciprocal_root(a: Value) -> Value:
    return 1.0 / sqrt(a)


def _exp2(a: Value) -> Value:
    return unary(Prim.EXP2, a)


def _log2(a: Value) -> Value:
    return unary(Prim.LOG2, a)


def _tanh(a: Value) -> Value:
    return unary(Prim.TANH, a)


def _approximate(compute: Callable[[Value], Value], name: str) -> Callable[[Value], Value]:
    """Those of f32 flush denormals, whatever MODE says (CDNA 3 ISA, 12.8: V_LOG_F32 and its like)."""
    if name != "F32":
        return compute
    return lambda a: flush_denormals(compute(flush_denormals(a)))


for _name, _type in _TYPES.items():
    _t = _name.lower()
    _one, _two, _three = f"{_t} -> {_t}", f"{_t} {_t} -> {_t}", f"{_t} {_t} {_t} -> {_t}"
    lanes(f"V_ADD_{_name}", _two, lambda a, b: a + b)
    lanes(f"V_MUL_{_name}", _two, lambda a, b: a * b)
    by_nan(f"V_MIN_{_name}", _two, minimum_in, Lanes)
    by_nan(f"V_MAX_{_name}", _two, maximum_in, Lanes)
    lanes(f"V_FMA_{_name} V_FMAC_{_name}", _three, fma)
    lanes(f"V_FLOOR_{_name}", _one, floor)
    lanes(f"V_CEIL_{_name}", _one, ceil)
    lanes(f"V_TRUNC_{_name}", _one, trunc)
    lanes(f"V_RNDNE_{_name}", _one, rint)
    lanes(f"V_FRACT_{_name}", _one, _fract)
    lanes(f"V_SQRT_{_name}", _one, _approximate(sqrt, _name))
    lanes(f"V_RCP_{_name}", _one, _approximate(_reciprocal, _name))
    lanes(f"V_RSQ_{_name}", _one, _approximate(_reciprocal_root, _name))
    if _name == "F64":
        continue
    lanes(f"V_SUB_{_name}", _two, lambda a, b: a - b)
    lanes(f"V_SUBREV_{_name}", _two, lambda a, b: b - a)
    by_nan(f"V_MIN3_{_name}", _three, of_three(minimum_in, minimum_in), Lanes)
    by_nan(f"V_MAX3_{_name}", _three, of_three(maximum_in, maximum_in), Lanes)
    by_nan(f"V_MED3_{_name}", _three, _med3, Lanes)
    lanes(f"V_MAD_{_name} V_MAC_{_name} V_MADAK_{_name}", _three, _mad)
    lanes(f"V_FMAAK_{_name}", _three, fma)
    lanes(f"V_MADMK_{_name}", _three, _mad)  # operands in the order a, constant, b
    lanes(f"V_FMAMK_{_name}", _three, fma)
    lanes(f"V_EXP_{_name}", _one, _approximate(_exp2, _name))
    lanes(f"V_LOG_{_name}", _one, _approximate(_log2, _name))
    lanes(f"V_SIN_{_name}", _one, lambda a: unary(Prim.SIN, a))
    lanes(f"V_COS_{_name}", _one, lambda a: unary(Prim.COS, a))

lanes("V_TANH_F32", "f32 -> f32", _tanh)  # how near no source says; all else of its unit is within one unit
lanes("V_TANH_F16", "f16 -> f16", _tanh)
lanes("V_RCP_IFLAG_F32", "f32 -> f32", _approximate(_reciprocal, "F32"))
lanes("V_EXP_LEGACY_F32", "f32 -> f32", _approximate(_exp2, "F32"))
lanes("V_LOG_LEGACY_F32", "f32 -> f32", _approximate(_log2, "F32"))
lanes("V_MUL_LEGACY_F32", "f32 f32 -> f32", _zero_wins)
lanes("V_MAD_LEGACY_F32 V_MAC_LEGACY_F32", "f32 f32 f32 -> f32", _mad_legacy)


# Packed.
for _t in "f16", "f32":
    _name, _two = _t.upper(), f"2{_t}"
    lanes(f"V_PK_ADD_{_name}", f"{_two} {_two} -> {_two}", lambda a, b: a + b)
    lanes(f"V_PK_MUL_{_name}", f"{_two} {_two} -> {_two}", lambda a, b: a * b)
    lanes(f"V_PK_FMA_{_name}", f"{_two} {_two} {_two} -> {_two}", fma)
lanes("V_PK_FMAC_F16", "2f16 2f16 2f16 -> 2f16", fma)
by_nan("V_PK_MIN_F16", "2f16 2f16 -> 2f16", minimum_in, Lanes)
by_nan("V_PK_MAX_F16", "2f16 2f16 -> 2f16", maximum_in, Lanes)

# Mixed precision. Hardware does not say how it rounds inside; here each step rounds.
lanes("V_FMA_MIX_F32", "mix mix mix -> f32", fma)
# Of MAD_MIX a half that is a denormal is a zero, as source and as result (LLVM, pull request 224911; Mesa,
# aco_optimizer.cpp: "v_mad_mix* on GFX9 always flushes denormals for 16-bit inputs/outputs").
lanes("V_MAD_MIX_F32", "zmix zmix zmix -> f32", _mad)
lanes("V_FMA_MIXLO_F16 V_FMA_MIXHI_F16", "mix mix mix -> f16", lambda a, b, c: fma(a, b, c).to(F16))
lanes("V_MAD_MIXLO_F16 V_MAD_MIXHI_F16", "zmix zmix zmix -> f16",
      lambda a, b, c: flush_denormals(_mad(a, b, c).to(F16)))


# Faces of a cube, and lighting.
def _of_largest(a: Value, b: Value, c: Value, x: Value | float, y: Value | float, z: Value | float) -> Value:
    """``z`` where c is the largest of the three by magnitude, else ``y`` where b is, else ``x`` (RDNA 3 ISA, 16.12)."""
    near_z = (abs(c) >= abs(a)) & (abs(c) >= abs(b))
    return select(near_z, a.lift(z), select(abs(b) >= abs(a), a.lift(y), a.lift(x)))


def _by_sign(a: Value, negative: Value | float, positive: Value | float) -> Value:
    return select(a < 0.0, a.lift(negative), a.lift(positive))


def _lit(a: Value, b: Value, c: Value) -> Value:
    """The largest number below 0 where b or c cannot be lit (RDNA 3 ISA, V_MULLIT_F32)."""
    lowest = a.ops.constant(a.type.unsigned, 0xFF7FFFFF).as_(a.type)
    dark = b.eq(lowest) | b.eq(float("-inf")) | is_nan(b) | (c <= 0.0) | is_nan(c)
    return select(dark, lowest, _zero_wins(a, b))


lanes("V_CUBEID_F32", "f32 f32 f32 -> f32", lambda a, b, c: _of_largest(
    a, b, c, _by_sign(a, 1.0, 0.0), _by_sign(b, 3.0, 2.0), _by_sign(c, 5.0, 4.0)))
lanes("V_CUBESC_F32", "f32 f32 f32 -> f32", lambda a, b, c: _of_largest(
    a, b, c, _by_sign(a, c, -c), a, _by_sign(c, -a, a)))
lanes("V_CUBETC_F32", "f32 f32 f32 -> f32", lambda a, b, c: _of_largest(a, b, c, -b, _by_sign(b, -c, c), -b))
lanes("V_CUBEMA_F32", "f32 f32 f32 -> f32", lambda a, b, c: _of_largest(a, b, c, a, b, c) * 2.0)
lanes("V_MULLIT_F32", "f32 f32 f32 -> f32", _lit)
