"""Paths through a function, numbered (Ball and Larus, "Efficient Path Profiling", 1996).

In: nodes in which control stays together, arcs between them, and where control comes in. Out: Paths. Invariant:
whatever way control takes falls into paths in one way only; each path has a number below ``total``, each number is one
path.

A path begins where control comes in or behind a cut arc, and ends with the arc by which control leaves, or with a cut
one. Cut are arcs that lead back, those that must be, and those into nodes from which too many paths lead on. What is
left has no cycles: arcs get values whose sum along a path is its number. Few arcs need add anything: what those of a
spanning tree would add follows from the others, as counts do (regions).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import inf

from luthier_py.base.records import dataclass
from luthier_py.program.analysis.regions import OUTSIDE, build_spanning_tree

Arc = tuple[int, int]
"""From node to node; to OUTSIDE where control leaves."""
NUMBERS = 1 << 32  # a sum has 32 bits
_ONWARD = 1 << 20


@dataclass(frozen=True, slots=True)
class Adding:
    """What makes a sum the number of a path, if it is zero where control comes in: of each arc what it adds, where a
    path ends before that is counted; and of a cut one what the sum is then."""

    adds: tuple[int, ...]
    begins: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Paths:
    """``starts``: the nodes with which paths begin. ``values``: those of starts, then those of arcs."""

    arcs: tuple[Arc, ...]
    entries: tuple[int, ...]
    cut: frozenset[int]
    starts: tuple[int, ...]
    values: tuple[int, ...]
    total: int

    def ends(self, arc: int) -> bool:
        """Whether paths end with it."""
        return arc in self.cut or self.arcs[arc][1] == OUTSIDE

    def along(self, number: int) -> tuple[int, tuple[int, ...]]:
        """The first node of a path, and its arcs."""
        behind, leaving, found = len(self.starts), _group_arcs_by_source(self.arcs), list[int]()
        start = self._last(range(behind), number)
        number, node = number - self.values[start], self.starts[start]
        while not found or not self.ends(found[-1]):
            piece = self._last([behind + arc for arc in leaving[node]], number)
            found.append(piece - behind)
            number, node = number - self.values[piece], self.arcs[piece - behind][1]
        return self.starts[start], tuple(found)

    def _last(self, pieces: Iterable[int], number: int) -> int:
        """The last one whose value is not above ``number``; they ascend."""
        return max(piece for piece in pieces if self.values[piece] <= number)

    def place_increments(self, often: Sequence[float]) -> Adding:
        """What to add on arcs, least on those that run most ``often``. What ends or begins a path adds for nothing."""
        behind, leaving = len(self.starts), _group_arcs_by_source(self.arcs)
        onward = {node: [behind + arc for arc in arcs] for node, arcs in leaving.items()}
        flow = [onward[start] for start in self.starts]
        flow += [[OUTSIDE] if self.ends(arc) else onward[to] for arc, (_, to) in enumerate(self.arcs)]
        preference = [inf if start in self.entries else -1.0 for start in self.starts]
        preference += [-1.0 if self.ends(arc) else often[arc] for arc in range(len(self.arcs))]
        found = build_spanning_tree([*flow, range(behind)], preference).weights(self.values)
        begins = {start: found.get(piece, 0) % NUMBERS for piece, start in enumerate(self.starts)}
        return Adding(tuple(found.get(behind + arc, 0) % NUMBERS for arc in range(len(self.arcs))),
                      tuple(begins[to] if arc in self.cut else 0 for arc, (_, to) in enumerate(self.arcs)))


def paths(nodes: int, arcs: Sequence[Arc], entries: Sequence[int], must_cut: Collection[int] = ()) -> Paths:
    """Every node has an arc that leaves it."""
    leaving, onward = _group_arcs_by_source(arcs), _ONWARD
    order, back = _order(nodes, [*entries, *range(nodes)], arcs, leaving)
    while True:
        found = _number_paths(arcs, tuple(entries), {*back, *must_cut}, order, leaving, onward)
        if found.total <= NUMBERS:
            return found
        onward >>= 4


def _number_paths(arcs: Sequence[Arc], entries: tuple[int, ...], cut: set[int], order: Iterable[int],
              leaving: Mapping[int, Sequence[int]], onward: int) -> Paths:
    """``order``: each node behind those that arcs lead to from it, but for those that are cut."""
    many: dict[int, int] = {}
    values = [0] * len(arcs)
    for node in order:
        total = 0
        for arc in leaving[node]:
            to = arcs[arc][1]
            if many.get(to, 0) > onward:
                cut.add(arc)
            values[arc] = total
            total += 1 if to == OUTSIDE or arc in cut else many[to]
        many[node] = total
    starts = tuple(dict.fromkeys((*entries, *(arcs[arc][1] for arc in sorted(cut)))))
    first, total = [], 0
    for start in starts:
        first.append(total)
        total += many[start]
    return Paths(tuple(arcs), entries, frozenset(cut), starts, (*first, *values), total)


def _group_arcs_by_source(arcs: Sequence[Arc]) -> Mapping[int, Sequence[int]]:
    found: defaultdict[int, list[int]] = defaultdict(list)
    for arc, (node, _) in enumerate(arcs):
        found[node].append(arc)
    return found


def _order(nodes: int, roots: Iterable[int], arcs: Sequence[Arc], leaving: Mapping[int, Sequence[int]]) -> tuple[
        list[int], set[int]]:
    """Nodes, each behind those that it leads to, and the arcs that lead back."""
    order, back = list[int](), set[int]()
    state = [0] * nodes  # 1: on the way here, 2: in the order
    for root in roots:
        work = [] if state[root] else [(root, iter(leaving[root]))]
        state[root] = state[root] or 1
        while work:
            node, left = work[-1]
            for arc in left:
                to = arcs[arc][1]
                if to != OUTSIDE and state[to] == 1:
                    back.add(arc)
                elif to != OUTSIDE and not state[to]:
                    state[to] = 1
                    work.append((to, iter(leaving[to])))
                    break
            else:
                state[node] = 2
                order.append(node)
                work.pop()
    return order, back
