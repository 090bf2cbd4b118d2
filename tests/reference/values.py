"""Values to compute with: edges of each type, and random ones.

In: a type of the algebra and a seeded generator. Out: bits.
"""

from __future__ import annotations

import random
from functools import cache

from luthier_py.isa.semantics.algebra import Kind, Type
from reference.floats import MANTISSA, infinity, quiet_bit, rounded, sign_bit
from reference.floats import Fraction as Number

# Among them what becomes a denormal where it is made narrower, or taken for a power of 2.
_NUMBERS = (1, 2, 3, Number(1, 2), Number(3, 2), Number(5, 2), Number(7, 2), Number(1, 3), 255, 256, 1000, 2**15, 2**31,
            2**32, 20, 130, 140, Number(1, 2**14), Number(1, 2**15), Number(3, 2**18), Number(1, 2**130),
            Number(3, 2**135), Number(1, 2**126), Number(1, 2**62), 2**63, 2**100)


@cache
def float_edges(width: int) -> tuple[int, ...]:
    top, mantissa = infinity(width), (1 << MANTISSA[width]) - 1
    positive = [0, 1, 2, mantissa, mantissa - 1, mantissa + 1, top - 1, top, top | quiet_bit(width) | 0x23, top | 1,
                *(rounded(Number(number), width) for number in _NUMBERS)]
    return *positive, *(bits | sign_bit(width) for bits in positive)


def integer_edges(width: int) -> list[int]:
    near = {0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x800000,
            0x5555555555555555, 1 << width - 1, (1 << width - 1) - 1, 1 << width // 2}
    return [bits & ((1 << width) - 1) for value in sorted(near) for bits in (value, -value, ~value)]


_EDGES = {
    **{(Kind.FLOAT, width): float_edges(width) for width in (16, 32, 64)},
    **{(Kind.UINT, width): integer_edges(width) for width in (8, 16, 32, 64)},
}


def some(generator: random.Random, type: Type) -> int:
    """Mostly edges; floats are sometimes near each other or near zero, so that they meet."""
    width = type.bits
    kind = Kind.FLOAT if type.kind is Kind.FLOAT else Kind.UINT
    draw = generator.random()
    if draw < 0.15 and kind is Kind.FLOAT:
        return generator.choice((0, 1, 2, (1 << MANTISSA[width]) - 1)) | generator.choice((0, sign_bit(width)))
    if draw < 0.6:
        return generator.choice(_EDGES[kind, width])
    if draw < 0.85 and kind is Kind.FLOAT:
        return rounded(Number(generator.gauss(0, 1) * 10.0 ** generator.randint(-3, 3)), width)
    return generator.getrandbits(width)


def word(generator: random.Random, type: Type, bits: int) -> int:
    """``bits`` of elements of the type, from the lowest on; an element narrower than the rest has noise above it."""
    value = generator.getrandbits(bits)
    for place in range(0, bits, max(type.bits, 1)):
        if type.bits <= bits - place:
            mask = (1 << type.bits) - 1
            value = value & ~(mask << place) | some(generator, type) << place
    return value
