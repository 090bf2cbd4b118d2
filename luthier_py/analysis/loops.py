"""Dominators of a function's blocks, and its natural loops.

In: a function. Out: for each block the one that immediately dominates it, and Loops by the addresses of their headers.
Invariant: a block dominates another if every way from the function's entries to that leads through it; control comes
into a loop through its header alone. Blocks that nothing comes to are in no loop, and what goes round without such a
header (irreducible) is none.

Dominators as in Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm" (2001): sweeps in reverse postorder.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from luthier_py.analysis.edges import Edge, edges_of
from luthier_py.ir import Block, Function


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A natural loop. Its body runs once more than ``backs`` are gone for each time that control comes in."""

    header: Block
    blocks: frozenset[Block]       # of loops inside, too
    entries: tuple[Edge, ...]      # into the header from outside
    backs: tuple[Edge, ...]        # to the header from inside
    exits: tuple[Edge, ...]        # from inside to outside
    begins: bool                   # the function itself begins here, which no edge tells
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
    entries = [blocks[address] for address in function.entries]
    order = _postorder(entries, blocks)
    rank = {block: number for number, block in enumerate(order)}
    before: defaultdict[Block, list[Block]] = defaultdict(list)
    for block in order:
        for address in block.successors:
            before[blocks[address]].append(block)
    found: dict[Block, Block | None] = dict.fromkeys(entries)
    changed = True
    while changed:
        changed = False
        for block in reversed(order):
            if block in entries:
                continue
            known = [each for each in before[block] if each in found]
            new: Block | None = known[0]
            for other in known[1:]:
                new = _common(new, other, found, rank)
            if block not in found or found[block] is not new:
                found[block] = new
                changed = True
    return found


def _postorder(entries: Sequence[Block], blocks: Mapping[int, Block]) -> list[Block]:
    order: list[Block] = []
    seen: set[Block] = set()
    for entry in entries:
        work = [] if entry in seen else [(entry, iter(entry.successors))]
        seen.add(entry)
        while work:
            block, left = work[-1]
            following = next((blocks[a] for a in left if blocks[a] not in seen), None)
            if following is None:
                order.append(block)
                work.pop()
            else:
                seen.add(following)
                work.append((following, iter(following.successors)))
    return order


def _common(
    a: Block | None, b: Block | None, found: Mapping[Block, Block | None], rank: Mapping[Block, int]
) -> Block | None:
    """The nearest that dominates both."""
    while a is not b:
        if a is None or b is None:
            return None
        if rank[a] < rank[b]:
            a = found[a]
        else:
            b = found[b]
    return a


def loops_of(function: Function) -> tuple[Loop, ...]:
    """By header, outer ones before those inside of them."""
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
