"""What a result of floats is made of: which sources, whether it is a sum, whether it has a pole.

In: a row of the semantics. Out: a :class:`Composition` for each result, and for each element of a packed one.
Invariant: it follows from the primitives that the meaning is made of; no opcode is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import isinf

from luthier_py.base.records import dataclass
from luthier_py.isa.semantics.algebra import Kind, Prim, Type, Value
from luthier_py.isa.semantics.meaning import Lanes, Scalar
from luthier_py.isa.semantics.readers import binding

NOTHING = frozenset[int]()


@dataclass(frozen=True, slots=True)
class Composition:
    """``sources``: numbers of the signature's sources. ``terms``: of a sum of two, the sources whose product each is.
    ``pole``: of finite sources it may be infinite exactly (1 / 0, the logarithm of 0)."""

    sources: frozenset[int] = NOTHING
    terms: tuple[frozenset[int], frozenset[int]] | None = None
    pole: bool = False


_KEEP = frozenset({Prim.SELECT, Prim.BITS, Prim.AND, Prim.CONVERT})
_POLES = frozenset({Prim.DIV, Prim.LOG2})
_COMPARISONS = frozenset({Prim.EQ, Prim.NE, Prim.LT, Prim.LE, Prim.UNORDERED})


class _Composing:
    """Ops whose values remember what they were made of."""

    def constant(self, type: Type, value: int | float) -> Value:
        return Value(self, type, Composition(pole=isinstance(value, float) and isinf(value)))

    def apply(self, prim: Prim, type: Type, *operands: Value) -> Value:
        if prim in _COMPARISONS:
            return Value(self, type, Composition())
        made = [_of(operand) for operand in operands[prim is Prim.SELECT :]]
        sources = NOTHING.union(*(each.sources for each in made))
        pole = any(each.pole for each in made) or prim in _POLES
        known = next((each.terms for each in made if each.terms), None) if prim in _KEEP else None
        terms = _terms(prim, made) if type.kind is Kind.FLOAT else None
        return Value(self, type, Composition(sources, terms or known, pole))


def _of(value: Value) -> Composition:
    assert isinstance(value.ref, Composition)
    return value.ref


def _terms(prim: Prim, made: list[Composition]) -> tuple[frozenset[int], frozenset[int]] | None:
    """Of a sum; None where the terms are sums themselves, or have a source in common."""
    if prim not in (Prim.ADD, Prim.SUB, Prim.FMA) or any(each.terms for each in made):
        return None
    *product, addend = (each.sources for each in made)
    first = NOTHING.union(*product)
    return (first, addend) if first and addend and not first & addend else None


@cache
def composition(row: Lanes | Scalar) -> tuple[tuple[Composition, ...], ...]:
    """For each result its elements: one, or as many as the signature says."""
    ops, width = _Composing(), binding.width(row)
    mapped = isinstance(row, Lanes) and row.packed

    def make_source(number: int) -> object:
        slot = row.signature.sources[number]
        value = Value(ops, slot.type if slot.type.bits else width, Composition(frozenset({number})))
        return (value,) * slot.count if slot.count > 1 and not mapped else value

    outcome = row.compute(*map(make_source, range(len(row.signature.sources))))
    several = len(row.signature.results) > 1
    outcomes = outcome if several else (outcome,)
    return tuple(_elements(each, slot.count) for each, slot in zip(outcomes, row.signature.results, strict=True))


def _elements(outcome: object, count: int) -> tuple[Composition, ...]:
    """What is mapped over elements is the same for each."""
    found = tuple(_values(outcome))
    return found * count if len(found) == 1 else found


def _values(outcome: object) -> Iterator[Composition]:
    if isinstance(outcome, Value):
        yield _of(outcome)
    elif isinstance(outcome, (tuple, list)):
        for each in outcome:
            yield from _values(each)
