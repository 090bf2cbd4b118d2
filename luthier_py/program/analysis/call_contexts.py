"""A kernel's nodes with a copy of each function for each call that leads to it, one in the other.

In: a program with its supergraph, and a kernel. Out: :class:`ContextClones`. Invariant: a way through copies is one
through the supergraph on which each function returns to where it was called from. Calls of which not all targets can be
copied stay calls: behind them nothing is known but where control continues, if it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from luthier_py.base.records import dataclass
from luthier_py.isa import MODE, OpFlag
from luthier_py.program.analysis.execution import START, ExecState, step
from luthier_py.program.analysis.post_dominance import EXIT
from luthier_py.program.ir import Ending, Function, Kernel, Program
from luthier_py.program.ir.model import instr_at

if TYPE_CHECKING:
    from luthier_py.program.analysis.cfg import Graph, Node

MOST_NODES = 4096  # each round of what is hidden looks at all of them again
DEEPEST = 16       # calls in calls


@dataclass(frozen=True, slots=True)
class ContextClones:
    """``after``: successors of each node, into calls that are followed and back. ``calls``: those that are not.
    ``apart``: functions that these may lead to, which so run more often than their copies. Empty: some code indexes
    registers or has unknown control flow, or there is too much of it."""

    first: int
    nodes: Mapping[int, Node]
    after: Mapping[int, Sequence[int]]
    calls: frozenset[int]
    apart: frozenset[Function]


def clone_by_context(program: Program, graph: Graph, states: Sequence[ExecState], kernel: Kernel) -> ContextClones:
    """``states``: of EXEC and modes, before each node."""
    return _ContextCloning(program, graph, states).of(kernel)


class _ContextCloning:
    """Mutable: the copies so far."""

    def __init__(self, program: Program, graph: Graph, states: Sequence[ExecState]) -> None:
        self._program, self._graph, self._states = program, graph, states
        self._of: dict[Function, list[Node]] = {function: [] for function in program.functions}
        for node in graph.nodes:
            self._of[node.function].append(node)
        self._plain: dict[Function, bool] = {}
        self._nodes: dict[int, Node] = {}
        self._after: dict[int, Sequence[int]] = {}
        self._calls: set[int] = set()
        self._apart: set[Function] = set()

    def of(self, kernel: Kernel) -> ContextClones:
        body = kernel.function
        if not self._is_plain(body) or not 0 < len(self._of[body]) <= MOST_NODES:
            return ContextClones(EXIT, {}, {}, frozenset(), frozenset())
        first = self._copy_function(body, None, (body,))
        return ContextClones(first, self._nodes, self._after, frozenset(self._calls), frozenset(self._apart - {body}))

    def _copy_function(self, function: Function, back: Sequence[int] | None, inside: tuple[Function, ...]) -> int:
        """The first node of a copy, which returns to ``back``; ``inside``: functions that it is called in, with it."""
        own, start = self._of[function], len(self._nodes)
        number = {node.index: start + place for place, node in enumerate(own)}
        self._nodes.update((number[node.index], node) for node in own)
        for node in own:
            after = tuple([number[each] for each in self._graph.after[node.index]])
            if node.call is None:
                returns = back is not None and node.block.ending is Ending.RETURN and node.stop == node.block.stop
                self._after[number[node.index]] = back if returns and back is not None else after or (EXIT,)
            elif self._is_followed(node, inside):
                behind = (back or (EXIT,)) if node.call.tail else after or (EXIT,)
                self._after[number[node.index]] = tuple(
                    [self._copy_function(callee, behind, (*inside, callee)) for callee in node.call.targets])
            else:
                self._calls.add(number[node.index])
                self._after[number[node.index]] = (*after, EXIT)
                self._apart.update(self._program.functions if node.call.unknown else
                                   {each for callee in node.call.targets for each in self._program.reachable(callee)})
        return next(number[node.index] for node in own if node.is_head and node.block.address == function.address)

    def _is_followed(self, node: Node, inside: tuple[Function, ...]) -> bool:
        call = node.call
        assert call is not None
        more = sum(len(self._of[callee]) for callee in call.targets)
        return (bool(call.targets) and not call.unknown and len(inside) < DEEPEST
                and len(self._nodes) + more <= MOST_NODES
                and all(callee not in inside and not callee.kernel and self._is_plain(callee)
                        for callee in call.targets))

    def _is_plain(self, function: Function) -> bool:
        if function not in self._plain:
            self._plain[function] = bool(self._of[function]) and not self._is_out_of_reach(function)
        return self._plain[function]

    def _is_out_of_reach(self, function: Function) -> bool:
        """Whether some code indexes registers, or its control flow is unknown."""
        graph, nodes = self._graph, {node.index: node for node in self._of[function]}
        if function.incomplete or len(function.entries) != 1 or function.code.find_flagged(OpFlag.INDEXES_REGISTERS):
            return True
        distinct = function.code.distinct
        modes = function.code.where(distinct.match_writes(1 << MODE))
        switched = (step(self._program.isa, instr_at(function.code, at).inst, START) for at in modes)
        if any(state.indexed or state.skipping for state in (*switched, *(self._states[index] for index in nodes))):
            return True
        unknown = {index for index in graph.leaves if index in nodes and nodes[index].call is None}
        returned = {behind for index, node in nodes.items() if node.call is not None for behind in graph.after[index]}
        return bool(unknown or graph.arrives & nodes.keys() - returned)
