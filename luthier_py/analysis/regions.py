"""Pieces of code that run equally often in every execution that comes to its end.

In: pieces of one function, and how control flows between them and the outside. Out: a group number for each.
Invariant: pieces of one group run equally often each time that the function is run through.

How often control takes each edge is a flow that no piece creates or loses. If two edges cut the graph in two, as much
flows through the one as comes back through the other: these pairs are what is looked for (Johnson, Pearson, Pingali,
"The Program Structure Tree", 1994). They are found by labels: edges outside a spanning tree get random numbers, an edge
of the tree the exclusive or of all numbers whose cycles run through it; then two edges cut the graph exactly if
their labels are equal, but for chance, which with 64 bits is none (Pritchard and Thurimella, 2011).
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable

OUTSIDE = -1
_BITS = 64


def equally_often(pieces: int, flow: Iterable[tuple[int, int]]) -> list[int]:
    """Groups of the pieces 0, 1, ...; ``flow`` has an edge for each way from one to the next, or from or to OUTSIDE."""
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
