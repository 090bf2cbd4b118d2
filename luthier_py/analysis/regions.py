"""How often pieces of code run, in every execution that comes to its end: what is equal, and what follows from what.

In: pieces of one function, and how control flows between them and the outside. Out: groups of pieces that run equally
often each time that the function is run through; and the fewest pieces whose counts give those of all others.

How often control takes each edge is a flow that no piece creates or loses. If two edges cut the graph in two, as much
flows through the one as comes back through the other: these pairs are what is looked for (Johnson, Pearson, Pingali,
"The Program Structure Tree", 1994). They are found by labels: edges outside a spanning tree get random numbers, an edge
of the tree the exclusive or of all numbers whose cycles run through it; then two edges cut the graph exactly if
their labels are equal, but for chance, which with 64 bits is none (Pritchard and Thurimella, 2011).

Counting: pieces are the edges of another graph. Its nodes are what control flows through between pieces: from where one
ends to where others start, all that hang together. As often as pieces come into a node, pieces leave it. So what
runs in a spanning tree follows from what runs outside of it (Knuth, 1973), and the tree should have what runs often.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

OUTSIDE = -1
_BITS = 64
_SWEEPS = 16     # through a function, for an estimate
_BACK = 7 / 8    # of the ways from a piece that ends a loop lead back

Flow = Sequence[tuple[int, int]]
"""An edge for each way from one piece to the next, or from or to OUTSIDE."""


def equally_often(pieces: int, flow: Iterable[tuple[int, int]]) -> list[int]:
    """Groups of the pieces 0, 1, ..."""
    edges = [(2 * piece, 2 * piece + 1) for piece in range(pieces)]  # through a piece: from its start to its end
    edges += [(2 * a + 1 if a != OUTSIDE else OUTSIDE, 2 * b if b != OUTSIDE else OUTSIDE) for a, b in flow]
    labels = _labels(edges)
    groups: dict[int, int] = {}
    found = []
    for piece in range(pieces):
        label = labels[piece] or -1 - piece  # nothing ever flows through a bridge: it is like nobody else
        found.append(groups.setdefault(label, len(groups)))
    return found


def _labels(edges: list[tuple[int, int]]) -> list[int]:
    incident: dict[int, list[int]] = defaultdict(list)
    for number, (a, b) in enumerate(edges):
        incident[a].append(number)
        incident[b].append(number)
    parent: dict[int, int] = {}  # node -> the edge by which the spanning tree reaches it
    order: list[int] = []
    for root in incident:
        todo = [(root, -1)]
        while todo:
            node, edge = todo.pop()
            if node not in parent:
                parent[node] = edge
                order.append(node)
                todo += [(sum(edges[e]) - node, e) for e in incident[node]]
    rng, tree = random.Random(0), set(parent.values())
    labels = [0 if number in tree else rng.getrandbits(_BITS) for number in range(len(edges))]
    for node in reversed(order):  # children before their parents
        if parent[node] >= 0:
            for edge in incident[node]:
                if edge != parent[node] and edges[edge][0] != edges[edge][1]:
                    labels[parent[node]] ^= labels[edge]
    return labels


@dataclass(frozen=True, slots=True)
class Spanning:
    """What must be counted of some pieces. ``tree`` has those that follow, each with the nodes that it leads from and
    to; the node that is farther from the root is the second one of ``grown``, and parents come before children."""

    pieces: int
    counted: tuple[int, ...]
    ends: tuple[tuple[int, int], ...]              # of each piece: the nodes that it leads from and to
    grown: tuple[tuple[int, int, int], ...]        # piece, node nearer to the root, node that it adds

    def weights(self, values: Sequence[int]) -> dict[int, int]:
        """For each counted piece a weight, so that the weighted sum of their executions is the sum over all pieces of
        executions times ``values``."""
        height: dict[int, int] = defaultdict(int)
        for piece, near, far in self.grown:
            height[far] = height[near] + (values[piece] if self.ends[piece] == (near, far) else -values[piece])
        return {p: values[p] + height[self.ends[p][0]] - height[self.ends[p][1]] for p in self.counted}

    def executions(self, counts: Mapping[int, int]) -> list[int]:
        """Of all pieces, from those of the counted ones."""
        surplus: dict[int, int] = defaultdict(int)
        found = [0] * self.pieces
        for piece, count in counts.items():
            start, end = self.ends[piece]
            found[piece] = count
            surplus[start] -= count
            surplus[end] += count
        for piece, near, far in reversed(self.grown):  # all others at ``far`` are known
            forward = self.ends[piece] == (near, far)
            found[piece] = -surplus[far] if forward else surplus[far]
            surplus[near] += surplus[far]
        return found


def spanning(pieces: int, flow: Flow, preference: Sequence[float]) -> Spanning:
    """Counts as few pieces as can be, those with the lowest ``preference`` for not being counted."""
    node = _Joined()
    for a, b in flow:
        node.join(2 * a + 1 if a != OUTSIDE else OUTSIDE, 2 * b if b != OUTSIDE else OUTSIDE)
    ends = tuple((node.of(2 * piece), node.of(2 * piece + 1)) for piece in range(pieces))
    beside: dict[int, list[int]] = defaultdict(list)
    counted = []
    for piece in sorted(range(pieces), key=lambda piece: -preference[piece]):
        if node.join(*ends[piece]):
            for end in ends[piece]:
                beside[end].append(piece)
        else:
            counted.append(piece)
    return Spanning(pieces, tuple(sorted(counted)), ends, tuple(_grown(ends, beside)))


def _grown(ends: Sequence[tuple[int, int]], beside: Mapping[int, list[int]]) -> Iterable[tuple[int, int, int]]:
    seen: set[int] = set()
    for root in beside:
        todo = [] if root in seen else [root]
        seen.add(root)
        while todo:
            near = todo.pop()
            for piece in beside[near]:
                far = sum(ends[piece]) - near
                if far not in seen:
                    seen.add(far)
                    todo.append(far)
                    yield piece, near, far


class _Joined:
    """Numbers in groups (mutable: groups become one)."""

    def __init__(self) -> None:
        self._parents: dict[int, int] = {}

    def of(self, number: int) -> int:
        """The group of ``number``, which is one of its members."""
        while (parent := self._parents.setdefault(number, number)) != number:
            self._parents[number] = self._parents[parent]
            number = parent
        return number

    def join(self, a: int, b: int) -> bool:
        """Make one group of two; False if it is one already."""
        first, second = self.of(a), self.of(b)
        self._parents[second] = first
        return first != second


def estimated(pieces: int, flow: Flow) -> list[float]:
    """About how often each piece runs: loops go round some times, branches go either way. Pieces are in the order of
    their addresses."""
    following: dict[int, list[int]] = defaultdict(list)
    for a, b in flow:
        following[a].append(b)
    coming: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for a, targets in following.items():
        back = sum(OUTSIDE < b <= a for b in targets)
        for b in targets:
            share = 1 / len(targets) if back in (0, len(targets)) else (
                _BACK / back if OUTSIDE < b <= a else (1 - _BACK) / (len(targets) - back))
            coming[b].append((a, share))
    runs = [*[0.0] * pieces, 1.0]  # the last one is OUTSIDE
    ways = [coming[piece] for piece in range(pieces)]
    for _ in range(_SWEEPS):
        for piece, each in enumerate(ways):
            total = 0.0
            for a, share in each:
                total += share * runs[a]
            runs[piece] = total
    return runs[:pieces]


def going_round(pieces: int, flow: Flow) -> list[bool]:
    """Whether each piece may run again after it has run (Tarjan, 1972)."""
    following: dict[int, list[int]] = defaultdict(list)
    for a, b in flow:
        if OUTSIDE not in (a, b):
            following[a].append(b)
    found = [piece in following[piece] for piece in range(pieces)]
    number, low, stack, done = [0] * pieces, [0] * pieces, [], [False] * pieces
    count = 0
    for root in range(pieces):
        todo = [(root, 0)] if not number[root] else []
        while todo:
            piece, at = todo.pop()
            if at == 0:
                count += 1
                number[piece] = low[piece] = count
                stack.append(piece)
            else:
                low[piece] = min(low[piece], low[following[piece][at - 1]])
            while at < len(following[piece]):
                to, at = following[piece][at], at + 1
                if not number[to]:
                    todo += [(piece, at), (to, 0)]
                    break
                if not done[to]:
                    low[piece] = min(low[piece], number[to])
            else:
                if low[piece] == number[piece]:
                    members = stack[stack.index(piece):]
                    del stack[-len(members):]
                    for member in members:
                        done[member] = True
                        found[member] |= len(members) > 1
    return found
