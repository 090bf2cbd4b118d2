"""Conversions, faces of a cube and dot products of floats, a second time: see `defined_floats`.

In: a name without V_ or S_. Out: a rule of bits. Sources: MI200 ISA, 12.8 to 12.12; RDNA 3 ISA, 16.8 and 16.12.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction

from reference import floats
from reference.defined_floats import ONE, How, _field, _zero_times_anything, extreme, flushed, negated
from reference.defined_integers import M16, Defined, Rule, clip, number, signed
from reference.floats import is_infinite, is_nan, negative
from reference.small import FORMATS, Small, widened

_WIDTHS = {"F16": 16, "F32": 32, "F64": 64}


def to_integer(a: int, width: int, kind: str, bits: int, whole: Callable[[Fraction], int] = math.trunc) -> int:
    """Into the range of the type; NaN is 0."""
    if is_nan(a, width):
        return 0
    if is_infinite(a, width):
        return clip(-(1 << 99) if negative(a, width) else 1 << 99, kind, bits)
    return clip(whole(floats.number(a, width)), kind, bits)


def toward_zero(a: int) -> int:
    """f32 to f16 of no larger magnitude; infinities stay."""
    if is_nan(a, 32) or is_infinite(a, 32):
        return floats.resized(a, 32, 16)
    found, value = floats.resized(a, 32, 16), abs(floats.number(a, 32))
    larger = is_infinite(found, 16) or abs(floats.number(found, 16)) > value
    return found - 1 if larger else found


def normalized(a: int, width: int, kind: str) -> int:
    """-1 to 1, or 0 to 1, to all of a 16-bit type; to the nearest, ties to the even one."""
    most, least = (32767, -1) if kind == "I" else (65535, 0)
    if is_nan(a, width):
        return 0
    if is_infinite(a, width):
        value = Fraction(least) if negative(a, width) else Fraction(1)
    else:
        value = max(Fraction(least), min(floats.number(a, width), Fraction(1)))
    product = floats.rounded(value * most, 32)
    return round(floats.number(product, 32)) if product else 0


def _pair(one: Callable[[int], int]) -> Defined:
    return Defined(lambda a, b: one(a) & M16 | (one(b) & M16) << 16)


def of_bf16(bits: int) -> int:
    return (bits & M16) << 16


def to_bf16(a: int) -> int:
    """The upper half of an f32, to the nearest, ties to the even one."""
    if is_nan(a, 32):
        return a >> 16 | 0x40
    lower, upper = a & M16, a >> 16
    return upper + (lower > 0x8000 or lower == 0x8000 and upper & 1)


def _inserted(a: int, place: int, word: int) -> int:
    """V_CVT_PK_U8_F32: a byte of a word."""
    at = 8 * (place % 4)
    return word & ~(0xFF << at) | to_integer(a, 32, "U", 8, round) << at


# Faces of a cube: by the axis of the largest magnitude, z before y before x.
def _by_axis(a: int, b: int, c: int) -> str:
    def at_least(x: int, y: int) -> bool:
        sizes = [floats.magnitude(each, 32) for each in (x, y)]
        return not is_nan(x, 32) and not is_nan(y, 32) and sizes[0] >= sizes[1]

    return "z" if at_least(c, a) and at_least(c, b) else "y" if at_least(b, a) else "x"


def _cube(rules: dict[str, Rule]) -> Defined:
    def rule(a: int, b: int, c: int) -> int:
        axis = _by_axis(a, b, c)
        major = {"x": a, "y": b, "z": c}[axis]
        return rules[axis](a, b, c, floats.less(major, 0, 32))

    return Defined(rule)


def _minus(bits: int) -> int:
    return negated(bits, 32)


_ID = {axis: floats.rounded(Fraction(n), 32) for n, axis in enumerate(("x", "-x", "y", "-y", "z", "-z"))}
_CUBES = {
    "CUBEID_F32": _cube({axis: lambda a, b, c, neg, at=axis: _ID["-" * neg + at] for axis in "xyz"}),
    "CUBESC_F32": _cube({"z": lambda a, b, c, neg: _minus(a) if neg else a, "y": lambda a, b, c, neg: a,
                         "x": lambda a, b, c, neg: c if neg else _minus(c)}),
    "CUBETC_F32": _cube({"z": lambda a, b, c, neg: _minus(b), "y": lambda a, b, c, neg: _minus(c) if neg else c,
                         "x": lambda a, b, c, neg: _minus(b)}),
    "CUBEMA_F32": _cube({axis: lambda a, b, c, neg, n=n: floats.multiply((a, b, c)[n], 0x40000000, 32)
                         for n, axis in enumerate("xyz")}),
}  # fmt: skip


def _lit(a: int, b: int, c: int) -> int:
    lowest = 0xFF7FFFFF
    dark = is_nan(b, 32) or is_nan(c, 32) or b in (lowest, 0xFF800000) or not floats.less(0, c, 32)
    return lowest if dark else _zero_times_anything(32, a, b)


def _two_over_pi(places: int) -> int:
    """As many binary places of it, by Machin's formula."""
    one = 1 << places + 64

    def arctangent(of: int) -> int:
        term, total, n = one // of, 0, 1
        while term:
            total += term // n if n % 4 == 1 else -(term // n)
            term //= of * of
            n += 2
        return total

    pi = 4 * (4 * arctangent(5) - arctangent(239))
    return (one * 2 << places) // pi


_PI_BITS = _two_over_pi(1201)


def _trig_preop(a: int, segment: int) -> int:
    shift, exponent = segment % 32 * 53, _field(64, a)
    shift += max(exponent - 1077, 0)
    taken = (_PI_BITS << shift) % (1 << 1201) >> 1201 - 53
    return floats.rounded(Fraction(taken) * Fraction(2) ** (-53 - shift + (128 if exponent >= 1968 else 0)), 64)


def _dot2(of: Callable[[int], int], wide: Callable[[int], int], narrow: Callable[[int], int], keeps: bool) -> Defined:
    """Products added one after the other in f32, the lowest first; ``keeps``: there are denormals of f32."""
    def normal(bits: int) -> int:
        return bits if keeps else flushed(bits, 32)

    def rule(a: int, b: int, c: int) -> int:
        total = normal(wide(c))
        for at in (0, 16):
            total = floats.fused(of(a >> at & M16), of(b >> at & M16), total, 32)
        return narrow(normal(total))

    return Defined(rule)


def _of_f16(bits: int) -> int:
    return floats.resized(bits & M16, 16, 32)


def _of_f16_flushed(bits: int) -> int:
    return _of_f16(flushed(bits & M16, 16))


def _plain(bits: int) -> int:
    return bits


def _of_bf16_flushed(bits: int) -> int:
    return flushed(of_bf16(bits), 32)


def _one_nan(a: int) -> int:
    """Which NaN a bf16 is, no source says: one for all."""
    return 0x7FC0 if is_nan(a, 32) else to_bf16(a)


def _bfloats(operation: Rule) -> Defined:
    """Of pairs, in f32, rounded at the end; clamped to 0 and 1, and NaN to 0."""
    def rule(clamps: bool, *words: int) -> int:
        result = 0
        for at in (0, 16):
            value = operation(*(of_bf16(word >> at) for word in words))
            if clamps and (is_nan(value, 32) or not floats.less(0, value, 32)):
                value = 0
            elif clamps and floats.less(ONE[32], value, 32):
                value = ONE[32]
            result |= _one_nan(value) << at
        return result

    return Defined(lambda *x: rule(False, *x), lambda *x: rule(True, *x))


def _mixed(rule: Rule, narrow: bool) -> Defined:
    return Defined(lambda a, b, c: floats.resized(rule(a, b, c), 32, 16) if narrow else rule(a, b, c))


def _zeroed(rule: Rule) -> Defined:
    """A half without denormals."""
    return Defined(lambda a, b, c: flushed(floats.resized(rule(a, b, c), 32, 16), 16))


def _fused(a: int, b: int, c: int) -> int:
    return floats.fused(a, b, c, 32)


def _added(a: int, b: int, c: int) -> int:
    a, b, c = (flushed(each, 32) for each in (a, b, c))
    return flushed(floats.add(flushed(floats.multiply(a, b, 32), 32), c, 32), 32)


NAMED: dict[str, Defined] = _CUBES | {
    "MULLIT_F32": Defined(_lit), "TRIG_PREOP_F64": Defined(_trig_preop),
    **{f"CVT_F32_UBYTE{n}": Defined(lambda a, n=n: floats.rounded(Fraction(a >> 8 * n & 255), 32)) for n in range(4)},
    "CVT_OFF_F32_I4": Defined(lambda a: floats.rounded(Fraction(signed(a, 4), 16), 32)),
    "CVT_RPI_I32_F32": Defined(lambda a: to_integer(a, 32, "I", 32, lambda x: math.floor(x + Fraction(1, 2)))),
    "CVT_FLR_I32_F32": Defined(lambda a: to_integer(a, 32, "I", 32, math.floor)),
    "CVT_PKRTZ_F16_F32": _pair(toward_zero), "CVT_PK_RTZ_F16_F32": _pair(toward_zero),
    "CVT_PK_F16_F32": _pair(lambda a: floats.resized(a, 32, 16)), "CVT_PK_BF16_F32": _pair(to_bf16),
    "CVT_PK_I16_F32": _pair(lambda a: to_integer(a, 32, "I", 16)),
    "CVT_PK_U16_F32": _pair(lambda a: to_integer(a, 32, "U", 16)),
    "CVT_PK_U8_F32": Defined(_inserted), "CVT_PKACCUM_U8_F32": Defined(_inserted),
    **{f"CVT_PKNORM_{k}16_F{w}": _pair(lambda a, k=k, w=w: normalized(a, w, k)) for k in "IU" for w in (16, 32)},
    **{f"CVT_NORM_{k}16_F16": Defined(lambda a, k=k: normalized(a, 16, k)) for k in "IU"},
    "PACK_B32_F16": Defined(lambda a, b: a | b << 16), "CVT_HI_F32_F16": Defined(lambda a: _of_f16(a >> 16)),
    "CVT_F32_BF16": Defined(of_bf16),
    "FMA_MIX_F32": _mixed(_fused, False), "FMA_MIXLO_F16": _mixed(_fused, True), "FMA_MIXHI_F16": _mixed(_fused, True),
    "MAD_MIX_F32": _mixed(_added, False), "MAD_MIXLO_F16": _zeroed(_added), "MAD_MIXHI_F16": _zeroed(_added),
    "DOT2_F16_F16": _dot2(_of_f16, _of_f16, lambda a: floats.resized(a, 32, 16), False),
    "PK_ADD_BF16": _bfloats(lambda *x: floats.add(*x, 32)), "PK_MUL_BF16": _bfloats(lambda *x: floats.multiply(*x, 32)),
    "PK_FMA_BF16": _bfloats(lambda *x: floats.fused(*x, 32)),
    "PK_MIN_NUM_BF16": _bfloats(lambda *x: extreme(*x, 32, False, How(True, True))),
    "PK_MAX_NUM_BF16": _bfloats(lambda *x: extreme(*x, 32, True, How(True, True))),
}  # fmt: skip


def _small(name: str, how: How) -> Defined | None:
    """Floats of 8 bits, and their dot products: one after the other, in f32."""
    def format_of(word: str) -> Small:
        return FORMATS[word.lower() + " fnuz" * how.fnuz]

    found = re.fullmatch(r"CVT_(PK_)?(F16|F32)_(FP8|BF8)", name)
    if found is not None:
        small, kind, width = format_of(found[3]), found[2].lower(), _WIDTHS[found[2]]
        return Defined(lambda a: sum(widened(small, a >> at & 255, ONE[32], kind) << at // 8 * width
                                     for at in ((0, 8) if found[1] else (0,))))
    found = re.fullmatch(r"DOT4_F32_(FP8|BF8)_(FP8|BF8)", name)
    if found is None:
        return None
    first, second = FORMATS[found[1].lower()], FORMATS[found[2].lower()]

    def rule(a: int, b: int, c: int) -> int:
        for at in range(0, 32, 8):
            x, y = (widened(small, e >> at & 255, ONE[32], "f32") for small, e in ((first, a), (second, b)))
            c = floats.fused(x, y, c, 32)
        return c

    return Defined(rule)


def conversion(name: str, how: How) -> Defined | None:
    if name in ("DOT2_F32_F16", "DOT2C_F32_F16"):
        return _dot2(_of_f16_flushed if how.no_halves else _of_f16, _plain, _plain, how.keeps)
    if name in ("DOT2_F32_BF16", "DOT2C_F32_BF16", "DOT2_BF16_BF16"):
        narrow, of = name.endswith("BF16_BF16"), of_bf16 if how.keeps else _of_bf16_flushed
        return _dot2(of, of_bf16 if narrow else _plain, _one_nan if narrow else _plain, how.keeps)
    found = re.fullmatch(r"CVT_([FUI]\d\d)_([FUI]\d\d)", name)
    if name in NAMED or found is None:
        return NAMED.get(name) or _small(name, how)
    to, source = found.groups()
    bits, width = int(to[1:]), int(source[1:])
    if source[0] != "F":
        return Defined(lambda a: floats.rounded(Fraction(number(a, source[0], width)), bits))
    if to[0] != "F":
        return Defined(lambda a: to_integer(a, width, to[0], bits))
    return Defined(lambda a: floats.resized(a, width, bits))
