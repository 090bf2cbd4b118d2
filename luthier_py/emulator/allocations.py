"""The table of allocations that native code searches, and that may change while it does.

In: allocations, inserted and removed where they belong. Out: the address of a word that always holds where the table
is now: a count, then records of layout.ALLOCATION, ascending. Invariant: a table that has been given out never
changes; while somebody reads, old ones are kept. So a change costs nothing until a launch begins, and reaches launches
that run at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from luthier_py.emulator.layout import ALLOCATION_BYTES

Rows = NDArray[np.uint64]
_WORDS = ALLOCATION_BYTES // 8


class AllocationTable:
    """Mutable, and guarded by its owner: one thread at a time."""

    def __init__(self) -> None:
        self._rows: Rows = np.zeros((64, _WORDS), np.uint64)
        self._count = 0
        self._cell: Rows = np.zeros(1, np.uint64)
        self._given_out: list[Rows] = []  # the last is the current one
        self._readers = 0
        self._stale = True

    @property
    def cell(self) -> int:
        """Address of the word."""
        return self._cell.ctypes.data

    @property
    def rows(self) -> Rows:
        """A copy of all records, those of empty allocations among them."""
        rows: Rows = self._rows[: self._count].copy()
        return rows

    def insert(self, place: int, start: int, end: int, access: int) -> None:
        """A record before the one that is at ``place`` now."""
        if self._count == len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._rows[place + 1 : self._count + 1] = self._rows[place : self._count]
        self._count += 1
        self.replace(place, start, end, access)

    def replace(self, place: int, start: int, end: int, access: int) -> None:
        self._rows[place] = start, end, access
        self._changed()

    def remove(self, first: int, last: int) -> None:
        """The records from ``first`` up to ``last``, which stays."""
        self._rows[first : self._count - (last - first)] = self._rows[last : self._count]
        self._count -= last - first
        self._changed()

    def enter(self) -> None:
        """Somebody begins to read through the word."""
        self._readers += 1
        if self._stale:
            self._give_out()

    def leave(self) -> None:
        self._readers -= 1
        if not self._readers:
            del self._given_out[:-1]

    def _changed(self) -> None:
        self._stale = True
        if self._readers:
            self._give_out()

    def _give_out(self) -> None:
        table = np.empty(1 + self._count * _WORDS, np.uint64)
        table[0] = self._count
        table[1:] = self._rows[: self._count].reshape(-1)
        self._given_out.append(table)
        self._cell[0] = table.ctypes.data
        self._stale = False
        if not self._readers:
            del self._given_out[:-1]
