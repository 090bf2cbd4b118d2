"""How often pieces of code run, in every execution that comes to its end: what is equal, and what follows from what.

In: pieces of one function, and how control flows between them and the outside. Out: the fewest pieces whose counts give
those of all others; and groups of pieces that run equally often each time that the function is run through.

Pieces are the edges of a graph. Its nodes are what control flows through between pieces: from where one ends to where
others start, all that hang together. As often as pieces come into a node, pieces leave it. So what runs in a spanning
tree follows from what runs outside of it (Knuth, 1973), and the tree should have what runs often.

If two pieces cut the graph in two, as much flows through the one as comes back through the other: these are equal
(Johnson, Pearson, Pingali, "The Program Structure Tree", 1994). They are found by labels: pieces outside the spanning
tree get random numbers, one of the tree the exclusive or of all numbers whose cycles run through it; then two pieces
cut the graph exactly if their labels are equal, but for chance, which with 64 bits is none (Pritchard and Thurimella,
2011).
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from luthier_py.base.records import dataclass

OUTSIDE = -1
_BITS = 64
_SWEEPS = 16     # through a function, for an estimate
_BACK = 7 / 8    # of the ways from a piece that ends a loop lead back

Flow = Sequence[Sequence[int]]
"""The successors of each piece, OUTSIDE among them; those of OUTSIDE, which is last, are where control comes in."""


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
        """The executions of all pieces, from those of the counted ones."""
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

    def equally_often(self) -> list[int]:
        """Groups of the pieces 0, 1, ..."""
        rng = random.Random(0)
        around: dict[int, int] = defaultdict(int)
        labels = [0] * self.pieces
        for piece in self.counted:
            labels[piece] = rng.getrandbits(_BITS)
            for end in self.ends[piece]:  # a piece from a node to itself is on no other's cycle
                around[end] ^= labels[piece]
        for piece, near, far in reversed(self.grown):
            labels[piece] = around[far]
            around[near] ^= around[far]
        groups: dict[int, int] = {}  # nothing ever flows through a bridge: it is a separate region
        return [groups.setdefault(label or -1 - piece, len(groups)) for piece, label in enumerate(labels)]


def build_spanning_tree(flow: Flow, preference: Sequence[float]) -> Spanning:
    """Counts as few pieces as can be, those with the lowest ``preference`` for not being counted."""
    pieces = len(preference)
    joined = [*range(2 * pieces), OUTSIDE]  # starts and ends of pieces, in groups
    for a, targets in enumerate(flow):
        for b in targets:
            _join(joined, 2 * a + 1 if a < pieces else OUTSIDE, 2 * b if b != OUTSIDE else OUTSIDE)
    ends = tuple((_group(joined, 2 * piece), _group(joined, 2 * piece + 1)) for piece in range(pieces))
    beside: dict[int, list[int]] = defaultdict(list)
    counted = []
    for piece in sorted(range(pieces), key=lambda piece: -preference[piece]):
        if _join(joined, *ends[piece]):
            for end in ends[piece]:
                beside[end].append(piece)
        else:
            counted.append(piece)
    return Spanning(pieces, tuple(sorted(counted)), ends, tuple(_grow_spanning_tree(ends, beside)))


def _group(joined: list[int], number: int) -> int:
    """The group of ``number``, which is one of its members."""
    while (parent := joined[number]) != number:
        joined[number] = joined[parent]
        number = parent
    return number


def _join(joined: list[int], a: int, b: int) -> bool:
    """Make one group of two; False if it is one already."""
    first, second = _group(joined, a), _group(joined, b)
    joined[second] = first
    return first != second


def _grow_spanning_tree(ends: Sequence[tuple[int, int]],
                        beside: Mapping[int, list[int]]) -> Iterable[tuple[int, int, int]]:
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


def estimate_frequencies(flow: Flow) -> list[float]:
    """About how often each piece runs: loops go round some times, branches go either way. Pieces are in the order of
    their addresses."""
    pieces = len(flow) - 1
    coming: list[list[tuple[int, float]]] = [[] for _ in range(pieces + 1)]
    for a in range(OUTSIDE, pieces):
        targets = flow[a]
        back = sum(OUTSIDE < b <= a for b in targets)
        for b in targets:
            share = 1 / len(targets) if back in (0, len(targets)) else (
                _BACK / back if OUTSIDE < b <= a else (1 - _BACK) / (len(targets) - back))
            coming[b].append((a, share))
    runs = [*[0.0] * pieces, 1.0]  # the last one is OUTSIDE
    ways = [(piece, *coming[piece][0], coming[piece][1:]) for piece in range(pieces) if coming[piece]]
    for _ in range(_SWEEPS):
        for piece, first, share, others in ways:
            total = share * runs[first]
            for a, share in others:
                total += share * runs[a]
            runs[piece] = total
    return runs[:pieces]


def find_cyclic_pieces(flow: Flow) -> list[bool]:
    """Whether each piece may run again after it has run (Tarjan, 1972)."""
    following = [[b for b in targets if b != OUTSIDE] for targets in flow[:-1]]
    pieces = len(following)
    found = [piece in targets for piece, targets in enumerate(following)]
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
                    found[piece] |= stack[-1] != piece
                    while not done[piece]:
                        done[stack[-1]] = True
                        found[stack.pop()] |= found[piece]
    return found
