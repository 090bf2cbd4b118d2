"""Where the boxes of a graph stand, layer below layer, and how the lines between them go.

In: sizes of boxes, edges, the boxes where ways begin. Out: corners and lines. Invariant: no two boxes overlap, no line
goes through a box, and lines run across or down only, but for back edges, which run up beside the boxes.

The steps are Sugiyama's: edges that go back are set aside (those to a box that the way to them came through); a box's
layer is the longest way to it; an edge over several layers gets a bend in each, which those to the same box share;
boxes and bends of a layer are put into the order of what they hang on (barycentres), then as near to that as their
widths let them: the best such places are an isotonic regression, found by pooling adjacent violators.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from luthier_py.base.records import dataclass, field

APART = 24.0  # between boxes of a layer
LANE = 9.0    # between lines that run beside each other
MARGIN = 14.0  # between a layer and the lines below it
SWEEPS, WORK = 8, 1 << 18  # how often layers are gone through, and what is gone through altogether at most
STRAIGHT = 6.0  # how much more a bend holds to its place than a box: long lines are to be straight

Corner = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Size:
    """Width and height of a box, or of the whole drawing, in pixels."""

    width: float
    height: float


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """``corners``: upper left ones of boxes. ``lines``: of each edge, from its source to its target, or as far as
    another line to that. ``back``: numbers of edges that go back, ``joined``: of those that end in another's line."""

    corners: Sequence[Corner]
    lines: Sequence[Sequence[Corner]]
    back: frozenset[int]
    joined: frozenset[int]
    size: Size


def lay_out_graph(sizes: Sequence[Size], edges: Sequence[tuple[int, int]],
                  entries: Sequence[int] = (0,)) -> GraphLayout:
    """``edges``: numbers of two boxes each; there may be several between the same."""
    layers = _assign_layers(sizes, edges, entries)
    layers.put_in_order()
    layers.put_in_place()
    return _build_layout(layers)


@dataclass(slots=True)
class _Layers:
    """Mutable: boxes, and behind them bends. ``chains``: of each edge what it goes by, from above to below; of a back
    edge its bends alone, beside its target, ..., beside its source."""

    sizes: list[Size]
    edges: Sequence[tuple[int, int]]
    back: frozenset[int]
    chains: list[list[int]] = field(default_factory=list)
    layers: list[list[int]] = field(default_factory=list)
    above: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    below: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    beside: dict[int, int] = field(default_factory=dict)  # a bend and a box of the same layer
    x: list[float] = field(default_factory=list)  # of middles
    boxes: int = 0

    bends: dict[tuple[int, bool, int], int] = field(default_factory=dict)  # by target, whether it is a back edge, layer

    def bend(self, target: int, back: bool, layer: int) -> int:
        """One for all edges that go there."""
        found = self.bends.setdefault((target, back, layer), len(self.sizes))
        if found == len(self.sizes):
            self.sizes.append(Size(LANE, 0.0))
            self.layers[layer].append(found)
        return found

    def link(self, chain: Sequence[int]) -> None:
        self.chains.append(list(chain))
        for upper, lower in pairwise(chain):
            if lower not in self.below[upper]:
                self.below[upper].append(lower)
                self.above[lower].append(upper)

    @property
    def sweeps(self) -> Iterator[tuple[Mapping[int, Sequence[int]], Sequence[list[int]]]]:
        """Down and up in turns: what is before each node, and the layers."""
        for sweep in range(max(2, min(SWEEPS, WORK // len(self.sizes)))):
            yield (self.above, self.layers) if sweep % 2 == 0 else (self.below, self.layers[::-1])

    def put_in_order(self) -> None:
        place = {node: float(at) for layer in self.layers for at, node in enumerate(layer)}
        for near, layers in self.sweeps:
            for layer in layers:
                wanted = {node: _mean([place[each] for each in near[node]], place[node]) for node in layer}
                wanted.update({node: wanted[self.beside[node]] + 0.25 for node in layer if node in self.beside})
                layer.sort(key=wanted.__getitem__)
                place.update((node, float(at)) for at, node in enumerate(layer))

    def put_in_place(self) -> None:
        self.x = [0.0] * len(self.sizes)
        for layer in self.layers:
            self._spread(layer, {node: 0.0 for node in layer})
        for near, layers in self.sweeps:
            for layer in layers:
                self._spread(layer, {node: self._compute_preferred_x(node, near[node]) for node in layer})
        left = min((self.x[node] - self.sizes[node].width / 2 for layer in self.layers for node in layer), default=0.0)
        self.x = [x - left + APART for x in self.x]

    def _compute_preferred_x(self, node: int, near: Sequence[int]) -> float:
        box = self.beside.get(node)
        if box is not None:
            return self.x[box] + self.sizes[box].width / 2 + APART / 2
        weights = [self.weight(each) for each in near]
        sides = sum(self.x[each] * weight for each, weight in zip(near, weights, strict=True))
        return sides / sum(weights) if near else self.x[node]

    def weight(self, node: int) -> float:
        return STRAIGHT if node >= self.boxes else 1.0

    def _spread(self, layer: Sequence[int], wanted: Mapping[int, float]) -> None:
        """Places as near to ``wanted`` as widths let them, by least squares."""
        shift, at, pools = 0.0, list[float](), list[tuple[float, float, int]]()  # of a pool: its place, weight, count
        for number, node in enumerate(layer):
            if number:
                before = layer[number - 1]
                gap = LANE if min(before, node) >= self.boxes else APART
                shift += (self.sizes[before].width + self.sizes[node].width) / 2 + gap
            at.append(shift)
            place, weight, count = wanted[node] - shift, self.weight(node), 1
            while pools and pools[-1][0] > place:
                other, more, others = pools.pop()
                place = (place * weight + other * more) / (weight + more)
                weight, count = weight + more, count + others
            pools.append((place, weight, count))
        places = (place for place, _, count in pools for _ in range(count))
        for node, place, shifted in zip(layer, places, at, strict=True):
            self.x[node] = place + shifted


def _mean(numbers: Sequence[float], otherwise: float) -> float:
    return sum(numbers) / len(numbers) if numbers else otherwise


def _assign_layers(sizes: Sequence[Size], edges: Sequence[tuple[int, int]], entries: Sequence[int]) -> _Layers:
    order, back = _compute_reverse_postorder(len(sizes), edges, entries)
    rank = [0] * len(sizes)
    after: defaultdict[int, list[int]] = defaultdict(list)
    for number, (source, target) in enumerate(edges):
        if number not in back:
            after[source].append(target)
    for node in order:
        for target in after[node]:
            rank[target] = max(rank[target], rank[node] + 1)
    found = _Layers(list(sizes), edges, back, boxes=len(sizes))
    found.layers = [[] for _ in range(max(rank, default=-1) + 1)]
    for node in order:
        found.layers[rank[node]].append(node)
    for number, (source, target) in enumerate(edges):
        if number in back:
            found.link([found.bend(target, True, layer) for layer in range(rank[target], rank[source] + 1)])
            found.beside.setdefault(found.chains[-1][-1], source)
            found.beside[found.chains[-1][0]] = target
        else:
            bends = [found.bend(target, False, layer) for layer in range(rank[source] + 1, rank[target])]
            found.link([source, *bends, target])
    return found


def _compute_reverse_postorder(
    count: int, edges: Sequence[tuple[int, int]], entries: Sequence[int]
) -> tuple[list[int], frozenset[int]]:
    """Boxes in reverse postorder, and the edges that lead to a box that the walk has not left yet."""
    after: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, (source, target) in enumerate(edges):
        after[source].append((number, target))
    order, back, left, entered = list[int](), set[int](), set[int](), set[int]()
    for root in (*entries, *range(count)):
        work: list[tuple[int, Iterator[tuple[int, int]]]] = []
        if root not in entered:
            entered.add(root)
            work.append((root, iter(reversed(after[root]))))
        while work:
            node, ways = work[-1]
            for number, target in ways:
                if target not in entered:
                    entered.add(target)
                    work.append((target, iter(reversed(after[target]))))
                    break
                if target not in left:
                    back.add(number)
            else:
                left.add(node)
                order.append(node)
                work.pop()
    return order[::-1], frozenset(back)


# -- lines ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Across:
    """A piece of a line between two layers, from one x to another. ``track``: which of the lines there, from above."""

    start: float
    end: float
    track: int = 0


def _build_layout(layers: _Layers) -> GraphLayout:
    gaps: list[dict[tuple[float, float], _Across]] = [{} for _ in range(len(layers.layers) + 1)]
    level = {node: number for number, layer in enumerate(layers.layers) for node in layer}
    routes, joined = _routes(layers, level, gaps), set[int]()
    tops, bottoms = _heights(layers, [_assign_tracks(list(gap.values())) for gap in gaps])
    corners = [(layers.x[box] - layers.sizes[box].width / 2, tops[level[box]]) for box in range(layers.boxes)]
    lines = []
    for number, ((source, target), (pieces, meets)) in enumerate(zip(layers.edges, routes, strict=True)):
        points = [(pieces[0][1].start, corners[source][1] + layers.sizes[source].height)]
        for gap, piece in pieces:
            y = bottoms[gap] + MARGIN + piece.track * LANE
            points += [(piece.start, y), (piece.end, y)]
        end = corners[target][1]
        if meets is not None:
            joined.add(number)
            end = bottoms[level[meets] + 1] if number in layers.back else tops[level[meets]]
        lines.append([*points, (pieces[-1][1].end, end)])
    width = max((layers.x[node] + layers.sizes[node].width / 2 for node in level), default=0.0) + APART
    return GraphLayout(corners, lines, layers.back, frozenset(joined), Size(width, bottoms[-1] + 3 * MARGIN))


def _routes(
    layers: _Layers, level: Mapping[int, int], gaps: Sequence[dict[tuple[float, float], _Across]]
) -> list[tuple[list[tuple[int, _Across]], int | None]]:
    """Of each edge its pieces with the gaps that they are in, and the bend where it meets another's line."""
    out, into = _ports(layers)
    seen, found = set[int](), []
    for number in range(len(layers.edges)):
        back, chain = number in layers.back, layers.chains[number]
        bends = chain[::-1] if back else chain[1:-1]
        x, pieces, meets = out[number], [], None
        for bend in bends:
            pieces.append((level[bend] + back, gaps[level[bend] + back].setdefault(
                (x, layers.x[bend]), _Across(x, layers.x[bend]))))
            x = layers.x[bend]
            if bend in seen:
                meets = bend
                break
            seen.add(bend)
        else:
            gap = level[layers.edges[number][1]]
            pieces.append((gap, gaps[gap].setdefault((x, into[number]), _Across(x, into[number]))))
        found.append((pieces, meets))
    return found


def _ports(layers: _Layers) -> tuple[dict[int, float], dict[int, float]]:
    """By edge, where it leaves its source, and comes to its target: beside others, in the order of where they go."""
    leaving, coming = defaultdict[int, dict[int, int]](dict), defaultdict[int, dict[int, int]](dict)
    for number, (source, target) in enumerate(layers.edges):
        chain = layers.chains[number]
        first, last = (chain[-1], chain[0]) if number in layers.back else (chain[1], chain[-2])
        leaving[source][number], coming[target][number] = first, last
    return _space_ends(layers, leaving), _space_ends(layers, coming)


def _space_ends(layers: _Layers, ends: Mapping[int, Mapping[int, int]]) -> dict[int, float]:
    """Those over the same bend share a place."""
    found = {}
    for box, those in ends.items():
        places = sorted(dict.fromkeys(those.values()), key=layers.x.__getitem__)
        step = layers.sizes[box].width / (len(places) + 1)
        left = layers.x[box] - layers.sizes[box].width / 2
        found.update({number: left + step * (places.index(place) + 1) for number, place in those.items()})
    return found


def _assign_tracks(gap: list[_Across]) -> int:
    """Give each piece the first track that is free there; how many there are."""
    ends: list[float] = []
    for piece in sorted((piece for piece in gap if piece.start != piece.end),
                        key=lambda piece: min(piece.start, piece.end)):
        left, right = sorted((piece.start, piece.end))
        piece.track = next((track for track, end in enumerate(ends) if end + LANE < left), len(ends))
        ends[piece.track :] = [right, *ends[piece.track + 1 :]]
    return len(ends)


def _heights(layers: _Layers, tracks: Sequence[int]) -> tuple[list[float], list[float]]:
    """Where layers begin, and the gaps, of which one is below the last layer."""
    tops, bottoms = list[float](), [0.0]
    for layer, lines in zip(layers.layers, tracks, strict=False):
        tops.append(bottoms[-1] + 2 * MARGIN + lines * LANE)
        bottoms.append(tops[-1] + max(layers.sizes[node].height for node in layer))
    bottoms.append(bottoms[-1] + tracks[-1] * LANE)
    return tops, bottoms
