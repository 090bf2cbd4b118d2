"""Numbers over a domain of waves: whatever is said of all of them is what each would compute."""

from __future__ import annotations

import random
from itertools import product

import pytest

from luthier_py.isa.semantics.algebra import BOOL, I32, I64, U16, U32, U64, Prim, Type, Value
from luthier_py.isa.semantics.readers.concrete import concrete
from luthier_py.isa.semantics.readers.sums import ADDRESSES, Axis, Depends, Extent, Low, Sum, Sums, combine_terms

LANES = 4
SIDES = {Axis.WAVE: Extent(3), Axis.X: Extent(5), Axis.Y: Extent(2), Axis.TURN: Extent(1, ((Axis.X, 2), (Axis.Y, 1))),
         Axis.TURN_2: Extent(4, ((Axis.TURN, 1), (Axis.X, -1)))}
WHERE = [dict(zip(SIDES, (wave, x, y, turn, inner), strict=True))
         for wave, x, y in product(range(3), range(5), range(2)) for turn in range(1 + 2 * x + y)
         for inner in range(4 + turn - x)]
BINARY = [Prim.ADD, Prim.SUB, Prim.MUL, Prim.AND, Prim.OR, Prim.XOR, Prim.MIN, Prim.MAX]
COMPARE = [Prim.EQ, Prim.NE, Prim.LT, Prim.LE]
OPS = Sums(SIDES, LANES)


def number(known: Sum, type: Type, ids: dict[Axis, int], lane: int) -> int:
    base = known.base[lane] if isinstance(known.base, tuple) else known.base
    return (base + sum(factor * ids[axis] for axis, factor in known.terms)) % (1 << type.bits)


def some_sum(rng: random.Random, type: Type) -> Sum:
    """Small and large numbers, with terms and without."""
    def some() -> int:
        one_bit = 1 << rng.randrange(type.bits)
        return rng.choice((rng.randrange(9), rng.randrange(-9, 300), one_bit, rng.getrandbits(64)))

    base = some() if rng.random() < 0.5 else tuple(some() for _ in range(LANES))
    axes = [axis for axis in SIDES if rng.random() < 0.3]
    return combine_terms(type.bits, base,
                         (Sum(0, tuple((axis, rng.choice((1, -1, 4, 64, some()))) for axis in axes)), 1))


@pytest.mark.parametrize("type", [U32, I32, U64, I64, U16], ids=str)
def test_a_sum_is_what_every_wave_computes(type):
    rng, said = random.Random(type.bits), 0
    for _ in range(400):
        prim = rng.choice([*BINARY, *COMPARE, Prim.SHL, Prim.SHR, Prim.RESIZE, Prim.SELECT])
        operands = [Value(OPS, type, some_sum(rng, type)) for _ in range(2)]
        result = BOOL if prim in COMPARE else rng.choice((U16, I32, U64)) if prim is Prim.RESIZE else type
        if prim in (Prim.SHL, Prim.SHR):
            operands[1] = Value(OPS, type, Sum(rng.randrange(type.bits)))
        elif prim is Prim.RESIZE:
            operands = operands[:1]
        elif prim is Prim.SELECT:
            operands = [Value(OPS, BOOL, Sum(tuple(rng.randrange(2) for _ in range(LANES)))), *operands]
        known = OPS.apply(prim, result, *operands).ref
        assert isinstance(known, Depends) or isinstance(known, Sum)
        if isinstance(known, Depends):
            assert known.axes <= {axis for operand in operands for axis, _ in operand.ref.terms} and known.axes
            continue
        said += bool(any(operand.ref.terms for operand in operands))
        types = tuple(operand.type for operand in operands)
        for ids, lane in product(rng.sample(WHERE, 60), range(LANES)):
            values = tuple(number(operand.ref, operand.type, ids, lane) for operand in operands)
            assert number(known, result, ids, lane) == concrete(prim, result, types, values), (prim, operands)
    assert said > 80


def test_of_an_address_only_where_it_is_beside_its_start_is_known():
    start = Value(OPS, U32, Sum(0, ((Axis.ARGUMENTS, 1),)))
    assert (start + 24).ref == Sum(24, ((Axis.ARGUMENTS, 1),))
    assert (start >> 2).ref == (start & 63).ref == (start < 7).ref == Depends(frozenset({Axis.ARGUMENTS}))
    assert Axis.ARGUMENTS in ADDRESSES


def test_the_lower_half_of_a_product_needs_no_upper_halves():
    """As in v_mad_u64_u32 with an addend whose upper register nobody has written."""
    addend = Value(OPS, U64, Low(Sum(5, ((Axis.X, 1),))))
    product_ = Value(OPS, U64, Sum(1 << 20)) * 3
    assert (product_ + addend).ref == Low(Sum(5 + (3 << 20), ((Axis.X, 1),)))
    assert ((product_ + addend) >> 1).ref is None and (addend < 7).ref is None
