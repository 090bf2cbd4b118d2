"""Graphs of a program for NetworkX: blocks and the ways between them, functions and calls, who must come after whom.

In: functions. Out: graphs whose nodes are the IR's own objects. Invariant: each is made anew; what is done to it
changes nothing of the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from luthier_py.program.analysis.dominance import immediate_dominators
from luthier_py.program.analysis.edges import edges_of

if TYPE_CHECKING:  # it takes a third of a second to import: those wait who ask for a graph
    import networkx as nx

    from luthier_py.program.ir import Block, Function, Program


def block_graph(function: Function) -> nx.DiGraph[Block]:
    """Blocks, and the ways from one to another: an edge has the Edges that it stands for as ``edges``."""
    import networkx as nx

    graph: nx.DiGraph[Block] = nx.DiGraph()
    graph.add_nodes_from(function.blocks)
    for edge in edges_of(function):
        if graph.has_edge(edge.source, edge.target):
            graph.edges[edge.source, edge.target]["edges"].append(edge)
        else:
            graph.add_edge(edge.source, edge.target, edges=[edge])
    return graph


def call_graph(program: Program) -> nx.MultiDiGraph[Function]:
    """Functions, and an edge for each call that may reach one, with its CallSite as ``site``."""
    import networkx as nx

    graph: nx.MultiDiGraph[Function] = nx.MultiDiGraph()
    graph.add_nodes_from(program.functions)
    for function in program.functions:
        for site in program.calls(function):
            for target in site.targets:
                graph.add_edge(function, target, site=site)
    return graph


def post_dominators(function: Function) -> Mapping[Block, Block | None]:
    """For each block the nearest other one that every way from it to the function's end leads through; None where ways
    have nothing in common but the end. Blocks from which no way leads to the end are left out."""
    # None is the end
    before: dict[Block | None, list[Block | None]] = {None: [each for each in function.blocks if not each.successors]}
    before.update((block, []) for block in function.blocks)
    for edge in edges_of(function):
        before[edge.target].append(edge.source)
    found = immediate_dominators([None], before)
    return {block: above for block, above in found.items() if block is not None}
