"""Tables that scripts fill: what a row holds, and what a report makes of it.

In: words that device code has written (`device`). Out: rows of data. Invariant: all words are zero at first, so that
nothing has to be set before a launch; what words mean is said here and in `device` only.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

Words = Sequence[int]
Row = dict[str, Any]
TOP = 1 << 63
BUCKET = ("low", "high")  # what a row of a histogram is the count of
LINEAR = 256  # buckets of quantize, beside the two at its ends
_INTEGERS, _FLOATS = 128, 513
DIGIT_BITS = 26  # of exact sums of floats: a number's 53 bits lie in three digits, wherever they begin
_DIGITS = 81  # from 2**-1074 to beyond 2**1024
_MOST_ADDED = 1 << 63 - DIGIT_BITS  # until a digit might have no more room for carries


@dataclass(frozen=True, slots=True)
class Aggregation:
    """``update``: the function of device code, of floats ``update_float``, where there is one. ``words``: of a row."""

    arguments: int
    words: Callable[[bool], int]
    update: str
    update_float: str
    decode: Callable[[Words, Any], Iterator[Row]]
    """Of a row, and of the step of linear buckets, or whether it is of floats. Nothing of one that is empty."""
    merge: Mapping[str, Callable[[Any, Any], Any]]
    """How two rows with the same keys become one, by column; others are part of the key."""


def signed(word: int) -> int:
    return word - (word >> 63 << 64)


def _float(word: int) -> float:
    bits = word ^ TOP if word >> 63 else ~word & (1 << 64) - 1
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])


def _counted(words: Words, how: Any) -> Iterator[Row]:
    if words[0]:
        yield {"count": words[0]}


def _summed(words: Words, is_float: Any) -> Iterator[Row]:
    if is_float:
        yield from _summed_floats(words)
    elif words[0]:
        yield {"sum": signed(words[1]), "count": words[0]}


def _summed_floats(words: Words) -> Iterator[Row]:
    """The exact sum, rounded once; infinities and NaNs as adding makes them of the others."""
    count, nan, plus, minus = words[:4]
    if not count + nan + plus + minus:
        return
    total = sum(signed(word) << DIGIT_BITS * at for at, word in enumerate(words[4:]))
    known = plus or minus or count < _MOST_ADDED
    found = (inf if plus else 0.0) - (inf if minus else 0.0) or _rounded(total)
    yield {"sum": found if known else None, "count": count + plus + minus, **({"nan": nan} if nan else {})}


def _words_of_sum(is_float: bool) -> int:
    return 4 + _DIGITS if is_float else 2


def _rounded(total: int) -> float:
    """Of units of the least double."""
    try:
        return total / (1 << 1074)
    except OverflowError:
        return inf if total > 0 else -inf


def _averaged(words: Words, how: Any) -> Iterator[Row]:
    for row in _summed(words, how):
        yield with_average({"avg": None, **row})


def with_average(row: Row) -> Row:
    """``avg`` of a row that has a sum."""
    known = row["count"] and row["sum"] is not None
    return {**row, "avg": row["sum"] / row["count"] if known else None}


def _extreme(name: str, flip: int) -> Callable[[Words, Any], Iterator[Row]]:
    def decode(words: Words, is_float: Any) -> Iterator[Row]:
        word = words[1] ^ flip
        nan = {"nan": words[2]} if is_float and words[2] else {}
        if words[0]:
            yield {name: _float(word) if is_float else signed(word ^ TOP), "count": words[0], **nan}
        elif nan:
            yield {name: None, "count": 0, **nan}

    return decode


def _powers(words: Words, is_float: Any) -> Iterator[Row]:
    buckets = _float_buckets() if is_float else _integer_buckets()
    for at, low, high in buckets:
        if words[at]:
            yield {"low": low, "high": high, "count": words[at]}


def _integer_buckets() -> Iterator[tuple[int, Any, Any]]:
    """Number, and half-open interval, ascending."""
    for n in range(64, 0, -1):
        yield 63 + n, 1 - (1 << n), 1 - (1 << n - 1)
    yield 0, 0, 1
    for n in range(1, 64):
        yield n, 1 << n - 1, 1 << n


def _float_buckets() -> Iterator[tuple[int, Any, Any]]:
    """The first of each sign begins with 0, the last one extends to infinity; NaN has no interval."""
    for n in range(255, -1, -1):
        yield 256 + n, None if n == 255 else -(2.0 ** (n - 126)), 0.0 if n == 0 else -(2.0 ** (n - 127))
    for n in range(256):
        yield n, 0.0 if n == 0 else 2.0 ** (n - 127), None if n == 255 else 2.0 ** (n - 126)
    yield 512, None, None


def _linear(words: Words, step: Any) -> Iterator[Row]:
    yield from ({"low": None, "high": 0 * step, "count": words[0]},) if words[0] else ()
    for n in range(LINEAR):
        if words[n + 1]:
            yield {"low": n * step, "high": (n + 1) * step, "count": words[n + 1]}
    yield from ({"low": LINEAR * step, "high": None, "count": words[LINEAR + 1]},) if words[LINEAR + 1] else ()
    yield from ({"low": None, "high": None, "count": words[LINEAR + 2]},) if words[LINEAR + 2] else ()


def _add(a: Any, b: Any) -> Any:
    return (a or 0) + (b or 0)


def _some(choose: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: b if a is None else a if b is None else choose(a, b)


_COUNT = {"count": _add}
_SUM = {"sum": lambda a, b: None if a is None or b is None else a + b, "nan": _add, **_COUNT}
_TOP = TOP * 2 - 1
AGGREGATIONS: Mapping[str, Aggregation] = {
    "count": Aggregation(0, lambda is_float: 1, "count", "", _counted, _COUNT),
    "top": Aggregation(2, lambda is_float: 1, "count", "", _counted, _COUNT),
    "sum": Aggregation(1, _words_of_sum, "total", "total_float", _summed, _SUM),
    "avg": Aggregation(1, _words_of_sum, "total", "total_float", _averaged, _SUM),
    "min": Aggregation(1, lambda is_float: 3, "least", "least_float", _extreme("min", _TOP),
                       {"min": _some(min), "nan": _add, **_COUNT}),
    "max": Aggregation(1, lambda is_float: 3, "greatest", "greatest_float", _extreme("max", 0),
                       {"max": _some(max), "nan": _add, **_COUNT}),
    "hist": Aggregation(1, lambda is_float: _FLOATS if is_float else _INTEGERS, "power", "power_float", _powers,
                        _COUNT),
    "quantize": Aggregation(2, lambda is_float: LINEAR + 3, "linear", "linear_float", _linear, _COUNT),
}


@dataclass(frozen=True, slots=True)
class Layout:
    """Of a table's words. First, what was lost. Then, for each key that is known before anything runs, a row, or with
    other keys so many ``slots``: keys of all, then rows of all."""

    words: int   # of a row
    slots: int   # 0: there are no other keys
    keys: int    # how many numbers a key of a slot is made of

    @property
    def part(self) -> int:
        """Words for each key that is known before."""
        return self.slots * (1 + self.words) if self.slots else self.words

    def start(self, number: int) -> int:
        return 1 + number * self.part

    def rows(self, words: Words, number: int) -> Iterator[tuple[tuple[int, ...], Words]]:
        """Numbers of a key, and words of its row."""
        at = self.start(number)
        if not self.slots:
            yield (), words[at : at + self.words]
            return
        rows = at + self.slots
        for slot in range(self.slots):
            if words[at + slot]:
                row = rows + slot * self.words
                yield self.unpacked(words[at + slot] ^ TOP), words[row : row + self.words]

    @property
    def bits(self) -> int:
        """The bits of each number of a key that is made of several."""
        return 63 // self.keys

    def unpacked(self, key: int) -> tuple[int, ...]:
        if self.keys == 1:
            return (signed(key),)
        return tuple(key >> self.bits * at & (1 << self.bits) - 1 for at in range(self.keys))
