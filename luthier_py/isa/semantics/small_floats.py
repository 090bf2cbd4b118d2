"""Floats of 8, 6 and 4 bits: the formats, and conversions from f32 and to it.

In: one lane's operands. Out: results before clamp and omod. Sources: AMD Instinct CDNA3 ISA, 12.8 and 12.11 (formats
without infinity: "FNUZ"); CDNA4 ISA, 12.8 and 12.11, and RDNA4 ISA, 16.8 and 16.12 (OCP's); OCP Microscaling
Formats, 5.3 and 5.4. What they leave open is as in AMD's host code for gfx950 (HIP, amd_hip_ocp_host.hpp): where bits
of the seed go, that every element gets the same seed, that scales of exponent 255 give NaN.

Conversions to small formats round to the nearest even, whatever MODE says, or add the seed's upper bits below the last
place and truncate; what was lost to a denormal before is lost there. What is too large becomes the format's NaN or
infinity, or, with FP16_OVFL, its largest number, and so in formats that have nothing else.
"""

from __future__ import annotations

from collections.abc import Callable

from luthier_py.base.records import dataclass
from luthier_py.isa.semantics.algebra import (
    F16,
    F32,
    F64,
    I32,
    I64,
    U16,
    U32,
    Value,
    clz,
    concat,
    is_nan,
    maximum,
    minimum,
    select,
)
from luthier_py.isa.semantics.cdna4 import to_bf16
from luthier_py.isa.semantics.meaning import Compute, Situation, variants

_NAN, _INFINITY = 0x7FC00000, 0x7F800000
_F32_BIAS, _F32_MANTISSA = 127, 23
DESTINATION, SOURCE = 8, 4  # op_sel's bits in srcN_modifiers: of the destination in src0's, of the source in its own


@dataclass(frozen=True, slots=True)
class SmallFloat:
    """A format of a sign, an exponent and a mantissa. Codes are without the sign."""

    exponent_bits: int
    mantissa_bits: int
    bias: int
    largest: int          # code of the largest number
    beyond: int           # code of what is too large
    nan: int              # code that NaN becomes, and that is one unless it is the largest number
    infinity: int | None = None
    fnuz: bool = False    # the code of -0 is the one NaN

    @property
    def bits(self) -> int:
        """Bits of a code with the sign: 8, 6 or 4."""
        return 1 + self.exponent_bits + self.mantissa_bits

    def widen(self, code: Value) -> Value:
        """The value as f32, exactly; bits of the code (u32) above the format are not looked at."""
        top = self.bits - 1
        magnitude, sign = code & ((1 << top) - 1), ((code >> top) & 1) << 31
        normal = (magnitude << _F32_MANTISSA - self.mantissa_bits) + (_F32_BIAS - self.bias << _F32_MANTISSA)
        denormal = magnitude.to(F32).as_(U32) - (self.bias - 1 + self.mantissa_bits << _F32_MANTISSA)
        value = select(magnitude < 1 << self.mantissa_bits, select(magnitude.eq(0), 0, denormal), normal)
        if self.infinity is not None:
            value = select(magnitude.eq(self.infinity), _INFINITY, value)
        if self.fnuz:
            return select(magnitude.eq(0) & sign.ne(0), _NAN, sign | value).as_(F32)
        if self.nan != self.largest:
            last = self.beyond if self.infinity is not None else self.largest
            value = select(magnitude > last, _NAN, value)
        return (sign | value).as_(F32)

    def widen_scaled(self, code: Value, scale: Value) -> Value:
        """The same times 2 ** (exponent of ``scale``, the bits of an f32): as f32, which is exact or infinite."""
        exponent = (scale >> _F32_MANTISSA) & 0xFF
        value = self.widen(code)
        wide = value.to(F64)
        moved = (wide.as_(I64) + ((exponent.as_(I32) - _F32_BIAS).to(I64) << 52)).as_(F64)
        finite = wide.ne(0.0) & (abs(wide) < float("inf"))
        result = select(finite, moved, wide).to(F32)
        return select(exponent.eq(255), (result.as_(U32) & 0x80000000 | _NAN).as_(F32), result)

    def narrow(self, a: Value, seed: Value | None = None, scale: Value | None = None, keeps_finite: bool = False,
                 precision: int = _F32_MANTISSA) -> Value:
        """The code (u32, sign and all) of ``a`` (f32), divided by 2 ** (exponent of ``scale``).

        ``seed``: rounded stochastically; ``precision``: bits of the mantissa that ``a`` had before it was f32, which is
        where the seed is added.
        """
        bits = a.as_(U32)
        significand, exponent = _normalize_magnitude(bits & 0x7FFFFFFF)
        exponent = exponent - (_F32_BIAS - self.bias)
        if scale is not None:
            exponent = exponent + _F32_BIAS - ((scale >> _F32_MANTISSA) & 0xFF).as_(I32)
        below = maximum(1 - exponent, 0)
        if seed is None:
            rounded = self._to_nearest(significand, below)
        else:
            rounded = self._stochastic(significand, below, seed, _F32_MANTISSA - precision)
        above = maximum(exponent - 1, 0).as_(U32) << self.mantissa_bits
        code = select(significand.eq(0), 0, rounded + above)
        code = select(code > self.largest, self.largest if keeps_finite else self.beyond, code)
        code = select((bits & 0x7FFFFFFF).eq(_INFINITY), self.beyond, code)
        nan = is_nan(a) if scale is None else is_nan(a) | ((scale >> _F32_MANTISSA) & 0xFF).eq(255)
        code = select(nan, self.nan, code)
        sign = (bits >> 31) << self.bits - 1
        return select(code.ne(0), sign | code, 0) if self.fnuz else sign | code

    def _to_nearest(self, significand: Value, below: Value) -> Value:
        shift = minimum(below + (_F32_MANTISSA - self.mantissa_bits), 25).as_(U32)
        half = 1 << (shift - 1)
        return (significand + (half - 1) + ((significand >> shift) & 1)) >> shift

    def _stochastic(self, significand: Value, below: Value, seed: Value, lost: int) -> Value:
        dropped = _F32_MANTISSA - self.mantissa_bits
        aligned = significand >> minimum(below, 24).as_(U32)
        addend = seed >> 32 - dropped
        if lost:
            aligned, addend = (x >> lost << lost for x in (aligned, addend))
        return (aligned + addend) >> dropped


def _normalize_magnitude(magnitude: Value) -> tuple[Value, Value]:
    """Of an f32 without its sign: 24 bits of significand, the first of which is 1 (0 of zero), and the exponent's
    field, below 1 of denormals."""
    field, fraction = magnitude >> _F32_MANTISSA, magnitude & 0x7FFFFF
    shift = minimum(clz(fraction), 31) - 8
    significand = select(field.eq(0), fraction << shift, fraction | 0x800000)
    return significand, select(field.eq(0), 1 - shift.as_(I32), field.as_(I32))


FP8 = SmallFloat(4, 3, 7, largest=0x7E, beyond=0x7F, nan=0x7F)
BF8 = SmallFloat(5, 2, 15, largest=0x7B, beyond=0x7C, nan=0x7E, infinity=0x7C)
FP8_FNUZ = SmallFloat(4, 3, 8, largest=0x7F, beyond=0x80, nan=0x80, fnuz=True)
BF8_FNUZ = SmallFloat(5, 2, 16, largest=0x7F, beyond=0x80, nan=0x80, fnuz=True)
UE5M3 = SmallFloat(5, 3, 15, largest=0xFE, beyond=0xFF, nan=0xFF)  # gfx1250's, without a sign (hip-fpsan)
FP6 = SmallFloat(2, 3, 1, largest=0x1F, beyond=0x1F, nan=0x1F)
BF6 = SmallFloat(3, 2, 3, largest=0x1F, beyond=0x1F, nan=0x1F)
FP4 = SmallFloat(2, 1, 1, largest=0x7, beyond=0x7, nan=0x7)
SMALLER = {"fp6": FP6, "bf6": BF6, "fp4": FP4}
_OCP = {"fp8": FP8, "bf8": BF8}
_FNUZ = {"fp8": FP8_FNUZ, "bf8": BF8_FNUZ}


def eight_bits(name: str, fnuz: bool) -> SmallFloat:
    """fp8 or bf8 of a target."""
    return (_FNUZ if fnuz else _OCP)[name]


def _format(name: str, situation: Situation) -> SmallFloat:
    return eight_bits(name.lower(), situation.fnuz_floats)


# Which part of a register.
def destination_byte(situation: Situation) -> int:
    """Number of the byte of vdst that gets the result: byte_sel (RDNA 4), or op_sel[3:2] (CDNA 3 and 4)."""
    if situation.field("byte_sel"):
        return situation.field("byte_sel")
    high, low = situation.field("src0_modifiers") & DESTINATION, situation.field("src2_modifiers") & SOURCE
    return 2 * bool(high) + bool(low)


def in_byte(number: int, byte: Value, old: Value) -> Value:
    """``old`` (u32) with ``byte`` (u32, its upper bits 0) as its byte ``number``."""
    return (old & ~(0xFF << 8 * number)) | (byte << 8 * number)


def _pair(first: Value, second: Value) -> Value:
    """Two codes of 8 bits."""
    return (first | second << 8).to(U16)


# Conversions without a scale.
def _byte_widened(name: str) -> Callable[[Situation], Compute]:
    def of(situation: Situation) -> Compute:
        format, place = _format(name, situation), 8 * situation.field("byte_sel")
        return lambda a: format.widen(a >> place)
    return of


def _bytes_widened(name: str) -> Callable[[Situation], Compute]:
    def of(situation: Situation) -> Compute:
        format = _format(name, situation)
        return lambda a: format.widen(a.to(U32))
    return of


def _pair_narrowed(name: str) -> Callable[[Situation], Compute]:
    def of(situation: Situation) -> Compute:
        format, finite = _format(name, situation), situation.keeps_finite
        return lambda a, b: _pair(format.narrow(a, keeps_finite=finite), format.narrow(b, keeps_finite=finite))
    return of


def _stochastic(name: str) -> Callable[[Situation], Compute]:
    def of(situation: Situation) -> Compute:
        format, byte, finite = _format(name, situation), destination_byte(situation), situation.keeps_finite
        return lambda a, seed, old: in_byte(byte, format.narrow(a, seed, keeps_finite=finite), old)
    return of


for _name in "FP8", "BF8":
    variants(f"V_CVT_F32_{_name}", "u32 -> f32", _byte_widened(_name))
    variants(f"V_CVT_PK_F32_{_name}", "2u8 -> 2f32", _bytes_widened(_name))
    variants(f"V_CVT_PK_{_name}_F32", "f32 f32 -> u16", _pair_narrowed(_name))
    variants(f"V_CVT_SR_{_name}_F32", "f32 u32 old -> u32", _stochastic(_name))

# gfx1250: of f16 (LLVM, VOP1Instructions.td and VOP3Instructions.td; hip-fpsan, tests/cvt_f16_fp8_gfx1250_test.cpp).
def _byte_to_f16(name: str) -> Callable[[Situation], Compute]:
    def of(situation: Situation) -> Compute:
        format, place = _format(name, situation), 8 * situation.field("byte_sel")
        return lambda a: format.widen(a >> place).to(F16)
    return of


def _bytes_to_f16(name: str) -> Callable[[Situation], Compute]:
    def of(situation: Situation) -> Compute:
        format = _format(name, situation)
        return lambda two: concat(*(format.widen(a.to(U32)).to(F16).as_(U16) for a in reversed(two)))
    return of


def _pair_of_f16(name: str) -> Callable[[Situation], Compute]:
    def of(situation: Situation) -> Compute:
        format, finite = _format(name, situation), situation.keeps_finite
        return lambda two: _pair(*(format.narrow(a.to(F32), keeps_finite=finite) for a in two))
    return of


def _stochastic_of_f16(name: str) -> Callable[[Situation], Compute]:
    def of(situation: Situation) -> Compute:
        format, byte, finite = _format(name, situation), situation.field("byte_sel"), situation.keeps_finite
        return lambda a, seed, old: in_byte(
            byte, format.narrow(a.to(F32), seed, keeps_finite=finite, precision=F16.mantissa_bits), old)
    return of


for _name in "FP8", "BF8":
    variants(f"V_CVT_F16_{_name}", "u32 -> f16", _byte_to_f16(_name))
    variants(f"V_CVT_PK_F16_{_name}", "2u8 -> u32", _bytes_to_f16(_name))
    variants(f"V_CVT_PK_{_name}_F16", "2f16 -> u16", _pair_of_f16(_name))
    variants(f"V_CVT_SR_{_name}_F16", "f16 u32 old -> u32", _stochastic_of_f16(_name))

_F16_BITS = SmallFloat(5, 10, 15, largest=0x7BFF, beyond=0x7C00, nan=0x7E00, infinity=0x7C00)


def _stochastic_f16(situation: Situation) -> Compute:
    finite = situation.keeps_finite
    return lambda a, seed: _F16_BITS.narrow(a, seed, keeps_finite=finite).to(U16)


def _stochastic_bf16(situation: Situation) -> Compute:
    """The exponents are those of f32, so the seed's upper half is added to the lower one."""
    def compute(a: Value, seed: Value) -> Value:
        bits = a.as_(U32)
        special = ((bits >> _F32_MANTISSA) & 0xFF).eq(255)
        return select(special, to_bf16(a), ((bits + (seed >> 16)) >> 16).to(U16))
    return compute


variants("V_CVT_SR_F16_F32", "f32 u32 -> u16", _stochastic_f16)
variants("V_CVT_SR_BF16_F32", "f32 u32 -> u16", _stochastic_bf16)
