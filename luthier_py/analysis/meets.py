"""Where ways through a function meet again.

In: where control goes from each node. Out: :class:`Meets`. Invariant: a node meets all ways from another if each way
from that to the end leads through it; the end, EXIT, always does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import reduce
from operator import and_

from luthier_py.isa.registers import set_bits

EXIT = -1


class Meets:
    """The solution. ``all_end``: from every node some way leads to the end."""

    def __init__(self, after: Mapping[int, Sequence[int]]) -> None:
        """``after``: where control goes from each node, perhaps to EXIT."""
        self._after = after
        before: dict[int, list[int]] = {node: [] for node in (EXIT, *after)}
        for node, following in after.items():
            for each in following:
                before[each].append(node)
        ending, todo = {EXIT}, [EXIT]
        while todo:
            found = set(before[todo.pop()]) - ending
            ending |= found
            todo += found
        self.all_end = len(ending) > len(after)
        self._number = {EXIT: 0, **{node: place for place, node in enumerate(after, 1)}}
        self._node = list(self._number)
        self._behind = self._solved()

    def _solved(self) -> dict[int, int]:
        """For each node itself and those that every way from it to the end leads through."""
        every = (1 << len(self._number)) - 1
        behind = {**dict.fromkeys(self._after, every), EXIT: 1}
        changed = True
        while changed:
            changed = False
            for node in reversed(list(self._after)):
                shared = reduce(and_, (behind[each] for each in self._after[node])) | 1 << self._number[node]
                if shared != behind[node]:
                    behind[node], changed = shared, True
        return behind

    def next(self, node: int, hidden: Set[int] = frozenset()) -> int:
        """The first behind ``node`` that every way from it to the end leads through, and that is not hidden."""
        found = [self._node[place] for place in set_bits(self._behind[node])]
        return max((each for each in found if each != node and each not in hidden),
                   key=lambda each: self._behind[each].bit_count())

    def between(self, node: int) -> set[int]:
        """What may run on ways from ``node`` to where they meet."""
        meet = self.next(node)
        found: set[int] = set()
        todo = [each for each in self._after[node] if each != meet]
        while todo:
            each = todo.pop()
            if each not in found:
                found.add(each)
                todo += [other for other in self._after[each] if other not in (meet, EXIT)]
        return found - {EXIT}
