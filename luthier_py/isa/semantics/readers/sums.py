"""Numbers over a domain of waves: sums of multiples of a wave's ids, with a separate part in each lane.

In: operations of the algebra, and the domain's extent along each axis. Out: :class:`Sum`, which is exact for every
wave of the domain, or :class:`Depends`, a number that the launch alone decides, and that is no such sum over all of the
domain. Invariant: neither depends on memory, and a Sum is what each wave of the domain would compute; None says
nothing.

An axis without a side has no end: where the kernel's arguments are, which is unknown before the launch. A Depends
without axes is what an analysis computes of a launch that is still to come. Turns of loops are axes like any other, but
their sides need not be the same everywhere: how often a loop turns may be a sum of multiples of ids, and of turns of
the loops around it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from itertools import repeat
from typing import NamedTuple, TypeAlias

from luthier_py.isa.semantics.algebra import U32, Kind, Prim, Type, Value
from luthier_py.isa.semantics.readers.concrete import specialize_primitive


class Axis(IntEnum):
    """What waves of a launch differ in, and addresses that only the device gives."""

    WAVE = 0  # of its work-group
    X = 1     # the work-group's ids
    Y = 2
    Z = 3
    ARGUMENTS = 4  # the address of the kernarg segment
    PACKET = 5     # of the dispatch packet
    TURN = 6       # of the outermost loop that is followed as a whole
    TURN_2 = 7     # of a loop in it, and so on
    TURN_3 = 8
    TURN_4 = 9


_UPWARD = {Prim.ADD, Prim.SUB, Prim.MUL, Prim.AND, Prim.OR, Prim.XOR, Prim.BITS, Prim.RESIZE}  # no bit comes lower
_LOW = (1 << 32) - 1
Base: TypeAlias = "int | tuple[int, ...]"  # one number for all lanes, or one for each


class Sum(NamedTuple):
    """``base``, unsigned, plus multiples of where a wave is in the domain, modulo the width of the type."""

    base: Base
    terms: tuple[tuple[Axis, int], ...] = ()


class Extent(NamedTuple):
    """The domain's extent along an axis: a whole number of any size, plus multiples of where one is along others."""

    base: int
    terms: tuple[tuple[Axis, int], ...] = ()

    def with_end(self, axis: Axis, end: Extent) -> tuple[Extent, ...]:
        """This at the first place along an axis, and at the last before ``end``."""
        rest, factor = [], 0
        for each in self.terms:
            if each[0] is axis:
                factor = each[1]
            else:
                rest.append(each)
        if not factor:
            return (self,)
        further = dict(rest)
        for other, times in end.terms:
            further[other] = further.get(other, 0) + factor * times
        return Extent(self.base, tuple(rest)), Extent(self.base + factor * (end.base - 1), tuple(further.items()))


class Depends(NamedTuple):
    """A number that is decided by these axes, and by what the launch is given."""

    axes: frozenset[Axis] = frozenset()


class Low(NamedTuple):
    """Of a number of 64 bits the lower half; of the other one nothing is known."""

    half: Sum | Depends


DomainValue: TypeAlias = Sum | Depends | None
HalfKnown: TypeAlias = DomainValue | Low
DECIDED = Depends()
TURNS = (Axis.TURN, Axis.TURN_2, Axis.TURN_3, Axis.TURN_4)
ADDRESSES = frozenset({Axis.ARGUMENTS, Axis.PACKET})


def axes_of(known: Sum | Depends) -> frozenset[Axis]:
    """The axes along which the number may change."""
    return known.axes if isinstance(known, Depends) else frozenset(axis for axis, _ in known.terms)


def depends(*known: DomainValue) -> DomainValue:
    """All that is left to say of what is made of these: nothing where one is not known."""
    axes: frozenset[Axis] = frozenset()
    for each in known:
        if each is None:
            return None
        axes |= axes_of(each)
    return Depends(axes)


def lanewise(function: Callable[..., int], *bases: Base) -> Base:
    """``function`` of numbers: once where each is one for all lanes, else for each lane."""
    if not any(isinstance(base, tuple) for base in bases):
        return function(*bases)
    return tuple(map(function, *(base if isinstance(base, tuple) else repeat(base) for base in bases)))


class Sums:
    """The Ops. ``sides``: of the domain; what one is made of comes before it."""

    def __init__(self, sides: Mapping[Axis, Extent], lanes: int) -> None:
        self.sides, self.lanes = sides, lanes

    def constant(self, type: Type, value: int | float) -> Value:
        """An integer is a Sum without terms; of a float nothing is known."""
        known = isinstance(value, int) and type.kind is not Kind.FLOAT
        return Value(self, type, Sum(int(value) & (1 << type.bits) - 1) if known else None)

    def apply(self, prim: Prim, type: Type, *operands: Value) -> Value:
        """The result's ``ref`` is a HalfKnown: None where nothing is known, as of all floats."""
        return Value(self, type, self._result(prim, type, operands))

    def _result(self, prim: Prim, type: Type, operands: tuple[Value, ...]) -> HalfKnown:
        if prim is Prim.LANE:
            return Sum(tuple(range(self.lanes)))
        if any(isinstance(operand.ref, Low) for operand in operands):
            return self._of_lower_half(prim, type, operands)
        refs: list[DomainValue] = [operand.ref for operand in operands]  # type: ignore[misc]
        if prim is Prim.BITS:
            return refs[0]
        if any(each.kind is Kind.FLOAT for each in (type, *(operand.type for operand in operands))):
            return None
        sums = [ref for ref in refs if isinstance(ref, Sum)]
        if len(sums) == len(refs):
            found: DomainValue = None
            if any(each.terms for each in sums):
                found = _RULES[prim](self, type, operands) if prim in _RULES else None
            elif (
                compute := specialize_primitive(prim, type, tuple([operand.type for operand in operands]))
            ) is not None:
                return Sum(lanewise(compute, *(each.base for each in sums)))
            if found is not None:
                return found
        return depends(*refs)

    def _of_lower_half(self, prim: Prim, type: Type, operands: tuple[Value, ...]) -> HalfKnown:
        """Of what is made of 64 bits the lower half, where the upper halves cannot come to it."""
        if prim not in _UPWARD or type.bits > 64 or any(operand.type.kind is Kind.FLOAT for operand in operands):
            return None
        halves = []
        for operand in operands:
            known = operand.ref.half if isinstance(operand.ref, Low) else operand.ref
            half = combine_terms(32, known.base, (known, 1)) if isinstance(known, Sum) else known
            halves.append(Value(self, U32 if operand.type.bits == 64 else operand.type, half))
        found = self._result(prim, U32 if type.bits == 64 else type, tuple(halves))
        return Low(found) if type.bits == 64 and isinstance(found, (Sum, Depends)) else found

    def span(self, terms: tuple[tuple[Axis, int], ...]) -> tuple[int, int] | None:
        """The least and the greatest that these add, or a little less and more; None where that has no end.

        They are found at corners: along each axis, the innermost first, at one of its ends.
        """
        if not terms:
            return 0, 0
        if any(axis not in self.sides for axis, _ in terms):
            return None
        corners = [Extent(0, terms)]
        for axis, side in reversed(tuple(self.sides.items())):
            corners = [each for corner in corners for each in corner.with_end(axis, side)]
        return min(corners).base, max(corners).base

    def exact(self, known: Sum, type: Type) -> tuple[Base, int, int] | None:
        """The base as a number of the type, and the least and the greatest of what the ids add to it; None where the
        sum leaves the type's range somewhere in the domain."""
        span = self.span(known.terms)
        if span is None:
            return None
        half = 1 << type.bits - 1 if type.kind is Kind.SINT else 1 << type.bits
        base = lanewise(lambda value: value - 2 * half if value >= half else value, known.base) \
            if type.kind is Kind.SINT else known.base
        every = base if isinstance(base, tuple) else (base,)
        floor = -half if type.kind is Kind.SINT else 0
        return (base, *span) if min(every) + span[0] >= floor and max(every) + span[1] < half else None

    def join_halves(self, low: DomainValue, high: DomainValue) -> HalfKnown:
        """Two dwords as one number."""
        if low is not None and (high is None or axes_of(high) & ADDRESSES):
            return Low(low)
        if isinstance(low, Sum) and isinstance(high, Sum) and not high.terms and self.exact(low, U32) is not None:
            return Sum(lanewise(lambda a, b: a | b << 32, low.base, high.base), low.terms)
        return depends(low, high)

    def split_halves(self, known: Sum | Depends) -> tuple[DomainValue, DomainValue]:
        """A number of 64 bits as two dwords."""
        if not isinstance(known, Sum):
            return known, known
        low, high = (Sum(lanewise(lambda value, by=by: value >> by & _LOW, known.base), known.terms) for by in (0, 32))
        carries = self.exact(low, U32) is None
        return combine_terms(32, low.base, (low, 1)), depends(known) if carries else Sum(high.base)


def combine_terms(bits: int, base: Base, *parts: tuple[Sum, int]) -> Sum:
    """Some base, and the terms of ``parts``, each so many times; ids are at most as wide as their factors count."""
    half, whole = 1 << bits - 1, 1 << bits
    terms: dict[Axis, int] = {}
    for each, times in parts:
        for axis, factor in each.terms:
            terms[axis] = terms.get(axis, 0) + factor * times
    kept = {axis: (factor + half) % whole - half for axis, factor in terms.items()}
    reduced = lanewise(lambda value: value & whole - 1, base)
    return Sum(reduced, tuple(sorted((axis, factor) for axis, factor in kept.items() if factor)))


Rule: TypeAlias = Callable[[Sums, Type, tuple[Value, ...]], DomainValue]


def _sums(operands: tuple[Value, ...]) -> list[Sum]:
    return [operand.ref for operand in operands]  # type: ignore[misc]


def _constant(known: Sum) -> int | None:
    return known.base if isinstance(known.base, int) and not known.terms else None


def _make_addition(sign: int) -> Rule:
    def rule(domain: Sums, type: Type, operands: tuple[Value, ...]) -> DomainValue:
        a, b = _sums(operands)
        return combine_terms(type.bits, lanewise(lambda x, y: x + sign * y, a.base, b.base), (a, 1), (b, sign))
    return rule


def _times(known: Sum, factor: int, bits: int) -> Sum:
    return combine_terms(bits, lanewise(lambda value: value * factor, known.base), (known, factor))


def _multiply(domain: Sums, type: Type, operands: tuple[Value, ...]) -> DomainValue:
    a, b = _sums(operands)
    for factor, other in ((_constant(a), b), (_constant(b), a)):
        if factor is not None:
            return _times(other, factor, type.bits)
    return None


def _shift_left(domain: Sums, type: Type, operands: tuple[Value, ...]) -> DomainValue:
    a, b = _sums(operands)
    amount = _constant(b)
    return None if amount is None else _times(a, 1 << amount, type.bits)


def _shift_right(domain: Sums, type: Type, operands: tuple[Value, ...]) -> DomainValue:
    a, b = _sums(operands)
    amount, exact = _constant(b), domain.exact(a, operands[0].type)
    if amount is None or exact is None:
        return None
    base, low, high = exact
    if all(factor % (1 << amount) == 0 for _, factor in a.terms):
        terms = tuple((axis, factor >> amount) for axis, factor in a.terms)
        return combine_terms(type.bits, lanewise(lambda value: value >> amount, base), (Sum(0, terms), 1))
    every = base if isinstance(base, tuple) else (base,)
    if all(value + low >> amount == value + high >> amount for value in every):
        return Sum(lanewise(lambda value: (value + low >> amount) & (1 << type.bits) - 1, base))
    return None


def _apply_mask(domain: Sums, type: Type, operands: tuple[Value, ...]) -> DomainValue:
    a, b = _sums(operands)
    for mask, other in ((_constant(a), b), (_constant(b), a)):
        if mask is None:
            continue
        if all(factor % (1 << mask.bit_length()) == 0 for _, factor in other.terms):
            return Sum(lanewise(lambda value, mask=mask: value & mask, other.base))
        exact = domain.exact(other, type.unsigned)
        if mask & mask + 1 == 0 and exact is not None:
            base, low, high = exact
            if max(base if isinstance(base, tuple) else (base,)) + high <= mask:
                return other
    return None


def _combine_disjoint(domain: Sums, type: Type, operands: tuple[Value, ...]) -> DomainValue:
    """Numbers whose ones are at different places."""
    sums = _sums(operands)
    for low, high in (sums, sums[::-1]):
        exact = domain.exact(low, type.unsigned)
        if exact is None:
            continue
        base, _, more = exact
        unit = 1 << (max(base if isinstance(base, tuple) else (base,)) + more).bit_length()
        every = high.base if isinstance(high.base, tuple) else (high.base,)
        if all(number % unit == 0 for number in (*every, *(factor for _, factor in high.terms))):
            return _make_addition(1)(domain, type, operands)
    return None


def _resize(domain: Sums, type: Type, operands: tuple[Value, ...]) -> DomainValue:
    (known,), source = _sums(operands), operands[0].type
    if type.bits <= source.bits:
        return combine_terms(type.bits, known.base, (known, 1))
    exact = domain.exact(known, source)
    return None if exact is None else combine_terms(type.bits, exact[0], (known, 1))


def _difference(domain: Sums, operands: tuple[Value, ...]) -> tuple[Base, int, int] | None:
    """Of two numbers: a base, and the least and the greatest of what the ids add."""
    a, b = _sums(operands)
    exact = [domain.exact(known, operand.type) for known, operand in zip((a, b), operands, strict=True)]
    if exact[0] is None or exact[1] is None:
        return None
    span = domain.span(combine_terms(128, 0, (a, 1), (b, -1)).terms)
    return None if span is None else (lanewise(lambda x, y: x - y, exact[0][0], exact[1][0]), *span)


def _make_comparison(holds: Callable[[int, int], bool | None]) -> Rule:
    """``holds``: of the least and the greatest difference, None where the ids decide."""
    def rule(domain: Sums, type: Type, operands: tuple[Value, ...]) -> DomainValue:
        difference = _difference(domain, operands)
        if difference is None:
            return None
        base, low, high = difference
        found = [holds(each + low, each + high) for each in (base if isinstance(base, tuple) else (base,))]
        if None in found:
            return None
        bits = tuple(int(bool(each)) for each in found)
        return Sum(bits if isinstance(base, tuple) else bits[0])
    return rule


def _equal(low: int, high: int) -> bool | None:
    return True if low == high == 0 else False if low > 0 or high < 0 else None


def _less(low: int, high: int) -> bool | None:
    return True if high < 0 else False if low >= 0 else None


def _at_most(low: int, high: int) -> bool | None:
    return True if high <= 0 else False if low > 0 else None


def _differs(low: int, high: int) -> bool | None:
    equal = _equal(low, high)
    return None if equal is None else not equal


def select_sum(condition: Base, a: Sum, b: Sum) -> Sum | None:
    """``a`` where the condition holds, else ``b``."""
    if isinstance(condition, int):
        return a if condition else b
    if all(condition) or a == b:
        return a
    if not any(condition):
        return b
    if a.terms != b.terms:
        return None
    return Sum(lanewise(lambda bit, x, y: x if bit else y, condition, a.base, b.base), a.terms)


def _select(domain: Sums, type: Type, operands: tuple[Value, ...]) -> DomainValue:
    condition, a, b = _sums(operands)
    return None if condition.terms else select_sum(condition.base, a, b)


def _extreme(largest: bool) -> Rule:
    def rule(domain: Sums, type: Type, operands: tuple[Value, ...]) -> DomainValue:
        less = _make_comparison(_at_most)(domain, type, operands)
        a, b = _sums(operands)
        return select_sum(less.base, *((b, a) if largest else (a, b))) if isinstance(less, Sum) else None
    return rule


_RULES: dict[Prim, Rule] = {Prim.ADD: _make_addition(1), Prim.SUB: _make_addition(-1), Prim.MUL: _multiply,
                            Prim.SHL: _shift_left, Prim.SHR: _shift_right, Prim.AND: _apply_mask,
                            Prim.OR: _combine_disjoint, Prim.XOR: _combine_disjoint, Prim.RESIZE: _resize,
                            Prim.SELECT: _select, Prim.EQ: _make_comparison(_equal),
                            Prim.NE: _make_comparison(_differs), Prim.LT: _make_comparison(_less),
                            Prim.LE: _make_comparison(_at_most), Prim.MIN: _extreme(False), Prim.MAX: _extreme(True)}
