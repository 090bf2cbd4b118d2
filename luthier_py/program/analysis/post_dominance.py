"""Where ways through a function meet again.

In: the successors of each node. Out: :class:`PostDominators`. Invariant: a node meets all ways from another if
each way from that to the end leads through it; the end, EXIT, always does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from luthier_py.program.analysis.dominance import immediate_dominators

EXIT = -1


class PostDominators:
    """The solution, of nodes from which some way leads to the end; ``all_end``: these are all."""

    def __init__(self, after: Mapping[int, Sequence[int]]) -> None:
        """``after``: the successors of each node, EXIT perhaps among them."""
        self._after = after
        before: dict[int, list[int]] = {node: [] for node in (EXIT, *after)}
        for node, following in after.items():
            for each in following:
                before[each].append(node)
        self._next = immediate_dominators([EXIT], before)
        self.all_end = len(self._next) == len(before)

    def next(self, node: int, hidden: Set[int] = frozenset()) -> int:
        """The first behind ``node`` that every way from it to the end leads through, and that is not hidden."""
        found = self._next[node]
        while found is not None and found in hidden:
            found = self._next[found]
        assert found is not None, "the end is never hidden"
        return found

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
