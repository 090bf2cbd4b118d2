"""Operands that tell a meaning from others near it: those at which some step of it is at an edge.

In: a Lanes or Scalar row. Out: tuples of operands' bits, those first in which denormals count, then the most telling.
They are drawn at random, from edges of their types, from the constants of the meaning and its neighbours, and from each
other (equal, one more, negated); kept are those which show of some step what was not seen before: a comparison whose
sides are equal or one apart, either side of a choice, a carry, a rounding, a class of floats, denormals that change the
result if they are flushed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from luthier_py.isa.semantics import Lanes, Scalar
from luthier_py.isa.semantics.algebra import BOOL, F32, U32, Kind, Prim, Type, Value
from luthier_py.isa.semantics.meaning import SignaturePart
from reference import floats
from reference.algebra import PythonOps, flushed, limits, signed
from reference.values import some

Operands = tuple[tuple[int, ...], ...]  # for each source of the signature its elements

CANDIDATES = 300  # tuples drawn for a meaning
STEPS = 30_000    # of all of them, for meanings of many steps
LEAST = 40        # tuples drawn at least
OFTEN = 3         # tuples that show the same, since one of them may hide it later
MOST = 192        # tuples kept: three cases of 64 lanes


_DENORMAL = ((False, True, False), (False, True, True))


class _Watching(PythonOps):
    """Mutable: what the steps of one computation showed."""

    def __init__(self) -> None:
        super().__init__()
        self.step = 0
        self.seen: set[tuple[object, ...]] = set()
        self.constants: set[tuple[Kind, int]] = set()

    def constant(self, type: Type, value: int | float) -> Value:
        made = super().constant(type, value)
        if type is not BOOL:
            self.constants.add((type.kind, made.ref))
        return made

    def apply(self, prim: Prim, type: Type, *operands: Value) -> Value:
        result = super().apply(prim, type, *operands)
        self.step += 1
        self.seen.add((self.step, prim, *_shown(prim, result, operands)))
        return result


def _shown(prim: Prim, result: Value, x: tuple[Value, ...]) -> tuple[object, ...]:
    """Which of its cases a step is in."""
    if not x:
        return ()
    type, refs = x[0].type, [each.ref for each in x]
    if prim is Prim.SELECT:
        return refs[0], refs[1] != refs[2]
    if type.kind is Kind.FLOAT or result.type.kind is Kind.FLOAT:
        same = len(x) > 1 and refs[0] == refs[1]
        return (*(_class(each) for each in x), _class(result) if result.type is not BOOL else result.ref, same)
    if len(x) == 1:
        return refs[0] == 0, result.ref == 0, refs[0] >> type.bits - 1, result.ref >> result.type.bits - 1
    a, b = (signed(ref, type) for ref in refs[:2])
    if prim in (Prim.EQ, Prim.NE, Prim.LT, Prim.LE, Prim.MIN, Prim.MAX):
        return (min(max(a - b, -2), 2),)
    if prim in (Prim.SHL, Prim.SHR):
        return refs[1] == 0, refs[1] == type.bits - 1, refs[0] >> type.bits - 1, refs[0] == 0
    if prim in (Prim.ADD, Prim.SUB, Prim.ADD_SAT, Prim.SUB_SAT, Prim.MUL):
        low, high = limits(type)
        exact = a * b if prim is Prim.MUL else a + b if prim in (Prim.ADD, Prim.ADD_SAT) else a - b
        return exact < low, exact > high, exact in (low, high), refs[0] == 0, refs[1] == 0
    return result.ref == 0, result.ref == refs[0], result.ref == refs[1]


def _class(value: Value) -> object:
    bits, width = value.ref, value.type.bits
    if value.type.kind is not Kind.FLOAT:
        return bits == 0, bits == (1 << width) - 1, bits >> width - 1
    if floats.is_nan(bits, width):
        return "quiet" if bits & floats.quiet_bit(width) else "signalling"
    sign = floats.negative(bits, width)
    if floats.is_zero(bits, width) or floats.is_infinite(bits, width) or floats.is_denormal(bits, width):
        return floats.is_zero(bits, width), floats.is_denormal(bits, width), sign
    return "number"


def width_of(row: Lanes | Scalar) -> Type:
    """Of sources that have the width of others."""
    slots = (*row.signature.results, *row.signature.sources)
    return next((slot.type for slot in slots if slot.type.bits > 1), U32)


@cache
def telling(row: Lanes | Scalar, saturating: bool = False) -> tuple[Operands, ...]:
    """Of one function of the row; ``saturating``: of that under clamp."""
    compute = row.saturating if saturating and isinstance(row, Lanes) and row.saturating is not None else row.compute
    generator = random.Random(f"{row.signature}")
    drawn = _Drawn(row, generator)
    often: Counter[tuple[object, ...]] = Counter()
    kept: list[tuple[bool, int, Operands]] = []
    number, most = 0, CANDIDATES
    while number < most:
        operands = drawn.next()
        seen, steps, constants = _watched(row, compute, operands)
        drawn.constants |= constants
        most = min(most, max(LEAST, STEPS // max(steps, 1)))
        news = [each for each in seen if often[each] < OFTEN]
        often.update(seen)
        if news:
            firsts = sum(often[each] == 1 for each in news)
            kept.append((not any(map(_of_denormals, news)), -firsts, operands))
        number += 1
    kept.sort(key=lambda each: each[:2])
    return tuple(operands for *_, operands in kept[:MOST])


def _of_denormals(seen: tuple[object, ...]) -> bool:
    """Whether it says that flushing them would show."""
    return seen[0] == "flushed" and bool(seen[-1]) or seen[0] == "result" and seen[-1] in _DENORMAL


class _Drawn:
    """Mutable: draws operands; ``constants`` that are met are drawn, too."""

    def __init__(self, row: Lanes | Scalar, generator: random.Random) -> None:
        self.row, self.generator = row, generator
        self.constants: set[tuple[Kind, int]] = set()

    def next(self) -> Operands:
        packed = isinstance(self.row, Lanes) and self.row.packed
        drawn: list[tuple[int, ...]] = []
        before: dict[int, int] = {}
        for slot in self.row.signature.sources:
            type = slot.type if slot.type.bits else width_of(self.row)
            count = 1 if packed else slot.count
            drawn.append(tuple(self._one(type, before) for _ in range(count)))
        return tuple(drawn)

    def _one(self, type: Type, before: dict[int, int]) -> int:
        pick, mask = self.generator.choice, (1 << type.bits) - 1
        other = before.get(type.bits)
        draw = self.generator.random()
        if type.bits < 8:
            return self.generator.getrandbits(type.bits)
        if other is not None and draw < 0.35:
            found = pick((other, other, other ^ 1, other ^ 1 << type.bits - 1, other + 1, other - 1, ~other, -other))
        elif self.constants and draw < 0.5:
            _, constant = pick(sorted(self.constants, key=repr))
            found = pick((constant, constant + 1, constant - 1, -constant, ~constant, constant << type.bits // 2))
        elif type.bits in (8, 16, 32, 64):
            found = some(self.generator, type)
        else:
            found = self.generator.getrandbits(type.bits)
        before[type.bits] = found & mask
        return found & mask


def _watched(row: Lanes | Scalar, compute: Callable[..., Any], operands: Operands
             ) -> tuple[set[tuple[object, ...]], int, set[tuple[Kind, int]]]:
    """What was seen, how many steps there were, and their constants."""
    ops = _Watching()
    results = _results(compute(*_values(row, ops, operands, lambda bits, width: bits)))
    seen = ops.seen | {("result", number, _class(value)) for number, value in enumerate(results)}
    if any(slot.type.kind is Kind.FLOAT for slot in row.signature.sources):
        plain = [value.ref for value in results]
        for number in range(len(operands)):
            zeroed = [value.ref for value in _results(compute(*_values(row, PythonOps(), operands, flushed, number)))]
            seen |= {("flushed", number, at, a != b) for at, (a, b) in enumerate(zip(plain, zeroed, strict=True))}
    return seen, ops.step, ops.constants


def _results(found: Any) -> list[Value]:
    return list(found) if isinstance(found, tuple) else [found]


def _values(row: Lanes | Scalar, ops: PythonOps, operands: Operands, change: Callable[[int, int], int],
            which: int | None = None) -> Iterator[Any]:
    """The arguments of a meaning; one of them changed, if it is a float."""
    packed = isinstance(row, Lanes) and row.packed
    for number, (slot, elements) in enumerate(zip(row.signature.sources, operands, strict=True)):
        type = slot.type if slot.type.bits else width_of(row)
        changes = number == which and type.kind is Kind.FLOAT
        values = tuple(ops.value(type, change(bits, type.bits) if changes else bits) for bits in elements)
        yield values if slot.count > 1 and not packed else values[0]


def word_of(slot: SignaturePart, elements: tuple[int, ...]) -> int:
    """Elements as they lie in registers, the first one lowest."""
    width = F32.bits if slot.name in ("mix", "zmix") else slot.type.bits
    return sum(bits << width * at for at, bits in enumerate(elements))
