"""What a wave of a kernel runs first, once: it clears wave variables.

In: a kernel's clone, its entries, the homes of wave variables. Out: the clone with a prologue in front; branches back
to its first block do not run it again. A second entry (kernarg preload) is some bytes behind the first one: then the
clone starts with a stub for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from luthier_py.errors import OutOfRegisters
from luthier_py.inject.items import Cause, Clone, Edit, Home, Item, Single
from luthier_py.isa import Inst, InstructionSet, LaneOf, glue

_EDIT = Edit(Cause.PROLOGUE)


def with_prologue(isa: InstructionSet, clone: Clone, entries: Sequence[int], homes: Sequence[Home]) -> Clone:
    """``entries``: original addresses, the last of which all others lead to."""
    items: list[Item] = []
    for entry in entries:
        stub = [Single(inst, edit=_EDIT) for home in homes for inst in _clearing(isa, home)]
        if len(entries) > 1:
            stub.append(Single(glue.jump(isa), edit=_EDIT, jump=clone.labels[entry]))
            if entry != entries[-1]:
                stub += _padding(isa, entries[1] - entries[0] - sum(single.size_bytes for single in stub))
        items += stub
    return replace(clone, items=(*items, *clone.items))


def _clearing(isa: InstructionSet, home: Home) -> list[Inst]:
    if isinstance(home, LaneOf):
        return [glue.to_lane(isa, home.reg, lane, 0) for lane in range(home.first, home.first + home.dwords)]
    return [glue.copy(isa, home, 0)]


def _padding(isa: InstructionSet, size_bytes: int) -> list[Single]:
    if size_bytes < 0:
        raise OutOfRegisters("too many wave variables for a kernel with preloaded arguments; use fewer")
    nothing = Single(glue.nothing(isa), edit=_EDIT)
    return [nothing] * (size_bytes // nothing.size_bytes)
