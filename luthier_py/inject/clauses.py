"""Groups of memory instructions that the hardware is told to issue as one.

In: a clone with everything inserted. Out: the same, where a group that something was inserted into is no group any more
(what begins it became nothing): a group may hold nothing else, and it is there for speed alone (RDNA ISA, S_CLAUSE).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from luthier_py.inject.items import Clone, Item, Run, Single, Slice
from luthier_py.isa import InstructionSet
from luthier_py.isa.glue import group_size, nothing


def dissolve(isa: InstructionSet, clone: Clone) -> Clone:
    items = list(clone.items)
    for number, item in enumerate(items):
        if isinstance(item, Single) and not item.inserted and (size := group_size(item.inst)):
            if not _whole((items[at] for at in range(number + 1, len(items))), size):
                items[number] = replace(item, inst=nothing(isa))
    return replace(clone, items=tuple(items))


def _whole(items: Iterable[Item], size: int) -> bool:
    """Whether the first ``size`` instructions are the application's."""
    for item in items:
        if size <= 0:
            break
        if isinstance(item, Slice):
            size -= item.stop - item.start
        elif isinstance(item, Run) or (isinstance(item, Single) and (item.inserted or item.instead)):
            return False
        elif isinstance(item, Single):
            size -= 1
    return True
