"""The ways between blocks of one function.

In: a function. Out: its Edges. Invariant: each way that control can go from a block to a block of the same function,
calls stepped over, is one Edge; a branch that leads to what comes next anyway has two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from luthier_py.base.records import dataclass
from luthier_py.isa import OpFlag
from luthier_py.program.ir import Block, Ending, Function, Instr


@dataclass(frozen=True, slots=True)
class Edge:
    """One way from ``source`` to ``target``. ``taken``: by a branch, conditional or not; otherwise control falls
    through."""

    source: Block
    target: Block
    taken: bool

    @property
    def instr(self) -> Instr:
        """The last one of ``source``."""
        return self.source.instrs[-1]

    @property
    def splits(self) -> bool:
        """Whether ``source`` has another way out: then this way is a side of its conditional branch."""
        return self.source.ending is Ending.CONDITIONAL

    def __repr__(self) -> str:
        return f"<Edge 0x{self.instr.pc:x} -> 0x{self.target.address:x}{' taken' * self.taken}>"


def edges_of(function: Function) -> tuple[Edge, ...]:
    """Edges by source, the way of a taken branch first."""
    blocks = {block.address: block for block in function.blocks}
    return tuple(edge for block in function.blocks for edge in _make_outgoing_edges(block, blocks))


def _make_outgoing_edges(block: Block, blocks: Mapping[int, Block]) -> Iterable[Edge]:
    ways = [blocks[address] for address in block.successors]
    if block.ending is Ending.CONDITIONAL:
        return Edge(block, ways[0], True), Edge(block, ways[-1], False)
    taken = bool(block.instrs[-1].op.flags & OpFlag.TERMINATOR)
    return [Edge(block, way, taken) for way in ways]


def group_edges_by_target(edges: Iterable[Edge]) -> Mapping[Block, list[Edge]]:
    """Edges by their targets."""
    found: defaultdict[Block, list[Edge]] = defaultdict(list)
    for edge in edges:
        found[edge.target].append(edge)
    return found
