"""Free ranges of an address range: what is given back is joined with its neighbours, and the tightest fit is taken.

In: sizes, and starts of what was taken. Out: starts. Invariant: no two free ranges touch.
"""

from __future__ import annotations

from bisect import bisect_left, insort


class FreeSpace:
    """Mutable: what is free."""

    def __init__(self, start: int, size: int) -> None:
        self._by_size: list[tuple[int, int]] = []  # (size, start), sorted
        self._sizes: dict[int, int] = {}           # by start
        self._starts: dict[int, int] = {}          # by end
        self._add(start, size)

    def take(self, size: int, alignment: int) -> int | None:
        """The start of ``size`` bytes; None where no free range has room."""
        for place in range(bisect_left(self._by_size, (size, 0)), len(self._by_size)):
            length, start = self._by_size[place]
            found = -(-start // alignment) * alignment
            left = start + length - found - size
            if left >= 0:
                self._remove(start)
                self._add(start, found - start)
                self._add(found + size, left)
                return found
        return None

    def take_at(self, start: int, size: int) -> bool:
        """Whether these very bytes were free; then they are taken."""
        for first, length in self._sizes.items():
            if first <= start and start + size <= first + length:
                self._remove(first)
                self._add(first, start - first)
                self._add(start + size, first + length - start - size)
                return True
        return False

    def give(self, start: int, size: int) -> None:
        """Take back what was taken."""
        end = start + size
        if end in self._sizes:
            size += self._remove(end)
        if start in self._starts:
            start = self._starts[start]
            size += self._remove(start)
        self._add(start, size)

    def _add(self, start: int, size: int) -> None:
        if size:
            insort(self._by_size, (size, start))
            self._sizes[start] = size
            self._starts[start + size] = start

    def _remove(self, start: int) -> int:
        """The size of the free range that begins there, which is none any more."""
        size = self._sizes.pop(start)
        del self._starts[start + size]
        del self._by_size[bisect_left(self._by_size, (size, start))]
        return size
