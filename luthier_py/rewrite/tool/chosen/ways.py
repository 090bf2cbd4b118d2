"""Where calls on ways between blocks, and into functions, stand.

In: an edge, and all to the same target. Out: a place, and when a call runs there. Invariant: a call there runs each
time that control takes this way, and at no other time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from luthier_py.base.errors import EditConflict, Location
from luthier_py.isa import OpFlag
from luthier_py.program import analysis, ir
from luthier_py.rewrite.tool.author import caller
from luthier_py.rewrite.tool.chosen.running import comes_back, starts_of
from luthier_py.rewrite.tool.edits import Place, Turn

Ways: TypeAlias = "Mapping[ir.Block, Sequence[analysis.Edge | None]]"


def ways_into(function: ir.Function) -> Ways:
    """The edges into each block, by block; None where control comes from outside."""
    found: defaultdict[ir.Block, list[analysis.Edge | None]] = defaultdict(list)
    for block, ways in analysis.group_edges_by_target(analysis.edges_of(function)).items():
        found[block].extend(ways)
    for entry in function.entries:
        found[function.block(entry)].append(None)
    return found


def on(edge: analysis.Edge, into: Sequence[analysis.Edge | None]) -> tuple[tuple[ir.Instr, Place], Turn]:
    """``into``: all ways into its target."""
    if not edge.splits:
        ends = edge.instr.op.flags & OpFlag.TERMINATOR
        return (edge.instr, Place.BEFORE if ends else Place.AFTER), Turn.LEAVE
    if len(into) == 1:
        return (edge.target.instrs[0], Place.BEFORE), Turn.ARRIVE
    return (edge.instr, Place.TAKEN if edge.taken else Place.AFTER), Turn.LEAVE


def begins_of(function: ir.Function, where: Callable[[ir.Instr], Location]) -> tuple[ir.Instr, ...]:
    """The instructions of which one runs, and once, each time that the function is entered."""
    if not function.blocks:
        raise EditConflict(f"{caller()}: {function.name} has no code that can be edited: {function.incomplete}")
    begins = tuple(function.block(start).instrs[0] for start in starts_of(function))
    if comes_back(function):
        message = f"{function.name} loops back to its first instruction; insert at one of its blocks instead"
        raise EditConflict(f"{caller()}: {message}", where(begins[-1]))
    return begins
