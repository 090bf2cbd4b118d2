"""Dominators of any graph.

In: where ways begin, and where they go from each node. Out: for each node that they come to the one that immediately
dominates it. Invariant: a node dominates another if every way to that leads through it. Backwards, from the end, the
same are post-dominators.

As in Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm" (2001): sweeps in reverse postorder.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

Vertex = TypeVar("Vertex", bound=Hashable)


def immediate_dominators(
    entries: Sequence[Vertex], after: Mapping[Vertex, Sequence[Vertex]]
) -> dict[Vertex, Vertex | None]:
    """None of entries, and where ways from several meet."""
    order = _postorder(entries, after)
    rank = {node: number for number, node in enumerate(order)}
    before: defaultdict[Vertex, list[Vertex]] = defaultdict(list)
    for node in order:
        for each in after[node]:
            before[each].append(node)
    found: dict[Vertex, Vertex | None] = dict.fromkeys(entries)
    inner = [node for node in reversed(order) if node not in found]
    changed = True
    while changed:
        changed = False
        for node in inner:
            known = [each for each in before[node] if each in found]
            new: Vertex | None = known[0]
            for other in known[1:]:
                new = _common(new, other, found, rank)
            if node not in found or found[node] != new:
                found[node], changed = new, True
    return found


def _postorder(entries: Sequence[Vertex], after: Mapping[Vertex, Sequence[Vertex]]) -> list[Vertex]:
    order: list[Vertex] = []
    seen: set[Vertex] = set()
    for entry in entries:
        work = [] if entry in seen else [(entry, iter(after[entry]))]
        seen.add(entry)
        while work:
            node, left = work[-1]
            following = next((each for each in left if each not in seen), None)
            if following is None:
                order.append(node)
                work.pop()
            else:
                seen.add(following)
                work.append((following, iter(after[following])))
    return order


def _common(
    a: Vertex | None, b: Vertex | None, found: Mapping[Vertex, Vertex | None], rank: Mapping[Vertex, int]
) -> Vertex | None:
    """The nearest that dominates both."""
    while a != b:
        if a is None or b is None:
            return None
        if rank[a] < rank[b]:
            a = found[a]
        else:
            b = found[b]
    return a
