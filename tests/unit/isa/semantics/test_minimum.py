"""Minimum and maximum of floats as the manuals' pseudo code has them, in Python integers, for each kind of NaN.

MI200 ISA, 12.7 and RDNA 2 ISA, 12.7: V_MIN_F32; RDNA 3 ISA, 16.7: V_MIN_F32; RDNA 4 ISA, 16.7: V_MIN_NUM_F32.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from waves import DENORMALS, MODE, run

from luthier_py.isa import instruction_set, sgpr, target, vgpr

QUIET_A, QUIET_B, SIGNALLING_A, SIGNALLING_B = 0x7FC00001, 0xFFC00002, 0x7F800003, 0xFF800004
VALUES = (QUIET_A, QUIET_B, SIGNALLING_A, SIGNALLING_B, 0, 1 << 31, 0x3F800000, 0xC0000000, 0x7F800000, 0x00000001)
PAIRS = [*product(VALUES, VALUES)][:64] + [*product(VALUES, VALUES)][-64:]  # all 100, in two waves
TRIPLES = [*product(VALUES[1:8], repeat=3)]


def is_nan(x: int) -> bool:
    return x & 0x7FFFFFFF > 0x7F800000


def signalling(x: int) -> bool:
    return is_nan(x) and not x >> 22 & 1


def quiet(x: int) -> int:
    return x | 1 << 22


def less(a: int, b: int) -> bool:
    """-0 < +0."""
    def key(x: int) -> int:
        return -(x & 0x7FFFFFFF) - 1 if x >> 31 else x

    return key(a) < key(b)


def lesser(a: int, b: int, largest: bool, ieee: bool, generation: int) -> int:
    if generation == 12:
        if is_nan(a) and is_nan(b):
            return quiet(a)
        if is_nan(a) or is_nan(b):
            return b if is_nan(a) else a
    elif ieee and (signalling(a) or signalling(b)):
        return quiet(a) if signalling(a) else quiet(b)
    elif generation >= 11 and is_nan(b):
        return a
    elif is_nan(a):
        return b
    elif is_nan(b):
        return a
    return a if (less(b, a) if largest else less(a, b)) else b


def median(a: int, b: int, c: int, ieee: bool, generation: int) -> int:
    def low(x: int, y: int) -> int:
        return lesser(x, y, False, ieee, generation)

    def high(x: int, y: int) -> int:
        return lesser(x, y, True, ieee, generation)

    if any(map(is_nan, (a, b, c))):
        return low(low(a, b), c)
    largest = high(high(a, b), c)  # told by its value: both zeros are one
    if equal(largest, a):
        return high(b, c)
    return high(a, c) if equal(largest, b) else high(a, b)


def equal(x: int, y: int) -> bool:
    return x == y or not (x | y) & 0x7FFFFFFF


def isa_of(name: str):
    return instruction_set(target(name), target(name).wave_sizes[0])


def column(values: list[int], number: int) -> np.ndarray:
    return np.array([row[number] for row in values] + [0] * (64 - len(values)), np.uint32)


def results(isa, mnemonic: str, operands: list[tuple[int, ...]], mode: int) -> list[int]:
    found: list[int] = []
    for start in range(0, len(operands), isa.wave_size):
        strip = operands[start : start + isa.wave_size]
        inst = isa.make(mnemonic, vgpr(9), *(vgpr(1 + i) for i in range(len(operands[0]))))
        columns = {1 + i: column(strip, i) for i in range(len(operands[0]))}
        found += run([inst], isa=isa, vgprs=columns, mode=mode).vgpr(9)[: len(strip)].tolist()
    return found


CASES = [("gfx803", True), ("gfx90a", True), ("gfx90a", False), ("gfx1030", True), ("gfx1030", False),
         ("gfx1100", True), ("gfx1100", False), ("gfx1201", False), ("gfx1250", False)]


@pytest.mark.parametrize(("name", "ieee"), CASES)
def test_of_two(name, ieee):
    isa, generation = isa_of(name), target(name).generation
    word = "_num" if generation == 12 else ""
    for largest, mnemonic in ((False, f"v_min{word}_f32"), (True, f"v_max{word}_f32")):
        expected = [lesser(a, b, largest, ieee, generation) for a, b in PAIRS]
        assert results(isa, mnemonic, PAIRS, MODE if ieee else DENORMALS | 0x100) == expected


@pytest.mark.parametrize(("name", "ieee"), CASES)
def test_of_three(name, ieee):
    isa, generation = isa_of(name), target(name).generation
    word, mode = "_num" if generation == 12 else "", MODE if ieee else DENORMALS | 0x100
    for largest, mnemonic in ((False, f"v_min3{word}_f32"), (True, f"v_max3{word}_f32")):
        expected = [lesser(lesser(a, b, largest, ieee, generation), c, largest, ieee, generation)
                    for a, b, c in TRIPLES]
        assert results(isa, mnemonic, TRIPLES, mode) == expected
    assert results(isa, f"v_med3{word}_f32", TRIPLES, mode) == [median(*row, ieee, generation) for row in TRIPLES]


@pytest.mark.parametrize(("name", "ieee"), [("gfx1151", True), ("gfx1151", False), ("gfx1201", False)])
def test_scalars(name, ieee):
    """RDNA 3.5 ISA, 16.1 (S_MIN_F32), RDNA 4 ISA, 16.1 (S_MIN_NUM_F32)."""
    isa, generation = isa_of(name), target(name).generation
    word = "_num" if generation == 12 else ""
    for largest, mnemonic in ((False, f"s_min{word}_f32"), (True, f"s_max{word}_f32")):
        for a, b in PAIRS:
            state = run([isa.make(mnemonic, sgpr(4), sgpr(2), sgpr(3))], isa=isa, sgprs={2: a, 3: b},
                        mode=MODE if ieee else DENORMALS | 0x100)
            assert state.sgpr(4) == lesser(a, b, largest, ieee, generation), (hex(a), hex(b))


@pytest.mark.parametrize("name", ["gfx1201", "gfx1250"])
def test_where_nan_wins(name):
    """V_MINIMUM_F32: a NaN of the operands, made quiet."""
    isa = isa_of(name)
    for largest, mnemonic in ((False, "v_minimum_f32"), (True, "v_maximum_f32")):
        for (a, b), found in zip(PAIRS, results(isa, mnemonic, PAIRS, DENORMALS | 0x100), strict=True):
            nans = {quiet(x) for x in (a, b) if is_nan(x)}
            assert found in (nans or {lesser(a, b, largest, False, 12)})
