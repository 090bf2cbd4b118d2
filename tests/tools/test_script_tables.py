"""Tables of scripts: what their words mean, with words that are made here of the numbers."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import Any

import pytest

from luthier_py.tools.script.tables import AGGREGATIONS, DIGIT_BITS, LINEAR, Layout

WORD = (1 << 64) - 1
TOP = 1 << 63


def rows(kind: str, words: list[int], how: Any = False) -> list[dict[str, Any]]:
    assert len(words) == AGGREGATIONS[kind].words(bool(how))
    return list(AGGREGATIONS[kind].decode(words, how))


def summed(numbers: list[float], nan: int = 0, plus: int = 0, minus: int = 0) -> list[int]:
    """Digits of the sum, in units of the least double, the last one with all that is above it."""
    total, places = sum(map(Fraction, numbers), Fraction()) * (1 << 1074), AGGREGATIONS["sum"].words(True) - 4
    digits = [int(total) >> DIGIT_BITS * at & (1 << DIGIT_BITS) - 1 for at in range(places - 1)]
    return [len(numbers), nan, plus, minus, *digits, int(total) >> DIGIT_BITS * (places - 1) & WORD]


def test_sums_of_integers_have_a_sign() -> None:
    assert rows("sum", [0, 0]) == rows("avg", [0, 0]) == []
    assert rows("sum", [3, -6 & WORD]) == [{"sum": -6, "count": 3}]
    assert rows("avg", [4, 6]) == [{"avg": 1.5, "sum": 6, "count": 4}]


@pytest.mark.parametrize("numbers", [
    [1.5], [0.1, 0.2, 0.3], [-2.25, 1e-300], [5e-324] * 3, [1e308, 1e308], [-1e308, -1e308], [1e308, 3.0, -1e308],
])
def test_sums_of_floats_are_rounded_once(numbers: list[float]) -> None:
    exact = sum(map(Fraction, numbers))
    wanted = float(exact) if abs(exact) < Fraction(2) ** 1024 else math.inf * (1 if exact > 0 else -1)
    assert rows("sum", summed(numbers), True) == [{"sum": wanted, "count": len(numbers)}]


def test_what_is_no_finite_number_in_a_sum() -> None:
    assert rows("sum", summed([]), True) == []
    assert rows("sum", summed([2.0], nan=3), True) == [{"sum": 2.0, "count": 1, "nan": 3}]
    assert rows("sum", summed([2.0], plus=1), True) == [{"sum": math.inf, "count": 2}]
    assert rows("sum", summed([2.0], minus=2), True) == [{"sum": -math.inf, "count": 3}]
    [row] = rows("sum", summed([], plus=1, minus=1), True)
    assert math.isnan(row["sum"]) and row["count"] == 2
    assert rows("avg", summed([], nan=1), True) == [{"avg": None, "sum": 0.0, "count": 0, "nan": 1}]


@pytest.mark.parametrize("kind", ["min", "max"])
def test_extremes(kind: str) -> None:
    """A table begins with zeros, so words are such that the first number of all changes them."""
    flip = WORD if kind == "min" else 0
    for value in (-TOP, -1, 0, 1, TOP - 1):
        assert rows(kind, [2, value & WORD ^ TOP ^ flip, 0]) == [{kind: value, "count": 2}]
    for number in (-math.inf, -2.5, 0.0, 1e-310, math.inf):
        [bits] = struct.unpack("<Q", struct.pack("<d", number))
        word = (~bits & WORD if bits & TOP else bits ^ TOP) ^ flip
        assert rows(kind, [2, word, 0], True) == [{kind: number, "count": 2}]
        assert rows(kind, [2, word, 1], True) == [{kind: number, "count": 2, "nan": 1}]
    assert rows(kind, [0, 0, 4], True) == [{kind: None, "count": 0, "nan": 4}] and rows(kind, [0, 0, 0], True) == []


def test_intervals_of_powers_of_two() -> None:
    words = AGGREGATIONS["hist"].words(False)
    for value in (-TOP, -8, -7, -5, -2, -1, 0, 1, 2, 3, 4, 7, 8, TOP - 1):
        at = value.bit_length() if value >= 0 else 63 + (-value).bit_length()
        [row] = rows("hist", [5 * (place == at) for place in range(words)])
        assert row["low"] <= value < row["high"] and row["count"] == 5
    for is_float in (False, True):
        found = rows("hist", [1] * AGGREGATIONS["hist"].words(is_float), is_float)
        ends = [row for row in found if (row["low"], row["high"]) != (None, None)]
        assert all(one["high"] == other["low"] for one, other in zip(ends, ends[1:], strict=False))
        assert len(found) - len(ends) == is_float  # what is no number


def test_intervals_of_one_size() -> None:
    below, *found, beyond, none = rows("quantize", [*range(1, LINEAR + 4)], 2.5)
    assert below == {"low": None, "high": 0, "count": 1}
    assert found == [{"low": 2.5 * n, "high": 2.5 * (n + 1), "count": n + 2} for n in range(LINEAR)]
    assert beyond == {"low": 2.5 * LINEAR, "high": None, "count": LINEAR + 2}
    assert none == {"low": None, "high": None, "count": LINEAR + 3}
    assert rows("quantize", [0] * (LINEAR + 3), 1.0) == []


def test_keys_of_rows() -> None:
    """Behind a word for what was lost: for each key that is known before slots, and their rows; 0 is an empty slot."""
    one = Layout(words=2, slots=4, keys=1)
    assert (one.part, one.start(0), one.start(2)) == (12, 1, 25)
    words = [0] * 12 + [9, 0, -3 & WORD ^ TOP, 0, 7 ^ TOP, *range(8)]
    assert list(one.rows(words, 1)) == [((-3,), [2, 3]), ((7,), [6, 7])]
    three = Layout(words=1, slots=1, keys=3)
    assert list(three.rows([0, (5 | 6 << 21 | ((1 << 21) - 1) << 42) ^ TOP, 8], 0)) == [((5, 6, (1 << 21) - 1), [8])]
    assert list(Layout(words=2, slots=0, keys=0).rows([0, 1, 2, 3, 4], 1)) == [((), [3, 4])]
