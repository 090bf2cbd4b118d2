"""Where control may go in the application, from the original's bytes: nodes, and edges between them, over calls too.

In: functions with their code, and targets of jumps through registers. Out: Graph. Invariant: every way that control can
take is an edge or a mark: `leaves` marks nodes behind which code may run that is not among the functions, `arrives`
those that such code may come to. A function returns to behind each call of it (context-insensitive).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from luthier_py.base.errors import CheckFailed
from luthier_py.base.records import dataclass
from luthier_py.isa import OpFlag
from luthier_py.proof.addresses import RETURNS, AddressFlow, goal_of, step
from luthier_py.proof.code import Body, Code
from luthier_py.proof.return_addresses import State

Known = TypeVar("Known")
_LONGEST = 256  # instructions that make an address, with all those between them


def body(name: str, address: int, code: Code, entries: Iterable[int], kernel: bool, end: int) -> Body:
    """``entries``: addresses; ``end``: where the function is over. CheckFailed where control leaves the code that is
    known, but for calls and traps with which the function ends: they do not come back."""
    starts = [_at(name, code, entry, None) for entry in entries]
    leaders, ends = {0, *starts}, {}
    for at in code.find_flagged(OpFlag.TERMINATOR | OpFlag.CALL | OpFlag.MAY_STOP):
        flags = code.inst(at).op.flags
        if OpFlag.TERMINATOR in flags:
            ends[at] = _leave(name, code, at, range(address, end))
            leaders.update(ends[at])
        leaders.add(at + 1)
    leaders.update((np.flatnonzero(np.diff(code.at) != code.sizes[:-1]) + 1).tolist())
    ordered = sorted(leader for leader in leaders if leader < len(code))
    blocks = tuple(map(range, ordered, [*ordered[1:], len(code)]))
    number = {block.start: k for k, block in enumerate(blocks)}
    following = tuple(_find_successors(name, code, block, ends, number, end) for block in blocks)
    return Body(name, address, code, kernel, tuple(number[start] for start in starts), blocks, following)


def _at(name: str, code: Code, pc: int, source: int | None) -> int:
    found = code.find(pc)
    if found is None:
        raise CheckFailed(f"control comes to 0x{pc:x}, of which the claim says nothing",
                          None if source is None else code.location(name, source))
    return found


def _leave(name: str, code: Code, at: int, function: range) -> tuple[int, ...]:
    """Numbers of the instructions to which a terminator may go inside of the function, which has some addresses."""
    inst = code.inst(at)
    flags, target = inst.op.flags, inst.branch_target(code.pcs[at])
    if OpFlag.FORKS in flags:
        raise CheckFailed("where this goes is not followed", code.location(name, at))
    if OpFlag.BRANCH in flags and target is not None:
        taken = _at(name, code, target, at)
        return (taken, _at(name, code, code.end(at), at)) if OpFlag.CONDITIONAL in flags else (taken,)
    if OpFlag.SETS_PC in flags:
        built = _evaluate_setpc_target(code, at)
        if built is None or built not in function and code.find(built) is None:
            return ()
        return (_at(name, code, built, at),)
    return ()


def _evaluate_setpc_target(code: Code, at: int) -> int | None:
    """The target of a s_setpc, if it is made in straight-line code before it."""
    first = at
    while first and not code.inst(first - 1).op.flags & (OpFlag.TERMINATOR | OpFlag.CALL) and at - first < _LONGEST:
        first -= 1
    state: State = {}
    for k in range(first, at):
        inst, pc = code.inst(k), code.pcs[k]
        step(state, code.isa.wave_size, (inst, pc), (inst, pc))
    goal = goal_of(code.inst(at), state)[0]
    return goal[1] if goal[0] == "to" else None


def _find_successors(
    name: str, code: Code, block: range, ends: Mapping[int, tuple[int, ...]], number: Mapping[int, int], end: int
) -> tuple[int, ...]:
    last = block[-1]
    if last in ends:
        return tuple(dict.fromkeys(number[target] for target in ends[last]))
    if last + 1 < len(code) and code.pcs[last + 1] == code.end(last):
        return (number[last + 1],)
    if not code.inst(last).op.flags & (OpFlag.CALL | OpFlag.MAY_STOP) or code.end(last) < end:
        raise CheckFailed("control runs off the code that the claim knows", code.location(name, last))
    return ()


@dataclass(frozen=True, slots=True)
class Node:
    """A block of a function, each by its number; ``span``: numbers of its instructions in the function's code."""

    function: int
    block: int
    span: range


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Nodes are the blocks of all functions in a row; ``first`` has the number of each function's block 0."""

    bodies: tuple[Body, ...]
    first: tuple[int, ...]
    nodes: tuple[Node, ...]
    successors: tuple[tuple[int, ...], ...]
    predecessors: tuple[tuple[int, ...], ...]
    after: tuple[tuple[int, ...], ...]        # in the same function, once a call has returned
    kernels: frozenset[int]
    leaves: frozenset[int]
    arrives: frozenset[int]

    def nodes_of(self, function: int) -> range:
        """Numbers of the nodes of a function."""
        return range(self.first[function], self.first[function] + len(self.bodies[function].blocks))


def build_graph(bodies: Sequence[Body], goes: Sequence[AddressFlow], pointed: Collection[int]) -> Graph:
    """``pointed``: addresses of functions that calls through pointers may reach."""
    first: list[int] = []
    nodes: list[Node] = []
    for number, each in enumerate(bodies):
        first.append(len(nodes))
        nodes += [Node(number, k, span) for k, span in enumerate(each.blocks)]
    heads = {each.address: first[k] + each.entries[0] for k, each in enumerate(bodies)}
    number_of = {each.address: k for k, each in enumerate(bodies)}
    calls = [_callees(bodies[node.function], node, goes[node.function], heads, pointed) for node in nodes]
    callers = _callers(bodies, nodes, calls, number_of)
    after = [tuple(first[node.function] + k for k in bodies[node.function].following[node.block]) for node in nodes]
    edges: list[set[int]] = [set() for _ in nodes]
    leaves, arrives = set(), set()
    for k, node in enumerate(nodes):
        call = calls[k]
        if call is _NO_CALL:
            edges[k].update(after[k])
            continue
        unknown = call.unknown
        edges[k] |= {heads[callee] for callee in call.callees}
        if call.returns:
            edges[k] |= {target for caller in callers[node.function] for target in after[caller]}
            unknown |= not callers[node.function]
        if unknown:
            leaves.add(k)
            arrives |= set(after[k])
    for k, each in enumerate(bodies):
        if not each.kernel and not callers[k]:
            arrives |= {first[k] + entry for entry in each.entries}
    before: list[set[int]] = [set() for _ in nodes]
    for k, targets in enumerate(edges):
        for target in targets:
            before[target].add(k)
    kernels = frozenset(first[k] + entry for k, each in enumerate(bodies) if each.kernel for entry in each.entries)
    frozen = [tuple(tuple(sorted(each)) for each in rows) for rows in (edges, before)]
    return Graph(tuple(bodies), tuple(first), tuple(nodes), frozen[0], frozen[1], tuple(after), kernels,
                 frozenset(leaves), frozenset(arrives))


@dataclass(frozen=True, slots=True)
class _Call:
    """How a node's last instruction leaves the function."""

    callees: frozenset[int] = frozenset()
    unknown: bool = False
    returns: bool = False
    tail: bool = False


_NO_CALL = _Call()


def _callees(body: Body, node: Node, goes: AddressFlow, heads: Mapping[int, int], pointed: Collection[int]) -> _Call:
    at = node.span[-1]
    inst = body.code.inst(at)
    flags = inst.op.flags
    if not flags & (OpFlag.CALL | OpFlag.INDIRECT):
        return _NO_CALL
    tail = OpFlag.CALL not in flags
    target = inst.branch_target(body.code.pcs[at])
    goal = goes.targets.get(at, (("unknown",), None))[0] if target is None else ("to", target)
    if goal == RETURNS:
        return _Call(returns=True)
    if goal[0] == "to":
        if tail and body.code.find(goal[1]) is not None and body.following[node.block]:
            return _NO_CALL
        return _Call(frozenset({goal[1]} & heads.keys()), goal[1] not in heads, False, tail)
    if tail and body.kernel:
        raise CheckFailed("where this goes is not known", body.code.location(body.name, at))
    if not tail and (several := goes.find_targets(at)):
        return _Call(several & heads.keys(), not several <= heads.keys())
    return _Call(frozenset(pointed), not pointed, tail, tail)


def _callers(
    bodies: Sequence[Body], nodes: Sequence[Node], calls: Sequence[_Call], number_of: Mapping[int, int]
) -> list[set[int]]:
    """For each function the nodes whose call it returns to; a tail call passes on those of the function it is in."""
    found: list[set[int]] = [set() for _ in bodies]
    tails: list[tuple[int, int]] = []
    for k, node in enumerate(nodes):
        for callee in calls[k].callees:
            if calls[k].tail:
                tails.append((node.function, number_of[callee]))
            else:
                found[number_of[callee]].add(k)
    changed = True
    while changed:
        changed = False
        for caller, callee in tails:
            if not found[caller] <= found[callee]:
                found[callee] |= found[caller]
                changed = True
    return found


def solve_dataflow(
    order: Iterable[int], edges: Sequence[Sequence[int]], boundary: Sequence[Known | None],
    join: Callable[[Known, Known], Known], flow: Callable[[int, Known], Known],
    along: Callable[[int, int, Known], Known] | None = None,
) -> list[Known | None]:
    """The least solution of a flow problem: what comes into each node, None where nothing does."""
    nodes = list(order)
    rank = {node: k for k, node in enumerate(nodes)}
    into, out = list(boundary), dict[int, Known]()
    work = [rank[k] for k, known in enumerate(into) if known is not None]
    heapq.heapify(work)
    waiting = set(work)
    while work:
        k = heapq.heappop(work)
        waiting.discard(k)
        node = nodes[k]
        known = into[node]
        assert known is not None
        made = flow(node, known)
        if node in out and out[node] == made:
            continue
        out[node] = made
        for target in edges[node]:
            new = made if along is None else along(node, target, made)
            old = into[target]
            together = new if old is None else join(old, new)
            if together != old:
                into[target] = together
                if rank[target] not in waiting:
                    waiting.add(rank[target])
                    heapq.heappush(work, rank[target])
    return into
