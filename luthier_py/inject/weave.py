"""Puts what is to be inserted into a clone.

In: a clone, and items by the original's instruction before or after which they go. Out: the clone with them, its
slices cut there. Invariant: what goes before a block's first instruction stands behind the block's label.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from luthier_py.inject.items import Clone, Item, Label, Single, Slice

Inserted = Mapping[int, Sequence[Item]]  # by original address


def weave(clone: Clone, before: Inserted, after: Inserted) -> Clone:
    """Each address is an instruction of the clone's function, or of another one."""
    pcs = sorted(before.keys() | after.keys())
    items: list[Item] = []
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
            items += (*before.get(item.origin.pc, ()), item)
            following = after.get(item.origin.pc, ())
        else:
            items.append(item)
    return replace(clone, items=(*items, *following))


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
