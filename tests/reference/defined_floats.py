"""Float operations, a second time: by their names, from the manuals' pseudo-code, on exact fractions.

In: a name without V_ or S_, and what MODE and the target say of NaN. Out: a rule as in `defined_integers`. What IEEE
754 defines (a sum rounded once) is `floats`, whose numbers are fractions; what the manuals make of it is here.
Sources: MI200 ISA, 12.7 to 12.12; RDNA 3 ISA, 16.7 to 16.12; RDNA 4 ISA, 16.7 to 16.12.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction

from reference import floats
from reference.defined_integers import Defined, Rule, signed
from reference.floats import is_infinite, is_nan, is_zero, negative


@dataclass(frozen=True)
class How:
    """MODE.IEEE, and which of the two rules for minima the target has."""

    ieee: bool
    numbers_win: bool
    fnuz: bool = False  # of the target's floats of 8 bits: neither infinity nor -0
    no_halves: bool = False  # the target's dot products take denormal halves as zeros
    keeps: bool = False      # they keep all denormals


ONE = {16: 0x3C00, 32: 0x3F800000, 64: 0x3FF0000000000000}


def flushed(bits: int, width: int) -> int:
    return bits & floats.sign_bit(width) if floats.is_denormal(bits, width) else bits


def negated(bits: int, width: int) -> int:
    return bits ^ floats.sign_bit(width)


def quiet(bits: int, width: int) -> int:
    return bits | floats.quiet_bit(width)


def signalling(bits: int, width: int) -> bool:
    return is_nan(bits, width) and not bits & floats.quiet_bit(width)


def below(a: int, b: int, width: int) -> bool:
    """Of numbers; -0 is below +0."""
    def place(x: int) -> int:
        return -1 - floats.magnitude(x, width) if negative(x, width) else x

    return place(a) < place(b)


def extreme(a: int, b: int, width: int, largest: bool, how: How) -> int:
    """V_MIN and V_MAX; V_MIN_NUM and V_MAX_NUM where numbers win."""
    if how.ieee and not how.numbers_win:
        for each in (a, b):
            if signalling(each, width):
                return quiet(each, width)
    if is_nan(a, width) or is_nan(b, width):
        both = is_nan(a, width) and is_nan(b, width)
        return (quiet(a, width) if how.numbers_win else b) if both else b if is_nan(a, width) else a
    return a if below(a, b, width) != largest else b


def strict(a: int, b: int, width: int, largest: bool) -> int:
    """V_MINIMUM and V_MAXIMUM: a NaN is the result."""
    for each in (a, b):
        if is_nan(each, width):
            return quiet(each, width)
    return a if below(a, b, width) != largest else b


def median(a: int, b: int, c: int, width: int, how: How) -> int:
    def least(*x: int) -> int:
        return extreme(extreme(x[0], x[1], width, False, how), x[2], width, False, how)

    if any(is_nan(each, width) for each in (a, b, c)):
        return least(a, b, c)
    largest = extreme(extreme(a, b, width, True, how), c, width, True, how)
    if floats.equal(largest, a, width):
        return extreme(b, c, width, True, how)
    if floats.equal(largest, b, width):
        return extreme(a, c, width, True, how)
    return extreme(a, b, width, True, how)


def _minima(how: How) -> dict[str, Rule]:
    def two(largest: bool) -> Rule:
        return lambda w, a, b: extreme(a, b, w, largest, how)

    def hard(largest: bool) -> Rule:
        return lambda w, a, b: strict(a, b, w, largest)

    more, less = two(True), two(False)
    most, least = hard(True), hard(False)
    rules: dict[str, Rule] = {"MED3": lambda w, a, b, c: median(a, b, c, w, how)}
    for low, high, lower, upper in (("MIN", "MAX", less, more), ("MINIMUM", "MAXIMUM", least, most)):
        for name, one, other, pick in ((low, low + high, upper, lower), (high, high + low, lower, upper)):
            rules[name] = pick
            rules[f"{name}3"] = lambda w, a, b, c, f=pick: f(w, f(w, a, b), c)
            rules[one] = lambda w, a, b, c, f=pick, g=other: g(w, f(w, a, b), c)
    return rules | {"MIN_NUM": rules["MIN"], "MAX_NUM": rules["MAX"], "MIN3_NUM": rules["MIN3"],
                    "MAX3_NUM": rules["MAX3"]}


def _difference(w: int, a: int, b: int) -> int:
    return floats.add(a, b if is_nan(b, w) else negated(b, w), w)


def _mad(w: int, a: int, b: int, c: int) -> int:
    """The product is rounded. That of f32 has no denormals, whatever MODE says."""
    if w != 32:
        return floats.add(floats.multiply(a, b, w), c, w)
    a, b, c = (flushed(each, w) for each in (a, b, c))
    return flushed(floats.add(flushed(floats.multiply(a, b, w), w), c, w), w)


def _fraction(w: int, a: int) -> int:
    """Below 1, also where the difference would be rounded to it."""
    if is_nan(a, w) or is_infinite(a, w):
        return floats.default_nan(w)
    value = floats.number(a, w)
    exact = floats.rounded(value - math.floor(value), w)
    return min(exact, ONE[w] - 1)


def _zero_times_anything(w: int, a: int, b: int) -> int:
    return 0 if is_zero(a, w) or is_zero(b, w) else floats.multiply(a, b, w)


def _scaled(w: int, a: int, exponent: int, bits: int) -> int:
    """ldexp."""
    if is_nan(a, w):
        return quiet(a, w)
    if is_infinite(a, w) or is_zero(a, w):
        return a
    return floats.rounded(floats.number(a, w) * Fraction(2) ** max(-5000, min(signed(exponent, bits), 5000)), w)


def _power_of(value: Fraction) -> int:
    """The exponent of a number in 1/2 <= m < 1."""
    power = abs(value.numerator).bit_length() - value.denominator.bit_length()
    return power + 1 if abs(value) >= Fraction(2) ** power else power


def _mantissa(w: int, a: int) -> int:
    if is_nan(a, w) or is_infinite(a, w) or is_zero(a, w):
        return quiet(a, w) if is_nan(a, w) else a
    value = floats.number(a, w)
    return floats.rounded(value / Fraction(2) ** _power_of(value), w)


def _exponent(w: int, a: int) -> int:
    if is_nan(a, w) or is_infinite(a, w) or is_zero(a, w):
        return 0
    return _power_of(floats.number(a, w))


def _field(w: int, a: int) -> int:
    """exponent() of the manuals: as it is stored."""
    return floats.magnitude(a, w) >> floats.MANTISSA[w]


def _fixed_up(w: int, quotient: int, below_line: int, above: int) -> int:
    sign = (below_line ^ above) & floats.sign_bit(w)
    for each in (above, below_line):
        if is_nan(each, w):
            return quiet(each, w)
    zeros, infinities = ((of(below_line, w), of(above, w)) for of in (is_zero, is_infinite))
    if all(zeros) or all(infinities):
        return floats.sign_bit(w) | floats.default_nan(w)
    if zeros[0] or infinities[1]:
        return sign | floats.infinity(w)
    if infinities[0] or zeros[1]:
        return sign
    apart = _field(w, above) - _field(w, below_line)
    small, large = {16: (26, 16), 32: (150, 128), 64: (1075, 1024)}[w]
    if apart < -small:
        return sign
    if apart > large:  # the quotient is no number of the type; manuals say so of the quotient that S0 is then
        return sign | floats.infinity(w)
    return sign | floats.magnitude(quotient, w)


def _rounding(how: str) -> Rule:
    return lambda w, a: floats.to_integral(a, w, how)


def _near(function: str) -> Rule:
    return lambda w, a: floats.approximately(a, w, function)


def _root(w: int, a: int) -> int:
    return floats.square_root(a, w)


def _reciprocal_root(w: int, a: int) -> int:
    """Rounded once: within two roundings' reach of any unit that is."""
    if is_nan(a, w) or is_zero(a, w) or is_infinite(a, w) or negative(a, w):
        return floats.divide(ONE[w], floats.square_root(a, w), w)
    places = 2600
    root = Fraction(math.isqrt(int((1 / floats.number(a, w)) * (1 << 2 * places))), 1 << places)
    return floats.rounded(root, w)


OPERATIONS: dict[str, Rule] = {
    "ADD": lambda w, a, b: floats.add(a, b, w), "SUB": _difference, "SUBREV": lambda w, a, b: _difference(w, b, a),
    "MUL": lambda w, a, b: floats.multiply(a, b, w), "FMA": lambda w, a, b, c: floats.fused(a, b, c, w),
    "MAD": _mad, "FRACT": _fraction, "MUL_LEGACY": _zero_times_anything,
    "MAD_LEGACY": lambda w, a, b, c: _mad(w, a, b, c) if not (
        is_zero(flushed(a, w), w) or is_zero(flushed(b, w), w)) else flushed(floats.add(0, flushed(c, w), w), w),
    "FMA_LEGACY": lambda w, a, b, c: floats.add(0, c, w) if is_zero(a, w) or is_zero(b, w) else floats.fused(
        a, b, c, w),
    "FLOOR": _rounding("floor"), "CEIL": _rounding("ceil"), "TRUNC": _rounding("trunc"), "RNDNE": _rounding("rint"),
    "LDEXP": lambda w, a, e: _scaled(w, a, e, 16 if w == 16 else 32), "FREXP_MANT": _mantissa,
    "DIV_FIXUP": _fixed_up,
}  # fmt: skip
for _alias, _known in (("FMAC", "FMA"), ("FMAAK", "FMA"), ("FMAMK", "FMA"), ("MAC", "MAD"), ("MADAK", "MAD"),
                       ("MADMK", "MAD"), ("FMAC_LEGACY", "FMA_LEGACY"), ("MAC_LEGACY", "MAD_LEGACY")):
    OPERATIONS[_alias] = OPERATIONS[_known]
NEAR: dict[str, Rule] = {
    "RCP": lambda w, a: floats.divide(ONE[w], a, w), "RCP_IFLAG": lambda w, a: floats.divide(ONE[w], a, w),
    "RSQ": _reciprocal_root, "SQRT": _root, "EXP": _near("exp2"), "LOG": _near("log2"), "EXP_LEGACY": _near("exp2"),
    "LOG_LEGACY": _near("log2"), "SIN": _near("sin"), "COS": _near("cos"), "TANH": _near("tanh"),
}  # fmt: skip
_KEEP = ("SIN", "COS", "TANH")  # the others of f32 have no denormals


def _class(w: int, a: int, mask: int) -> bool:
    """Bits of the mask: sNaN, qNaN, -inf, -normal, -denormal, -0, and up to +inf."""
    if is_nan(a, w):
        return bool(mask >> (not signalling(a, w)) & 1)
    kind = 3 if is_infinite(a, w) else 0 if is_zero(a, w) else 1 if floats.is_denormal(a, w) else 2
    return bool(mask >> (5 - kind if negative(a, w) else 6 + kind) & 1)


def _relation(name: str) -> Rule:
    if name in ("F", "TRU"):
        return lambda w, a, b: name == "TRU"
    if name in ("O", "U"):
        return lambda w, a, b: floats.unordered(a, b, w) == (name == "U")
    if name.startswith("N"):
        inner = _relation({"NEQ": "EQ"}.get(name, name[1:]))
        return lambda w, a, b: not inner(w, a, b)

    def rule(w: int, a: int, b: int) -> bool:
        if floats.unordered(a, b, w):
            return False
        x, y = (Fraction(2) ** 2000 * (-1 if negative(e, w) else 1) if is_infinite(e, w) else floats.number(e, w)
                for e in (a, b))
        return {"LT": x < y, "EQ": x == y, "LE": x <= y, "GT": x > y, "LG": x != y, "GE": x >= y}[name]

    return rule


def comparison(name: str) -> Defined | None:
    """V_CMP and S_CMP of floats, V_CMP of integers."""
    found = re.fullmatch(r"CMP(X?)_([A-Z]+)_([FUI])(16|32|64)", name)
    if found is None:
        return None
    mask, kind, width = found[1], found[3], int(found[4])
    if found[2] == "CLASS":
        told: Rule = lambda a, b: _class(width, a, b)  # noqa: E731
    elif kind == "F":
        relation = _relation(found[2])
        told = lambda a, b: relation(width, a, b)  # noqa: E731
    else:
        names = {"F": (), "T": "<=>", "LT": "<", "EQ": "=", "LE": "<=", "GT": ">", "NE": "<>", "GE": ">="}
        holds = names[found[2]]

        def told(a: int, b: int) -> bool:
            x, y = (signed(e, width) if kind == "I" else e for e in (a, b))
            return ("<" if x < y else "=" if x == y else ">") in holds

    return Defined((lambda a, b: (told(a, b), told(a, b))) if mask else told)


def float_rule(name: str, how: How) -> Defined | None:
    packed, name = name.startswith("PK_"), name.removeprefix("PK_")
    found = re.fullmatch(r"(.+?)_F(16|32|64)", name)
    if name in ("FREXP_EXP_I16_F16", "FREXP_EXP_I32_F32", "FREXP_EXP_I32_F64"):
        return Defined(lambda a: _exponent(int(name[-2:]), a))
    if found is None:
        return None
    stem, width = found[1], int(found[2])
    if stem in NEAR:
        rule, zeros = NEAR[stem], width == 32 and stem not in _KEEP
        return Defined(lambda a: flushed(rule(width, flushed(a, width)), width) if zeros else rule(width, a), near=True)
    operation = (OPERATIONS | _minima(how)).get(stem)
    if operation is None:
        return None
    if not packed:
        return Defined(lambda *x: operation(width, *x))
    mask = (1 << width) - 1
    return Defined(lambda *x: sum(operation(width, *(e >> at & mask for e in x)) << at for at in (0, width)))
