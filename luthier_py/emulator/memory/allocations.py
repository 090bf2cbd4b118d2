"""The table of allocations that native code searches, and that may change while it does.

In: allocations, inserted and removed where they belong. Out: the address of a word that always holds where the table
is now: a count, then records of layout.ALLOCATION, ascending. Invariant: a search that is under way finds whatever was
there before and after a change. So in a table that has been given out a record is put behind the last one, emptied
where it lies, or filled again, each by the writing of one word; for any other change there is a new table, and while
a thread reads, old ones stay. A change costs nothing until a launch begins, and reaches launches that run at once.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left

from luthier_py.emulator.records.layout import ALLOCATION_BYTES
from luthier_py.emulator.records.words import Words, address_of, zero_words

_WORDS = ALLOCATION_BYTES // 8


class _Table:
    """Mutable: one that has been given out. ``words``: the count, then records, and room for more."""

    def __init__(self, records: Words) -> None:
        count = len(records) // _WORDS
        self._room = max(2 * count, 64)
        self.words = zero_words(1 + self._room * _WORDS)
        self.words[0] = count
        self.words[1 : 1 + len(records)] = records
        self.holes = False
        """Whether records were emptied."""

    def put(self, start: int, end: int, access: int) -> bool:
        """Whether there was a place for this record: behind the last one, or where it was before."""
        count, place = self.words[0], self._place(start)
        at = 1 + place * _WORDS
        if place < count:
            if self.words[at] != start or self.words[at + 1] != start:
                return False
            self.words[at + 2] = access
            self.words[at + 1] = end
            return True
        if count == self._room:
            return False
        self.words[at : at + _WORDS] = array("Q", (start, end, access))
        self.words[0] = count + 1
        return True

    def empty(self, start: int) -> None:
        self.words[2 + self._place(start) * _WORDS] = start
        self.holes = True

    def _place(self, start: int) -> int:
        return bisect_left(range(self.words[0]), start, key=lambda place: self.words[1 + place * _WORDS])


class AllocationTable:
    """Mutable, and guarded by its owner: one thread at a time."""

    def __init__(self) -> None:
        self._records: Words = array("Q")
        self._cell = zero_words(2)
        self._given_out: list[_Table] = []  # the last is the current one
        self._readers = 0
        self._stale = True

    @property
    def cell(self) -> int:
        """Address of the word; the one behind it counts old tables that readers may use."""
        return address_of(self._cell)

    @property
    def rows(self) -> list[list[int]]:
        """All records, those of empty allocations among them."""
        return [self._records[at : at + _WORDS].tolist() for at in range(0, len(self._records), _WORDS)]

    def insert(self, place: int, start: int, end: int, access: int) -> None:
        """A record before the one that is at ``place`` now."""
        self._records[place * _WORDS : place * _WORDS] = array("Q", (start, end, access))
        if not self._readers or not self._given_out[-1].put(start, end, access):
            self._mark_stale()

    def replace(self, place: int, start: int, end: int, access: int) -> None:
        """Another record, with the same start, at ``place``; readers find it in a new table."""
        self._records[place * _WORDS : (place + 1) * _WORDS] = array("Q", (start, end, access))
        self._mark_stale()

    def remove(self, first: int, last: int) -> None:
        """The records from ``first`` up to ``last``, which stays."""
        starts = self._records[first * _WORDS : last * _WORDS : _WORDS]
        del self._records[first * _WORDS : last * _WORDS]
        if not self._readers:
            self._mark_stale()
            return
        for start in starts:
            self._given_out[-1].empty(start)

    def enter(self) -> None:
        """A thread begins to read through the word."""
        self._readers += 1
        if self._stale:
            self._give_out()

    def leave(self) -> None:
        """End a reading that :meth:`enter` began; after the last one old tables are freed."""
        self._readers -= 1
        if not self._readers:
            self._drop_old()
            self._stale |= self._given_out[-1].holes

    def _mark_stale(self) -> None:
        self._stale = True
        if self._readers:
            self._give_out()

    def _give_out(self) -> None:
        table = _Table(self._records)
        self._given_out.append(table)
        self._cell[0] = address_of(table.words)
        self._stale = False
        self._cell[1] = len(self._given_out)
        if not self._readers:
            self._drop_old()

    def _drop_old(self) -> None:
        del self._given_out[:-1]
        self._cell[1] = len(self._given_out)
