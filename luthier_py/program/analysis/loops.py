"""Dominators of a function's blocks, and its natural loops.

In: a function. Out: for each block the one that immediately dominates it, and Loops by the addresses of their headers.
Invariant: a block dominates another if every way from the function's entries to that leads through it; control comes
into a loop through its header alone. Blocks that nothing comes to are in no loop, and a cycle without such a header
(irreducible) is none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from luthier_py.base.records import dataclass
from luthier_py.program.analysis.dominance import immediate_dominators
from luthier_py.program.analysis.edges import Edge, edges_of

if TYPE_CHECKING:
    from luthier_py.program.analysis.lines import SourceLine, SourceLines
    from luthier_py.program.ir import Block, Function


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A natural loop. Its body runs once more than ``backs`` are gone for each time that control comes in."""

    header: Block
    blocks: frozenset[Block]       # of loops inside, too
    entries: tuple[Edge, ...]      # into the header from outside
    backs: tuple[Edge, ...]        # to the header from inside
    exits: tuple[Edge, ...]        # from inside to outside
    begins: bool                   # the function itself begins here, for which there is no edge
    parent: Loop | None = None     # the next one around

    @property
    def depth(self) -> int:
        """How many loops it is in, itself among them."""
        return 1 if self.parent is None else self.parent.depth + 1

    def __repr__(self) -> str:
        return f"<Loop 0x{self.header.address:x} depth {self.depth}>"


def dominators(function: Function) -> dict[Block, Block | None]:
    """The immediate one of each block that control may come to; None of entries, and where ways from several meet."""
    blocks = {block.address: block for block in function.blocks}
    return immediate_dominators([blocks[address] for address in function.entries],
                                {block: [blocks[each] for each in block.successors] for block in function.blocks})


def loops_of(function: Function) -> tuple[Loop, ...]:
    """Loops by header, outer ones before those inside of them."""
    immediate, edges = dominators(function), edges_of(function)
    backs: defaultdict[Block, list[Edge]] = defaultdict(list)
    for edge in edges:
        if edge.source in immediate and _dominates(edge.target, edge.source, immediate):
            backs[edge.target].append(edge)
    before: defaultdict[Block, list[Block]] = defaultdict(list)
    for edge in edges:
        before[edge.target] += [edge.source] * (edge.source in immediate)
    bodies = {header: _body(header, ways, before) for header, ways in backs.items()}
    found: list[Loop] = []
    for header, inside in sorted(bodies.items(), key=lambda each: (-len(each[1]), each[0].address)):
        around = [loop for loop in found if header in loop.blocks]
        found.append(Loop(
            header, inside,
            tuple(edge for edge in edges if edge.target is header and edge.source not in inside),
            tuple(backs[header]),
            tuple(edge for edge in edges if edge.source in inside and edge.target not in inside),
            header.address in function.entries, min(around, key=lambda loop: len(loop.blocks), default=None)))
    return tuple(sorted(found, key=lambda loop: (loop.header.address, -len(loop.blocks))))


def innermost_loops(function: Function) -> dict[Block, Loop]:
    """The smallest loop of each block that is in one."""
    found: dict[Block, Loop] = {}
    for loop in sorted(loops_of(function), key=lambda loop: -len(loop.blocks)):
        found.update(dict.fromkeys(loop.blocks, loop))
    return found


def line_of_loop(loop: Loop, lines: SourceLines) -> SourceLine | None:
    """The line of a loop. Compilers give that of `for` or `while` to the branch back to the header; the header itself
    begins with any line of the body."""
    backs = sorted((edge.instr.pc for edge in loop.backs), reverse=True)
    return lines.first_at([*backs, *(instr.pc for instr in loop.header.instrs)])


def _dominates(block: Block, other: Block | None, immediate: Mapping[Block, Block | None]) -> bool:
    while other is not None and other is not block:
        other = immediate[other]
    return other is block


def _body(header: Block, backs: Sequence[Edge], before: Mapping[Block, Sequence[Block]]) -> frozenset[Block]:
    """What leads to the back edges without the header."""
    inside, work = {header}, [edge.source for edge in backs]
    while work:
        block = work.pop()
        if block not in inside:
            inside.add(block)
            work += before.get(block, ())
    return frozenset(inside)
