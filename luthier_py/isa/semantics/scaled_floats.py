"""Conversions of CDNA 4 and gfx1250 between small floats and wider ones, with a scale: a power of two.

In: one lane's operands. Out: results; and, as data, the conversions of 8 to 32 numbers in many registers. Sources: AMD
Instinct CDNA4 ISA, 12.11 (V_CVT_SCALEF32, whose scale is the exponent of an f32); of gfx1250, ROCm's hip-fpsan
(tests/cvt_scalef32_pk_gfx1250_test.cpp) and MLIR (AMDGPU dialect, scaled_ext_packed_matrix). What they leave open is as
in small_floats. To small floats numbers are divided by the scale, from them multiplied. Denormals are never flushed.
"""

from __future__ import annotations

from collections.abc import Callable

from luthier_py.base.records import dataclass
from luthier_py.isa.semantics.algebra import F16, F32, U16, U32, Value, concat
from luthier_py.isa.semantics.cdna4 import from_bf16, to_bf16
from luthier_py.isa.semantics.meaning import Compute, Lanes, Situation, Variants, declare, signature
from luthier_py.isa.semantics.small_floats import (
    BF6,
    BF8,
    FP4,
    FP6,
    FP8,
    SOURCE,
    SmallFloat,
    destination_byte,
    in_byte,
)


@dataclass(frozen=True, slots=True)
class WideFloat:
    """A format of 16 or 32 bits, the other side of a conversion."""

    word: str                           # of a signature
    mantissa_bits: int
    to_f32: Callable[[Value], Value]
    of_f32: Callable[[Value], Value]    # its bits

    @property
    def bits(self) -> int:
        """Bits of a number: 32 or 16."""
        return 32 if self.word == "f32" else 16


F32_WIDE = WideFloat("f32", 23, lambda a: a.as_(F32), lambda a: a.as_(U32))
F16_WIDE = WideFloat("f16", 10, lambda a: a.as_(F16).to(F32), lambda a: a.to(F16).as_(U16))
BF16_WIDE = WideFloat("u16", 7, from_bf16, to_bf16)
_WIDE = {"F32": F32_WIDE, "F16": F16_WIDE, "BF16": BF16_WIDE}
_SMALL = {"FP8": FP8, "BF8": BF8, "FP4": FP4}
_SMALL6 = {"FP6": FP6, "BF6": BF6}


def _declare(name: str, text: str, of: Callable[[Situation], Compute]) -> None:
    made = signature(text)
    declare(f"V_CVT_SCALEF32_{name}", Variants(lambda situation: Lanes(made, of(situation), flushes=False)))


# From small floats.
def _part(situation: Situation, bits: int) -> int:
    """Where the part of the source begins that op_sel chooses: a half, or a byte."""
    chosen = [bool(situation.field(f"src{number}_modifiers") & SOURCE) for number in (0, 1)]
    return 16 * chosen[0] if bits == 16 else 8 * chosen[0] + 16 * chosen[1]


def _one_widened(small: SmallFloat, wide: WideFloat) -> Callable[[Situation], Compute]:
    def of(situation: Situation) -> Compute:
        place = _part(situation, 8)

        def compute(a: Value, scale: Value) -> Value:
            value = small.widen_scaled(a >> place, scale)
            return value if wide is F32_WIDE else wide.of_f32(value).as_(F16)

        return compute
    return of


def _two_widened(small: SmallFloat, wide: WideFloat) -> Callable[[Situation], Compute]:
    def of(situation: Situation) -> Compute:
        place = _part(situation, 2 * small.bits)

        def compute(a: Value, scale: Value) -> Value:
            first, second = (wide.of_f32(small.widen_scaled(a >> place + at, scale)) for at in (0, small.bits))
            return concat(second, first)

        return compute
    return of


# To small floats.
Narrow = Callable[..., Value]


def _narrow(small: SmallFloat, wide: WideFloat, situation: Situation) -> Narrow:
    def narrow(a: Value, scale: Value, seed: Value | None = None) -> Value:
        return small.narrow(wide.to_f32(a), seed, scale, situation.keeps_finite, wide.mantissa_bits)
    return narrow


def _two_narrowed(small: SmallFloat, wide: WideFloat) -> Callable[[Situation], Compute]:
    """Two f32 in two operands, or two numbers in one; to a half that op_sel chooses, or a byte."""
    def of(situation: Situation) -> Compute:
        narrow, byte = _narrow(small, wide, situation), destination_byte(situation)

        def compute(*given: Value) -> Value:
            first, second, scale = given[:3] if wide is F32_WIDE else (*given[0], given[1])  # type: ignore[misc]
            both = narrow(first, scale) | narrow(second, scale) << small.bits
            return both.to(U16) if small.bits == 8 else in_byte(byte, both, given[-1])

        return compute
    return of


def _one_stochastic(small: SmallFloat, wide: WideFloat) -> Callable[[Situation], Compute]:
    def of(situation: Situation) -> Compute:
        narrow, byte = _narrow(small, wide, situation), destination_byte(situation)
        return lambda a, seed, scale, old: in_byte(byte, narrow(a, scale, seed), old)
    return of


def _two_stochastic(small: SmallFloat, wide: WideFloat) -> Callable[[Situation], Compute]:
    def of(situation: Situation) -> Compute:
        narrow, byte = _narrow(small, wide, situation), destination_byte(situation)

        def compute(two: tuple[Value, Value], seed: Value, scale: Value, old: Value) -> Value:
            first, second = (narrow(a, scale, seed) for a in two)
            return in_byte(byte, first | second << small.bits, old)

        return compute
    return of


for _name, _small in _SMALL.items():
    for _other, _wide in _WIDE.items():
        _two = "f32 f32" if _other == "F32" else f"2{_wide.word}"
        _declare(f"PK_{_other}_{_name}", f"u32 u32 -> {'u64' if _other == 'F32' else 'u32'}",
                 _two_widened(_small, _wide))
        _declare(f"PK_{_name}_{_other}", f"{_two} u32 -> u16" if _small.bits == 8 else f"{_two} u32 old -> u32",
                 _two_narrowed(_small, _wide))
        if _small.bits == 4:
            _declare(f"SR_PK_{_name}_{_other}", f"2{_wide.word} u32 u32 old -> u32", _two_stochastic(_small, _wide))
            continue
        _declare(f"SR_{_name}_{_other}", f"{_wide.word} u32 u32 old -> u32", _one_stochastic(_small, _wide))
        if _other != "BF16":
            _declare(f"{_other}_{_name}", f"u32 u32 -> {_wide.word}", _one_widened(_small, _wide))


# Many at once.
@dataclass(frozen=True, slots=True)
class ManyConverted:
    """Numbers, packed from the lowest bit of the first register on. From two operands: taken in turns.

    ``by_row``: the scale is a byte, an exponent with a bias of 127, of the scale's register in one of 16 lanes (see
    ``scale_place``).
    """

    small: SmallFloat
    wide: WideFloat
    narrows: bool
    stochastic: bool = False
    operands: int = 1      # that hold the numbers; the seed and the scale follow
    count: int = 32
    by_row: bool = False

    @property
    def source_bits(self) -> int:
        """Bits of a number before the conversion; they are packed without gaps."""
        return self.wide.bits if self.narrows else self.small.bits

    @property
    def result_bits(self) -> int:
        """Bits of a number after the conversion; they are packed without gaps."""
        return self.small.bits if self.narrows else self.wide.bits

    def scale_place(self, scale_sel: int) -> tuple[int, int, bool] | None:
        """(which 16 lanes hold scales, byte, whether lanes 16 to 31 take the byte above it). A lane takes the scale of
        that of them with its number modulo 16. None for blocks of 16 elements, where MLIR's text and code disagree."""
        if scale_sel & 1:
            return None
        if self.small.bits == 8:
            return scale_sel >> 3 & 1, scale_sel >> 1 & 3, False
        return scale_sel >> 2 & 1, scale_sel & 2, True

    def convert(self, bits: Value, scale: Value, seed: Value | None, keeps_finite: bool) -> Value:
        """The bits (u32) of one number to those of the other."""
        if not self.narrows:
            return self.wide.of_f32(self.small.widen_scaled(bits, scale)).to(U32)
        value = self.wide.to_f32(bits if self.wide is F32_WIDE else bits.to(U16))
        return self.small.narrow(value, seed, scale, keeps_finite, self.wide.mantissa_bits)


for _name, _small in _SMALL6.items():
    for _other, _wide in _WIDE.items():
        declare(f"V_CVT_SCALEF32_PK32_{_other}_{_name}", ManyConverted(_small, _wide, narrows=False))
        declare(f"V_CVT_SCALEF32_SR_PK32_{_name}_{_other}", ManyConverted(_small, _wide, narrows=True, stochastic=True))
        if _other == "F32":
            declare(f"V_CVT_SCALEF32_2XPK16_{_name}_F32", ManyConverted(_small, _wide, narrows=True, operands=2))
        else:
            declare(f"V_CVT_SCALEF32_PK32_{_name}_{_other}", ManyConverted(_small, _wide, narrows=True))
for _name, _small in (_SMALL | _SMALL6).items():
    _count = 16 if _small.bits == 6 else 8
    for _other, _wide in _WIDE.items():
        declare(f"V_CVT_SCALE_PK{_count}_{_other}_{_name}",
                ManyConverted(_small, _wide, narrows=False, count=_count, by_row=True))
        for _word in "", "SR_":
            declare(f"V_CVT_SCALEF32_{_word}PK{_count}_{_name}_{_other}",
                    ManyConverted(_small, _wide, narrows=True, stochastic=bool(_word), count=_count))
