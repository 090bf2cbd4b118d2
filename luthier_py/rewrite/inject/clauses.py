"""Instructions that are there for speed alone, and that inserted code makes wrong: they become nothing.

In: a clone with everything inserted. Out: the same, where a group of memory instructions that something was inserted
into is no group any more: a group may hold nothing else (RDNA ISA, S_CLAUSE). And where a wave keeps its vector
registers to its end if anything was inserted beside the message that deallocates them, or uses private memory, which
is deallocated with them (isa/properties/wave_registers).
"""

from __future__ import annotations

from collections.abc import Iterable

from luthier_py.base.records import replace
from luthier_py.isa import InstructionSet, OpFlag
from luthier_py.isa.build import group_size, nothing
from luthier_py.isa.properties.wave_registers import gives_back_vectors
from luthier_py.rewrite.inject.items import Clone, Item, Label, Run, Single, Slice


def dissolve(isa: InstructionSet, clone: Clone, private: bool) -> Clone:
    """``private``: inserted code may use private memory."""
    items = list(clone.items)
    for number, item in enumerate(items):
        if not isinstance(item, Single) or item.inserted or item.instead:
            continue
        behind = (items[at] for at in range(number + 1, len(items)))
        if gives_back_vectors(item.inst, isa.target):
            before = next((each for each in reversed(items[:number]) if not isinstance(each, Label)), None)
            stays = not private and not _is_inserted(before) and _ends(behind)
        else:
            stays = _whole(behind, group_size(item.inst))
        if not stays:
            items[number] = replace(item, inst=nothing(isa))
    return replace(clone, items=tuple(items))


def _is_inserted(item: Item | None) -> bool:
    return isinstance(item, Run) or isinstance(item, Single) and item.inserted


def _ends(items: Iterable[Item]) -> bool:
    """Whether the wave comes to its end over the application's instructions alone, and straight."""
    for item in items:
        if _is_inserted(item):
            return False
        insts = map(item.inst, range(item.start, item.stop)) if isinstance(item, Slice) else (
            (item.inst,) if isinstance(item, Single) else ())
        for flags in (inst.op.flags for inst in insts):
            if flags & (OpFlag.END | OpFlag.TERMINATOR | OpFlag.CALL):
                return OpFlag.END in flags
    return False


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
