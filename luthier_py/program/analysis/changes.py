"""Which instructions can matter to EXEC, or to what vector instructions mean.

In: the supergraph. Out: :data:`Changes`, for each node the instructions that others need look at who follow EXEC, lane
masks and modes. Invariant: it errs to the safe side; what an instruction that is left out writes never comes
to EXEC, whatever the order of instructions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier_py.isa import EXEC, MODE, Inst, OpFlag
from luthier_py.isa.columns import Columns, Kinds
from luthier_py.isa.encoding.scan import Array

if TYPE_CHECKING:
    from luthier_py.program.analysis.cfg import Graph

EXEC_BITS = 3 << EXEC
Changes = list[list[tuple[int, Inst]]]  # by node: its index in the node, and what it is

_NAMEABLE = (1 << 128) - 1  # SCC and what lies above are no masks
_EVEN = _NAMEABLE // 3


def find_changes(graph: Graph) -> Changes:
    """For each node the instructions that may change EXEC, a mask that can come to EXEC, MODE, or which registers
    vector operands name."""
    reach = _reach({code.distinct for code in graph.places.starts})

    def mark_changing_kinds(distinct: Kinds) -> Array:
        return distinct.match_writes(reach) | changes_modes(distinct)

    return graph.where(mark_changing_kinds, Kinds.inst)


def changes_modes(distinct: Kinds) -> Array:
    """Kinds after which vector operands may mean other registers, or vector instructions be skipped."""
    found: Array = distinct.flags & OpFlag.INDEXES_REGISTERS.value != 0
    return found | distinct.match_writes(1 << MODE)


def find_switches(code: Columns) -> list[int]:
    """Places of such instructions."""
    return sorted({*code.find_flagged(OpFlag.INDEXES_REGISTERS), *code.where(code.distinct.match_writes(1 << MODE))})


def _reach(kinds: set[Kinds]) -> int:
    """Scalar registers out of which something may come to EXEC, in pairs, since masks may take two."""
    flows = {
        (write & _NAMEABLE, read & _NAMEABLE)
        for distinct in kinds for write, read in zip(distinct.masks.writes, distinct.masks.reads, strict=True)
        if write & _NAMEABLE
    }
    found, before = EXEC_BITS, 0
    while found != before:
        before = found
        for write, read in flows:
            if write & found:
                found |= read
        found |= (found & _EVEN) << 1 | found >> 1 & _EVEN
    return found
