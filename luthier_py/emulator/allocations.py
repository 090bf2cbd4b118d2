"""The table of allocations that native code searches, and that may change while it does.

In: allocations, inserted and removed where they belong. Out: the address of a word that always holds where the table
is now: a count, then records of layout.ALLOCATION, ascending. Invariant: a search that is under way finds whatever was
there before and after a change. So in a table that has been given out a record is put behind the last one, emptied
where it lies, or filled again, each by the writing of one word; for any other change there is a new table, and while
somebody reads, old ones are kept. A change costs nothing until a launch begins, and reaches launches that run at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from luthier_py.emulator.layout import ALLOCATION_BYTES

AllocationRows = NDArray[np.uint64]
_WORDS = ALLOCATION_BYTES // 8


class _Table:
    """Mutable: one that has been given out. ``words``: the count, then records, and room for more."""

    def __init__(self, rows: AllocationRows) -> None:
        count = len(rows)
        self.words: AllocationRows = np.zeros(1 + max(2 * count, 64) * _WORDS, np.uint64)
        self.words[0] = count
        self._rows = self.words[1:].reshape(-1, _WORDS)
        self._rows[:count] = rows
        self.holes = False
        """Whether records were emptied."""

    def put(self, start: int, end: int, access: int) -> bool:
        """Whether there was a place for this record: behind the last one, or where it was before."""
        count, place = int(self.words[0]), self._place(start)
        if place < count:
            base, old_end, _ = self._rows[place].tolist()
            if (base, old_end) != (start, start):
                return False
            self._rows[place, 2] = access
            self._rows[place, 1] = end
            return True
        if count == len(self._rows):
            return False
        self._rows[count] = start, end, access
        self.words[0] = count + 1
        return True

    def empty(self, start: int) -> None:
        self._rows[self._place(start), 1] = start
        self.holes = True

    def _place(self, start: int) -> int:
        return int(np.searchsorted(self._rows[: int(self.words[0]), 0], np.uint64(start)))


class AllocationTable:
    """Mutable, and guarded by its owner: one thread at a time."""

    def __init__(self) -> None:
        self._rows: AllocationRows = np.zeros((64, _WORDS), np.uint64)
        self._count = 0
        self._cell: AllocationRows = np.zeros(2, np.uint64)
        self._given_out: list[_Table] = []  # the last is the current one
        self._readers = 0
        self._stale = True

    @property
    def cell(self) -> int:
        """Address of the word; the one behind it counts tables that are kept for readers."""
        return self._cell.ctypes.data

    @property
    def rows(self) -> AllocationRows:
        """A copy of all records, those of empty allocations among them."""
        rows: AllocationRows = self._rows[: self._count].copy()
        return rows

    def insert(self, place: int, start: int, end: int, access: int) -> None:
        """A record before the one that is at ``place`` now."""
        if self._count == len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._rows[place + 1 : self._count + 1] = self._rows[place : self._count]
        self._count += 1
        self._rows[place] = start, end, access
        if not self._readers or not self._given_out[-1].put(start, end, access):
            self._changed()

    def replace(self, place: int, start: int, end: int, access: int) -> None:
        self._rows[place] = start, end, access
        self._changed()

    def remove(self, first: int, last: int) -> None:
        """The records from ``first`` up to ``last``, which stays."""
        starts = self._rows[first:last, 0].tolist()
        self._rows[first : self._count - (last - first)] = self._rows[last : self._count]
        self._count -= last - first
        if not self._readers:
            self._changed()
            return
        for start in starts:
            self._given_out[-1].empty(start)

    def enter(self) -> None:
        """Somebody begins to read through the word."""
        self._readers += 1
        if self._stale:
            self._give_out()

    def leave(self) -> None:
        self._readers -= 1
        if not self._readers:
            self._drop_old()
            self._stale |= self._given_out[-1].holes

    def _changed(self) -> None:
        self._stale = True
        if self._readers:
            self._give_out()

    def _give_out(self) -> None:
        table = _Table(self._rows[: self._count])
        self._given_out.append(table)
        self._cell[0] = table.words.ctypes.data
        self._stale = False
        self._cell[1] = len(self._given_out)
        if not self._readers:
            self._drop_old()

    def _drop_old(self) -> None:
        del self._given_out[:-1]
        self._cell[1] = len(self._given_out)
