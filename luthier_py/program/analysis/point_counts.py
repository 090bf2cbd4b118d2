"""How many places a domain has whose sides depend on each other.

In: sides in an order in which each is made of places along earlier ones. Out: a number. Invariant: it is exact, if no
side is negative anywhere: what is summed are polynomials with rational coefficients.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from luthier_py.isa.semantics.readers.sums import Axis, Extent

Polynomial: TypeAlias = "Mapping[tuple[Axis, ...], Fraction]"
"""The factor of each product of places; an axis is repeated as often as its power is."""


def count_points(sides: Mapping[Axis, Extent]) -> int:
    """The innermost axis is summed over first."""
    number: Polynomial = {(): Fraction(1)}
    for axis, side in reversed(tuple(sides.items())):
        number = _sum_over_axis(number, axis, side)
    return int(number.get((), 0))


def _sum_over_axis(over: Polynomial, axis: Axis, side: Extent) -> Polynomial:
    """The sum over the places of a side."""
    powers = max((product.count(axis) for product in over), default=0)
    sums = _power_sums({(): Fraction(side.base), **{(other,): Fraction(times) for other, times in side.terms}}, powers)
    found: Polynomial = {}
    for product, factor in over.items():
        rest = tuple(each for each in product if each is not axis)
        found = _plus(found, _times({rest: factor}, sums[product.count(axis)]))
    return found


def _power_sums(count: Polynomial, most: int) -> list[Polynomial]:
    """Of 0**n + 1**n + ... + (count - 1)**n, from n = 0 on: they telescope to count**(n + 1)."""
    sums: list[Polynomial] = []
    power = count
    for n in range(most + 1):
        rest = power
        for lower, each in enumerate(sums):
            rest = _plus(rest, _times({(): Fraction(-comb(n + 1, lower))}, each))
        sums.append(_times({(): Fraction(1, n + 1)}, rest))
        power = _times(power, count)
    return sums


def _plus(a: Polynomial, b: Polynomial) -> Polynomial:
    return {product: a.get(product, Fraction(0)) + b.get(product, Fraction(0)) for product in {**a, **b}}


def _times(a: Polynomial, b: Polynomial) -> Polynomial:
    found: dict[tuple[Axis, ...], Fraction] = defaultdict(Fraction)
    for left, factor in a.items():
        for right, other in b.items():
            found[tuple(sorted(left + right))] += factor * other
    return found
