"""Floats of 8, 6 and 4 bits from their definition, with exact fractions, and conversions of 32 at once.

In: bits. Out: bits. Sources: OCP 8-bit Floating Point Specification, 5; OCP Microscaling Formats, 5.3; CDNA3 ISA,
table of fp8 and bf8 formats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from luthier_py.isa import MODE, Inst, Operand
from luthier_py.isa.semantics.scaled_floats import ManyConverted
from reference import floats
from reference.vector import raw
from reference.wave import Wave

MANTISSA = {"f32": 23, "f16": 10, "bf16": 7}


@dataclass(frozen=True)
class Small:
    exponent_bits: int
    mantissa_bits: int
    specials: str  # "fnuz": one NaN; "fn": the last code; "ieee": the last exponent; "": none

    @property
    def bias(self) -> int:
        return (1 << self.exponent_bits - 1) - (self.specials != "fnuz")

    @property
    def top(self) -> int:
        """The sign bit."""
        return 1 << self.exponent_bits + self.mantissa_bits

    @property
    def codes(self) -> int:
        """Of positive numbers."""
        last = {"fnuz": 0, "fn": 1, "ieee": 1 << self.mantissa_bits, "": 0}[self.specials]
        return self.top - last

    def number(self, code: int) -> Fraction | None:
        """None of NaN and infinity."""
        magnitude = code & self.top - 1
        if magnitude >= self.codes or self.specials == "fnuz" and code == self.top:
            return None
        exponent, mantissa = magnitude >> self.mantissa_bits, magnitude & (1 << self.mantissa_bits) - 1
        unit = Fraction(2) ** (max(exponent, 1) - self.bias - self.mantissa_bits)
        value = (mantissa + (bool(exponent) << self.mantissa_bits)) * unit
        return -value if code & self.top else value

    def is_infinite(self, code: int) -> bool:
        return self.specials == "ieee" and code & self.top - 1 == self.codes

    def narrowed(self, sign: int, value: Fraction | str, seed: int | None, mantissa: int, finite: bool) -> int:
        """The code of a magnitude, or of "nan" or "infinite". ``mantissa``: bits that the source has."""
        if value == "nan":
            return {"fnuz": self.top, "": sign * self.top | self.top - 1}.get(
                self.specials, sign * self.top | self.codes | (2 if self.specials == "ieee" else 0))
        beyond = {"fnuz": self.top, "": self.top - 1}.get(self.specials, self.codes)
        if value == "infinite":
            return sign * self.top | beyond
        assert isinstance(value, Fraction)
        if value == 0:
            return 0 if self.specials == "fnuz" else sign * self.top
        exponent = max(_log2(value), 1 - self.bias)
        unit = Fraction(2) ** (exponent - self.mantissa_bits)
        if seed is None:
            steps = round(value / unit)
        else:
            finer = 1 << mantissa - self.mantissa_bits
            steps = (math.floor(value / unit * finer) + (seed >> 32 - (mantissa - self.mantissa_bits))) // finer
        code = steps + (exponent - 1 + self.bias << self.mantissa_bits)
        if code >= self.codes:
            code = self.codes - 1 if finite else beyond
        return 0 if self.specials == "fnuz" and code == 0 else sign * self.top | code


def _log2(value: Fraction) -> int:
    """Rounded down."""
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= value else guess - 1


FORMATS = {
    "fp8": Small(4, 3, "fn"), "bf8": Small(5, 2, "ieee"), "fp8 fnuz": Small(4, 3, "fnuz"),
    "bf8 fnuz": Small(5, 2, "fnuz"), "fp6": Small(2, 3, ""), "bf6": Small(3, 2, ""), "fp4": Small(2, 1, ""),
}  # fmt: skip
UE5M3 = Small(5, 3, "fn")  # gfx1250's scales, which have no sign
EXPONENTS = {(4, 3): "fp8", (5, 2): "bf8", (2, 3): "fp6", (3, 2): "bf6", (2, 1): "fp4"}


def widened(small: Small, code: int, scale: int, kind: str) -> int:
    """The bits in a wide format of a code times 2 ** (exponent of the f32 ``scale``)."""
    sign, exponent = bool(code & small.top), scale >> 23 & 0xFF
    value = small.number(code)
    if exponent == 255 or value is None and not small.is_infinite(code):
        bits = floats.default_nan(32)
    elif value is None:
        bits = floats.infinity(32)
    else:
        bits = floats.rounded(abs(value) * Fraction(2) ** (exponent - 127), 32)
    bits |= sign << 31 if small.specials != "fnuz" or code != small.top else 0
    return _wide(bits, kind)


def _wide(bits: int, kind: str) -> int:
    if kind == "f16":
        return floats.resized(bits, 32, 16)
    if kind == "bf16":
        return bits + 0x7FFF + (bits >> 16 & 1) >> 16 if not floats.is_nan(bits, 32) else bits >> 16
    return bits


def narrowed(small: Small, bits: int, kind: str, scale: int, seed: int | None, finite: bool) -> int:
    """The code of a wide number divided by 2 ** (exponent of the f32 ``scale``)."""
    as_f32 = floats.resized(bits, 16, 32) if kind == "f16" else bits << 16 if kind == "bf16" else bits
    sign, exponent = as_f32 >> 31, scale >> 23 & 0xFF
    value: Fraction | str
    if floats.is_nan(as_f32, 32) or exponent == 255:
        value = "nan"
    elif floats.is_infinite(as_f32, 32):
        value = "infinite"
    else:
        value = abs(floats.number(as_f32, 32)) * Fraction(2) ** (127 - exponent)
    return small.narrowed(sign, value, seed, MANTISSA[kind], finite)


def _scale_by_row(wave: Wave, inst: Inst, operand: Operand, lane: int, small: Small) -> int:
    """MLIR, AMDGPU dialect, scaled_ext_packed_matrix, of blocks of 32: lanes 0 to 15 or 16 to 31 have scales, two bytes
    of which are for the two halves of the wave; of numbers of 8 bits both halves take one byte."""
    bits = inst["scale_sel"].value
    if small.top == 0x80:
        byte, first = bits >> 1 & 3, 16 * (bits >> 3 & 1)
    else:
        byte, first = 2 * (bits >> 1 & 1) + lane // 16, 16 * (bits >> 2 & 1)
    return (raw(wave, operand, first + lane % 16, 32) >> 8 * byte & 0xFF) << 23


def many(wave: Wave, inst: Inst, row: ManyConverted) -> None:
    """V_CVT_SCALEF32 of 32 numbers (CDNA4 ISA, 12.11)."""
    name = inst.op.base.lower().removeprefix("v_cvt_scalef32_").removeprefix("v_cvt_scale_")
    result, source = name.split("_")[-2:]
    small = FORMATS[result if row.narrows else source]
    sizes = {"f32": 32, "f16": 16, "bf16": 16, "fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4}
    sources = [inst[f"src{number}"] for number in range(3) if inst.find(f"src{number}") is not None]
    blocks, rest = (sources[:2], sources[2:]) if "2xpk16" in name else (sources[:1], sources[1:])
    finite, target = bool(wave.scalar(MODE) >> 23 & 1), inst["vdst"].reg
    assert target is not None
    found = {}
    for lane in wave.lanes():
        seed = raw(wave, rest[0], lane, 32) if name.startswith("sr_") else None
        scale, whole = raw(wave, rest[-1], lane, 32), 0
        if row.by_row:
            scale = _scale_by_row(wave, inst, rest[-1], lane, small)
        for number in range(int(name.removeprefix("sr_").removeprefix("2x")[2:4].rstrip("_")) * len(blocks)):
            block = blocks[number % len(blocks)].reg
            assert block is not None
            at = number // len(blocks) * sizes[source]
            bits = wave.vector(block, lane) >> at & (1 << sizes[source]) - 1
            made = narrowed(small, bits, source, scale, seed, finite) if row.narrows else widened(
                small, bits, scale, result)
            whole |= made << number * sizes[result]
        found[lane] = whole
    for lane, whole in found.items():
        wave.set_vector(target, lane, whole)
