"""Puts what is to be inserted into a clone.

In: a clone, and items by the original's instruction before or after which they run, or where it is a branch that is
taken. Out: the clone with them, its slices cut there. Invariant: what runs before a block's first instruction is
behind the block's label; what runs where a branch is taken is behind all other code, and jumps to the branch's
target.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from luthier_py.base.records import replace
from luthier_py.isa import InstructionSet
from luthier_py.isa.build import jump
from luthier_py.rewrite.inject.items import Cause, Clone, Edit, Item, Label, Single, Slice

Inserted = Mapping[int, Sequence[Item]]  # by original address


def inline_calls(isa: InstructionSet, clone: Clone, before: Inserted, after: Inserted, taken: Inserted) -> Clone:
    """Each address is an instruction of the clone's function, or of another one."""
    pcs = sorted(before.keys() | after.keys())
    items: list[Item] = []
    apart: list[Item] = []  # behind all others
    following: Sequence[Item] = ()  # behind the last Single, and labels that belong to its end
    for item in clone.items:
        if isinstance(item, Label) and item.address is None:
            items.append(item)
            continue
        items += following
        following = ()
        if isinstance(item, Slice):
            items += _cut(item, pcs, before, after)
        elif isinstance(item, Single) and item.origin is not None:
            pc = item.origin.pc
            items += before.get(pc, ())
            if pc in taken:
                way = Label()
                apart += [way, *taken[pc], _onward(isa, item)]
                item = replace(item, jump=way)
            items.append(item)
            following = after.get(pc, ())
        else:
            items.append(item)
    return replace(clone, items=(*items, *following, *apart))


def _onward(isa: InstructionSet, branch: Single) -> Single:
    """A jump to a branch's target."""
    assert branch.origin is not None and branch.jump is not None
    return Single(jump(isa), edit=Edit(Cause.EDGE, point=branch.origin.pc), jump=branch.jump)


def _cut(piece: Slice, pcs: Sequence[int], before: Inserted, after: Inserted) -> Iterator[Item]:
    code, start = piece.code, piece.start
    first, last = bisect_left(pcs, piece.pc), bisect_left(pcs, piece.end)
    for pc in pcs[first:last]:
        at = piece.place(pc)
        if pc in before:
            if start < at:
                yield Slice(code, start, at)
                start = at
            yield from before[pc]
        if pc in after:
            yield Slice(code, start, at + 1)
            start = at + 1
            yield from after[pc]
    if start < piece.stop:
        yield Slice(code, start, piece.stop)
