"""The supergraph: all functions of a program as one graph, and a solver for dataflow over it.

In: a Program. Out: :class:`Graph`, whose nodes are straight-line pieces of blocks, cut after calls.
Invariant: every way that control can take is an edge or a mark. A call leads to the entries of its callees, the
returns of a function to what follows each of its calls (context-insensitive). `leaves` marks nodes
after which code may run that is not in the program, `arrives` those that such code may come to.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from luthier_py.base.records import dataclass, field, replace
from luthier_py.isa.encoding.scan import Array
from luthier_py.program.ir import Block, CallSite, Ending, Function, Instr, Instrs, Program

if TYPE_CHECKING:
    from luthier_py.isa.columns import Columns, Kinds

Solved = TypeVar("Solved")
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """Instructions ``start`` to ``stop`` of the function's code. ``call``: the last one is a call that returns.
    ``is_head``: the first one is that of the block."""

    index: int
    function: Function
    block: Block
    start: int
    stop: int
    call: CallSite | None
    is_head: bool

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def instrs(self) -> Sequence[Instr]:
        """The node's instructions, made from the columns when they are looked at."""
        return Instrs(self.function.code, self.start, self.stop)


@dataclass(frozen=True, slots=True)
class Places:
    """For each instruction its node, and its index in the node. ``starts``: of a function's nodes, with the first.
    ``seen``: for code by which places are named, too, the code that replaces it."""

    starts: Mapping[Columns, tuple[int, list[int]]]
    seen: Mapping[Columns, Columns] = field(default_factory=dict)

    def __getitem__(self, instr: Instr) -> tuple[int, int]:
        first, starts = self.starts[self.seen.get(instr.code, instr.code)]
        number = bisect_right(starts, instr.at) - 1
        return first + number, instr.at - starts[number]


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Nodes in program order. ``after[n]``: where control continues in the same function, once a call returned."""

    nodes: tuple[Node, ...]
    successors: tuple[tuple[int, ...], ...]
    predecessors: tuple[tuple[int, ...], ...]
    after: tuple[tuple[int, ...], ...]
    kernels: frozenset[int]   # nodes where a wave starts
    leaves: frozenset[int]
    arrives: frozenset[int]
    places: Places = field(repr=False)

    def where(
        self, which: Callable[[Kinds], Array], said: Callable[[Kinds, int], Found],
    ) -> list[list[tuple[int, Found]]]:
        """For each node, ascending, where in it instructions are of kinds that ``which`` chooses, and what is ``said``
        of their kind."""
        found: list[list[tuple[int, Found]]] = []
        which, said = cache(which), cache(said)
        for code, (_, starts) in self.places.starts.items():
            at = np.flatnonzero(which(code.distinct)[code.kinds])
            cuts = [*np.searchsorted(at, starts).tolist(), len(at)]
            inside = at - np.repeat(starts, np.diff(cuts))
            pairs = [(place, said(code.distinct, kind))
                     for place, kind in zip(inside.tolist(), code.kinds[at].tolist(), strict=True)]
            found += [pairs[first:last] for first, last in pairwise(cuts)]
        return found


Heads = dict[Function, dict[int, int]]  # nodes by the addresses of the blocks that they begin


def supergraph(program: Program) -> Graph:
    """The graph of all functions of ``program``: blocks cut after each call that returns, calls and returns as
    edges."""
    nodes = tuple(_nodes(program))
    first: Heads = {function: {} for function in program.functions}
    for node in nodes:
        if node.is_head:
            first[node.function][node.block.address] = node.index
    after = tuple([_continuations(node, first[node.function]) for node in nodes])
    callers = _callers(program, nodes)
    successors: list[tuple[int, ...]] = []
    leaves, arrives = set(), set()
    for node in nodes:
        targets, unknown = _targets(node, first, after, callers)
        successors.append(tuple(sorted(targets)))
        if unknown:
            leaves.add(node.index)
            arrives |= set(after[node.index])
        if node.is_head and _unknown_entry(node, callers):
            arrives.add(node.index)
    predecessors: list[list[int]] = [[] for _ in nodes]
    for index, found in enumerate(successors):
        for target in found:
            predecessors[target].append(index)
    kernels = {first[k.function][entry] for k in program.kernels for entry in k.function.entries if k.function.blocks}
    return Graph(nodes, tuple(successors), tuple(map(tuple, predecessors)), after, frozenset(kernels),
                 frozenset(leaves), frozenset(arrives), _places(program, nodes))


def rebase_graph(program: Program, graph: Graph) -> Graph:
    """The graph of a program in which other instructions stand for some of ``program``, whose places are its places."""
    seen = {function.code: code for function, code in zip(program.functions, graph.places.starts, strict=True)}
    return replace(graph, places=replace(graph.places, seen=seen))


def _places(program: Program, nodes: Sequence[Node]) -> Places:
    starts: dict[Columns, list[int]] = {function.code: [] for function in program.functions}
    for node in nodes:
        starts[node.function.code].append(node.start)
    first = accumulate(map(len, starts.values()), initial=0)
    return Places({code: (number, each) for number, (code, each) in zip(first, starts.items(), strict=False)})


def _nodes(program: Program) -> Iterable[Node]:
    index = 0
    for function in program.functions:
        calls = program.calls(function)
        places = [site.instr.at for site in calls]
        for block in function.blocks:
            head, stop = block.start, block.stop
            start = head
            for number in range(bisect_left(places, start), bisect_left(places, stop)):
                yield Node(index, function, block, start, places[number] + 1, calls[number], start == head)
                index, start = index + 1, places[number] + 1
            if start < stop:
                yield Node(index, function, block, start, stop, None, start == head)
                index += 1


def _continuations(node: Node, heads: Mapping[int, int]) -> tuple[int, ...]:
    """Successors inside the function, calls stepped over."""
    if node.call is not None and node.stop < node.block.stop:
        return (node.index + 1,)
    return tuple([heads[address] for address in node.block.successors])


def _callers(program: Program, nodes: Sequence[Node]) -> dict[Function, set[int]]:
    """For each function the nodes whose call it returns to; a tail call passes on those of the function it is in."""
    found: dict[Function, set[int]] = {function: set() for function in program.functions}
    tails: dict[Function, set[Function]] = defaultdict(set)
    for node in nodes:
        for callee in node.call.targets if node.call is not None else ():
            if node.call is not None and node.call.tail:
                tails[node.function].add(callee)
            else:
                found[callee].add(node.index)
    todo = list(tails)
    while todo:
        function = todo.pop()
        for callee in tails[function]:
            if not found[function] <= found[callee]:
                found[callee] |= found[function]
                todo.append(callee)
    return found


def _targets(
    node: Node, first: Heads, after: Sequence[Sequence[int]], callers: Mapping[Function, set[int]],
) -> tuple[set[int], bool]:
    """Successors in the supergraph, and whether control may also leave for code that is not known."""
    ending = node.block.ending
    if node.call is None:
        targets = set(after[node.index])
        unknown = ending is Ending.INDIRECT  # a trap at the end of the code is the end of the wave
    else:
        known = [callee for callee in node.call.targets if callee.blocks and not callee.incomplete]
        targets = {first[callee][callee.address] for callee in known}
        unknown = node.call.unknown or len(known) < len(node.call.targets)
    if ending is Ending.RETURN and node.stop == node.block.stop:
        targets |= {target for caller in callers[node.function] for target in after[caller]}
        unknown |= not callers[node.function]
    return targets, unknown


def _unknown_entry(node: Node, callers: Mapping[Function, set[int]]) -> bool:
    """Whether control may come to the head of this block from code that is not known."""
    if node.function.incomplete:
        return True
    return node.block.address in node.function.entries and not node.function.kernel and not callers[node.function]


def solve(
    edges: Sequence[Sequence[int]], boundary: Sequence[Solved | None], join: Callable[[Solved, Solved], Solved],
    flow: Callable[[int, Solved], Solved], along: Callable[[int, int, Solved], Solved] | None = None,
    backward: bool = False,
) -> tuple[list[Solved | None], list[Solved | None]]:
    """The least solution: the states that go into each node, and those that come out; None where nothing does.

    ``edges`` point with the flow, ``boundary`` is what comes from outside. Of the nodes to look at, the first one in
    the program is next, or the last one if the flow is ``backward``.
    ``along(a, b, state)`` may refine the state that flows from a to b. States must form a lattice without infinite
    ascent.
    """
    inputs: list[Solved | None] = list(boundary)
    outputs: list[Solved | None] = [None] * len(inputs)
    queued = bytearray(state is not None for state in inputs)
    low, high = 0, len(inputs)  # forward none is queued before the one, backward none from the other on
    while (node := queued.rfind(1, 0, high) if backward else queued.find(1, low)) >= 0:
        queued[node], low, high = 0, node, node + 1
        state, before = inputs[node], outputs[node]
        assert state is not None
        output = flow(node, state)
        if output == before:
            continue
        outputs[node] = output
        for target in edges[node]:
            new = output if along is None else along(node, target, output)
            old = inputs[target]
            joined = new if old is None else join(old, new)
            if joined != old:
                inputs[target] = joined
                queued[target], low, high = 1, min(low, target), max(high, target + 1)
    return inputs, outputs
