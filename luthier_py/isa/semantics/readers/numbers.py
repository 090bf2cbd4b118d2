"""Numbers that are known, or known but for what is the same in all lanes.

In: operations of the algebra. Out: :class:`Number`, a sum of multiples of what differs from lane to lane, plus a
constant or something that no lane sees differently. Invariant: a number holds for every lane for which it holds of the
operands; None says nothing. Arithmetic is modulo the width of the type, so multiples are normalised to between -half
and half of it.

What is not linear is computed lane by lane where each lane's operands are known (v_mbcnt). What is made of numbers that
are the same in a row of work-items, as y times a width that is not known, is so, too. All else is given up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import NamedTuple, TypeAlias

from luthier_py.base.records import dataclass
from luthier_py.isa.semantics.algebra import U32, Kind, Prim, Type, Value
from luthier_py.isa.semantics.readers.concrete import concrete


class Varying(Enum):
    """What differs from lane to lane."""

    LANE = "lane"
    X = "x"  # the work-item's place in its work-group
    Y = "y"
    Z = "z"
    ROW = "row"  # anything that is the same for all work-items of a row, which differ in x alone; it takes in y and z


LANES = 64  # at most
_MOST = {Varying.LANE: LANES - 1, Varying.X: 1023, Varying.Y: 1023, Varying.Z: 1023}


class Number(NamedTuple):
    """``constant`` plus multiples of ``terms``; without a constant, plus something that is the same in all lanes."""

    terms: tuple[tuple[Varying, int], ...]
    constant: int | None

    @property
    def uniform(self) -> bool:
        """Whether it is the same in all lanes, known or not."""
        return not self.terms


Lanewise: TypeAlias = tuple[int, ...]  # a value for each lane, where it is no Number
Known: TypeAlias = Number | Lanewise | None
UNIFORM = Number((), None)
IN_ROWS = Number(((Varying.ROW, 1),), None)
_BY_ROW = frozenset({Varying.Y, Varying.Z, Varying.ROW})
_UPWARD = {Prim.ADD, Prim.SUB, Prim.MUL, Prim.SHL, Prim.RESIZE}  # no bit comes lower


@dataclass(frozen=True, slots=True)
class LowerHalf:
    """Of a number of 64 bits the lower half; of the other one nothing is known."""

    half: Number


PartKnown: TypeAlias = Known | LowerHalf


def constant(value: int, bits: int = 32) -> Number:
    """A number that is known, the same in all lanes; cut to ``bits``."""
    return Number((), value & (1 << bits) - 1)


class Numbers:
    """The Ops."""

    def constant(self, type: Type, value: int | float) -> Value:
        """An integer is known; of a float it is only known that all lanes have the same."""
        known = isinstance(value, int) and type.kind is not Kind.FLOAT
        return Value(self, type, constant(int(value), type.bits) if known else UNIFORM)

    def apply(self, prim: Prim, type: Type, *operands: Value) -> Value:
        """The result's ``ref`` is a PartKnown: None where nothing is known."""
        return Value(self, type, _result(prim, type, operands))


def _result(prim: Prim, type: Type, operands: tuple[Value, ...]) -> PartKnown:
    if prim is Prim.LANE:
        return Number(((Varying.LANE, 1),), 0)
    refs: list[PartKnown] = [operand.ref for operand in operands]  # type: ignore[misc]
    if prim is Prim.BITS:
        return refs[0]
    uniform = all(isinstance(ref, Number) and ref.uniform for ref in refs)
    otherwise = UNIFORM if uniform else IN_ROWS if all(map(_same_in_rows, refs)) else None
    if any(each.kind is Kind.FLOAT for each in (type, *(operand.type for operand in operands))):
        return otherwise
    if any(isinstance(ref, LowerHalf) for ref in refs):
        return _of_lower_half(prim, type, operands)
    found: PartKnown = _lane_by_lane(prim, type, operands)
    if found is None and not uniform and prim in _LINEAR:
        found = _LINEAR[prim](type, operands)
    return otherwise if found is None else found


def _same_in_rows(known: PartKnown) -> bool:
    return isinstance(known, Number) and all(what in _BY_ROW for what, _ in known.terms)


def _of_lower_half(prim: Prim, type: Type, operands: tuple[Value, ...]) -> PartKnown:
    """Of what is made of 64 bits the lower half, to which nothing comes from the upper ones."""
    halves = [_half(operand) for operand in operands]
    if prim not in _UPWARD or type.bits not in (32, 64) or any(half is None for half in halves):
        return None
    found: PartKnown = halves[0]
    if prim is not Prim.RESIZE:
        values = tuple(Value(operand.ops, U32, half) for operand, half in zip(operands, halves, strict=True))
        found = _LINEAR[prim](U32, values)
        if found is None and all(map(_same_in_rows, halves)):
            found = UNIFORM if all(half is not None and half.uniform for half in halves) else IN_ROWS
    return LowerHalf(found) if type.bits == 64 and isinstance(found, Number) else found


def _half(operand: Value) -> Number | None:
    known = operand.ref
    if isinstance(known, LowerHalf):
        return known.half
    if not isinstance(known, Number) or operand.type.bits not in (32, 64):
        return None
    return linear(dict(known.terms), known.constant, 32)


def _lane_by_lane(prim: Prim, type: Type, operands: tuple[Value, ...]) -> Known:
    """By computing, where everything is known."""
    rows = [_row(operand) for operand in operands]
    types = tuple(operand.type for operand in operands)
    lanes = max((len(row) for row in rows), default=0)
    values = []
    for lane in range(lanes):
        each = concrete(prim, type, types, tuple(row[lane % len(row)] for row in rows)) if all(rows) else None
        if each is None:
            return None
        values.append(each)
    return _fit_linear(values, type.bits) if values else None


def _row(operand: Value) -> Lanewise:
    """The values of all lanes, one if it is a constant; none if they are not known."""
    known = operand.ref
    if not isinstance(known, Number):
        return known if isinstance(known, tuple) else ()
    if known.constant is None or any(what is not Varying.LANE for what, _ in known.terms):
        return ()
    if not known.terms:
        return (known.constant,)
    step, mask = known.terms[0][1], (1 << operand.type.bits) - 1
    return tuple(known.constant + step * lane & mask for lane in range(LANES))


def _fit_linear(values: list[int], bits: int) -> Known:
    if len(values) == 1:
        return constant(values[0], bits)
    line = linear({Varying.LANE: values[1] - values[0]}, values[0], bits)
    step = dict(line.terms).get(Varying.LANE, 0)
    if all((values[0] + step * lane - value) % (1 << bits) == 0 for lane, value in enumerate(values)):
        return line
    return tuple(values)


def linear(terms: dict[Varying, int], value: int | None, bits: int) -> Number:
    """The Number of these terms and ``value`` (None: not known, but the same in all lanes), modulo 2 ** ``bits``: each
    factor between -half and half, none 0. Varying.ROW takes in terms of y and z, and the value."""
    half, whole = 1 << bits - 1, 1 << bits
    kept = {what: (factor + half) % whole - half for what, factor in terms.items()}
    if Varying.ROW in terms:
        value, kept = None, {Varying.ROW: 1, **{what: kept[what] for what in kept.keys() - _BY_ROW}}
    ordered = sorted(((what, factor) for what, factor in kept.items() if factor), key=lambda term: term[0].value)
    return Number(tuple(ordered), None if value is None else value % whole)


def _scale_number(a: Number, factor: int, bits: int) -> Number:
    return linear({what: each * factor for what, each in a.terms}, None if a.constant is None else a.constant * factor,
                  bits)


def _sum(a: Number, b: Number, bits: int) -> Number:
    terms = dict(a.terms)
    for what, factor in b.terms:
        terms[what] = terms.get(what, 0) + factor
    return linear(terms, None if a.constant is None or b.constant is None else a.constant + b.constant, bits)


def most(a: Number) -> int | None:
    """The largest value, if it is known that none wraps round."""
    if a.constant is None or any(factor < 0 for _, factor in a.terms):
        return None
    return a.constant + sum(factor * _MOST[what] for what, factor in a.terms)


def _fits(a: Number, type: Type) -> bool:
    """Whether it is the same as a number without limits."""
    top = most(a)
    return top is not None and top < 1 << type.bits - (type.kind is Kind.SINT)


def _low(a: Number, count: int, type: Type) -> Number | None:
    """The lowest ``count`` bits."""
    unit = 1 << count
    if all(factor % unit == 0 for _, factor in a.terms):
        return Number((), None if a.constant is None else a.constant % unit)
    if a.constant is None or not _fits(a, type):
        return None
    rest = linear({what: factor for what, factor in a.terms if factor % unit}, a.constant % unit, type.bits)
    top = most(rest)
    return rest if top is not None and top < unit else None


def _without_low(a: Number, count: int, type: Type) -> Number | None:
    """With the lowest ``count`` bits cleared."""
    low = _low(a, count, type)
    if low is None:
        return None
    return Number(a.terms, None) if a.constant is None else _sum(a, _scale_number(low, -1, type.bits), type.bits)


Linear: TypeAlias = Callable[[Type, tuple[Value, ...]], PartKnown]


def _numbers(of: Callable[..., Known]) -> Linear:
    """A rule for operands that are all Numbers."""
    def rule(type: Type, operands: tuple[Value, ...]) -> Known:
        refs = [operand.ref for operand in operands]
        return of(type, *refs) if all(isinstance(ref, Number) for ref in refs) else None
    return rule


def _multiply(type: Type, a: Number, b: Number) -> Known:
    for factor, other in ((a, b), (b, a)):
        if factor.uniform and factor.constant is not None:
            return _scale_number(other, factor.constant, type.bits)
    return None


def _shift_left(type: Type, a: Number, b: Number) -> Known:
    return _scale_number(a, 1 << b.constant, type.bits) if b.uniform and b.constant is not None else None


def _shift_right(type: Type, a: Number, b: Number) -> Known:
    if not b.uniform or b.constant is None or not _fits(a, type):
        return None
    rest = _without_low(a, b.constant, type)
    if rest is None or rest.constant is None:
        return None
    return linear({what: factor >> b.constant for what, factor in rest.terms}, rest.constant >> b.constant, type.bits)


def _apply_mask(type: Type, a: Number, b: Number) -> Known:
    """With a constant whose ones stand together."""
    for mask, other in ((b, a), (a, b)):
        ones = mask.constant if mask.uniform else None
        if not ones:
            continue
        start, length = (ones & -ones).bit_length() - 1, ones.bit_length()
        if (ones >> start) + 1 == 1 << length - start:
            low = other if length == type.bits else _low(other, length, type)
            return None if low is None else _without_low(low, start, type) if start else low
    return None


def _combine_disjoint(type: Type, a: Number, b: Number) -> Known:
    """Numbers whose ones are at different places."""
    for low, high in ((a, b), (b, a)):
        top = most(low)
        if top is None or top >> type.bits or high.constant is None:
            continue
        unit = 1 << top.bit_length()
        if all(factor % unit == 0 for factor in (high.constant, *(factor for _, factor in high.terms))):
            return _sum(low, high, type.bits)
    return None


def _apply_xor(type: Type, a: Number, b: Number) -> Known:
    for ones, other in ((a, b), (b, a)):
        if ones == constant(-1, type.bits):
            return _sum(ones, _scale_number(other, -1, type.bits), type.bits)
    return _combine_disjoint(type, a, b)


def _resize(type: Type, operands: tuple[Value, ...]) -> PartKnown:
    (operand,), known = operands, operands[0].ref
    if not isinstance(known, Number) or not (type.bits < operand.type.bits or _fits(known, operand.type)):
        return LowerHalf(known) if isinstance(known, Number) and (operand.type.bits, type.bits) == (32, 64) else None
    return linear(dict(known.terms), known.constant, type.bits)


def _select(type: Type, operands: tuple[Value, ...]) -> Known:
    condition, a, b = (operand.ref for operand in operands)
    if isinstance(condition, Number) and condition.uniform:
        if condition.constant is not None:
            return a if condition.constant else b  # type: ignore[return-value]
        return either(a, b)  # type: ignore[arg-type]
    exact = isinstance(a, Number) and a.constant is not None or isinstance(a, tuple) and not isinstance(a, Number)
    return a if a == b and exact else None  # type: ignore[return-value]


def either(a: Known, b: Known) -> Known:
    """What is one of two, the same one in all lanes."""
    if a == b:
        return a
    if isinstance(a, Number) and isinstance(b, Number) and a.terms == b.terms:
        return Number(a.terms, None)
    return None


def _at_most(type: Type, a: Number, b: Number) -> Known:
    for limit, other in ((a, b), (b, a)):
        top = most(other)
        if limit.uniform and limit.constant is not None and top is not None and _fits(limit, type) \
                and top <= limit.constant:
            return other
    return None


_LINEAR: dict[Prim, Linear] = {
    Prim.ADD: _numbers(lambda type, a, b: _sum(a, b, type.bits)),
    Prim.SUB: _numbers(lambda type, a, b: _sum(a, _scale_number(b, -1, type.bits), type.bits)),
    Prim.MUL: _numbers(_multiply), Prim.SHL: _numbers(_shift_left), Prim.SHR: _numbers(_shift_right),
    Prim.AND: _numbers(_apply_mask), Prim.OR: _numbers(_combine_disjoint), Prim.XOR: _numbers(_apply_xor),
    Prim.MIN: _numbers(_at_most), Prim.RESIZE: _resize, Prim.SELECT: _select,
}


def sum_of(terms: Iterable[tuple[Varying, int]]) -> Number:
    """Multiples, of 32 bits."""
    return linear(dict(terms), 0, 32)
