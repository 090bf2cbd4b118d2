"""Which cache lines executions of memory instructions touch, and which bytes of them.

In: records of waves, and the bytes that a lane accesses at each site. Out: :class:`Touches`. Invariant: an execution
touches each line once, however many of its lanes ask for it; executions stand in the order in which they came, the
lines of one by address.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
AT_ONCE = 1 << 10  # records, of which all bytes are looked at together


@dataclass(frozen=True, slots=True)
class Touches:
    """Columns of equal length. ``used`` has a bit for each byte of the line, in whole bytes, the lowest first."""

    record: Array
    """The execution, by its place among the records."""
    site: Array
    wave: Array
    unit: Array
    line: Array
    used: Array

    def masks(self) -> list[int]:
        """``used`` as numbers."""
        return [int.from_bytes(row, "little") for row in map(bytes, self.used)]


def pieces(records: Array) -> Iterator[Array]:
    """Of a length that can be looked at together, so that memory has a bound."""
    for first in range(0, len(records), AT_ONCE):
        yield records[first : first + AT_ONCE]


def touches(records: Array, bytes_of: Array, line_bytes: int, chosen: Array | slice = slice(None)) -> Touches:
    """Of the ``chosen`` ones among the records of a piece; ``bytes_of``: what a lane accesses, by site."""
    on = np.zeros((len(records), 64), bool)
    on[chosen] = (records["lanes"][chosen, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1) == 1
    record, _ = np.nonzero(on)
    first, size = records["address"][on].astype(np.int64), bytes_of[records["site"][record]]
    part_bytes = 4 if not ((first | size) & 3).any() else 1
    parts = size // part_bytes
    owner = np.repeat(np.arange(len(record)), parts)
    place = first[owner] + part_bytes * (np.arange(len(owner)) - np.repeat(np.cumsum(parts) - parts, parts))
    lines, number = np.unique(place // line_bytes, return_inverse=True)
    keys, row = np.unique(record[owner] * max(len(lines), 1) + number, return_inverse=True)
    used = np.zeros((len(keys), line_bytes // part_bytes, part_bytes), bool)
    used[row, place % line_bytes // part_bytes] = True
    whose, line = np.divmod(keys, max(len(lines), 1))
    site, wave, unit = (records[name][whose].astype(np.int64) for name in ("site", "wave", "unit"))
    return Touches(whose, site, wave, unit, lines[line],
                   np.packbits(used.reshape(len(keys), line_bytes), axis=1, bitorder="little"))
