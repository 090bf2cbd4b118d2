"""Calling contexts, numbered: the ways in which calls lead from a kernel to a function.

In: functions and their calls. Out: Contexts. Invariant: what the calls add that a wave is in, together, is below
``Contexts.many`` of the function that runs, and identifies the calls by which the wave came there.

Functions that may call each other again are one group: calls inside of it add nothing, so that a function of it has the
context in which the group was entered. Calls between groups have no cycles; one that leads into a group has a range of
its numbers, as many as the caller's group has. A tail call adds nothing: its callee returns to the caller's caller, and
has the caller's context. So each call leads also to all that tail calls lead to from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import networkx as nx

from luthier_py.program.ir import CallSite, Function, Program


@dataclass(frozen=True, slots=True)
class Range:
    """The contexts of a group that are ``caller``'s, entered through a call at ``pc``: from ``first`` on."""

    first: int
    caller: int
    pc: int


@dataclass(frozen=True, slots=True)
class Contexts:
    """Functions by their addresses. ``ranges`` ascend; numbers below them are those of kernels."""

    many: Mapping[int, int]
    adds: Mapping[int, int]
    """Of each call that leads out of its group, by its address."""
    ranges: Mapping[int, Sequence[Range]]

    def stack(self, function: int, context: int) -> tuple[tuple[int, int], ...]:
        """The calls that lead there, each as its function and its address, that of the kernel first."""
        found: list[tuple[int, int]] = []
        while entered := [each for each in self.ranges[function] if each.first <= context]:
            function, context = entered[-1].caller, context - entered[-1].first
            found.insert(0, (function, entered[-1].pc))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class _Call:
    """``reached``: by tail calls, too."""

    caller: Function
    site: CallSite
    reached: frozenset[Function]


def contexts(
    program: Program, functions: Sequence[Function], free: Callable[[CallSite], bool], apart: bool = True
) -> Contexts:
    """``free``: whether something can be added at a call; where not, or not ``apart``, the functions are one group."""
    tails: nx.DiGraph[Function] = nx.DiGraph()
    tails.add_nodes_from(functions)
    sites = [(f, site) for f in functions for site in program.calls(f)]
    tails.add_edges_from((f, target) for f, site in sites if site.tail for target in site.targets)
    behind = {f: frozenset({f, *nx.descendants(tails, f)}) for f in functions}
    calls = [_Call(f, site, frozenset().union(*(behind[target] for target in site.targets)))
             for f, site in sites if not site.tail]
    groups = _groups(functions, calls, free, apart)
    numbers = groups.graph["mapping"]
    many = dict.fromkeys(groups, 0) | {numbers[f]: 1 for kernel in functions if kernel.kernel for f in behind[kernel]}
    adds: dict[int, int] = {}
    ranges: dict[int, list[Range]] = {group: [] for group in groups}
    leaving: dict[int, list[_Call]] = {group: [] for group in groups}
    for call in calls:
        leaving[numbers[call.caller]].append(call)
    for group in nx.topological_sort(groups):
        many[group] = max(many[group], 1)
        for call in leaving[group]:
            pc, entered = call.site.instr.pc, {numbers[f] for f in call.reached} - {group}
            first = max((many[each] for each in entered), default=0)
            for each in entered:
                adds[pc], many[each] = first, first + many[group]
                ranges[each].append(Range(first, call.caller.address, pc))
    return Contexts({f.address: many[numbers[f]] for f in functions}, adds,
                    {f.address: tuple(ranges[numbers[f]]) for f in functions})


def _groups(
    functions: Sequence[Function], calls: Sequence[_Call], free: Callable[[CallSite], bool], apart: bool
) -> nx.DiGraph[int]:
    """The condensation of a graph in which those reach each other that must be in one group."""
    graph: nx.DiGraph[Function] = nx.DiGraph()
    graph.add_nodes_from(functions)
    if not apart:
        graph.add_edges_from(pairwise([*functions, functions[0]]))
    for call in calls:
        graph.add_edges_from((call.caller, f) for f in call.reached)
        if not free(call.site):
            graph.add_edges_from((f, call.caller) for f in call.reached)
    while True:  # a call that may lead into its own group adds nothing, wherever it leads
        groups: nx.DiGraph[int] = nx.condensation(graph)
        numbers = groups.graph["mapping"]
        torn = [(f, call.caller) for call in calls if numbers[call.caller] in {numbers[f] for f in call.reached}
                for f in call.reached if numbers[f] != numbers[call.caller]]
        if not torn:
            return groups
        graph.add_edges_from(torn)
