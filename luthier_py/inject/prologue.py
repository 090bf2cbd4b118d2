"""What a wave of a kernel runs first, once (`birth` says what that is).

In: a kernel's clone, its entries, instructions. Out: the clone with a prologue in front; branches back
to its first block do not run it again. A second entry (kernarg preload) is some bytes behind the first one: then the
clone starts with a stub for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from luthier_py.errors import OutOfRegisters
from luthier_py.inject.items import Cause, Clone, Edit, Item, Single
from luthier_py.isa import Inst, InstructionSet, glue

_EDIT = Edit(Cause.PROLOGUE)


def with_prologue(isa: InstructionSet, clone: Clone, entries: Sequence[int], begins: Sequence[Inst]) -> Clone:
    """``entries``: original addresses; ``begins``: what a wave does first."""
    items: list[Item] = []
    for entry in entries:
        stub = [Single(inst, edit=_EDIT) for inst in begins]
        if len(entries) > 1:
            stub.append(Single(glue.jump(isa), edit=_EDIT, jump=clone.labels[entry]))
            if entry != entries[-1]:
                stub += _padding(isa, entries[1] - entries[0] - sum(single.size_bytes for single in stub))
        items += stub
    return replace(clone, items=(*items, *clone.items))


def _padding(isa: InstructionSet, size_bytes: int) -> list[Single]:
    if size_bytes < 0:
        raise OutOfRegisters("too much is kept for each wave of a kernel with preloaded arguments; use fewer "
                             "wave variables, or values of its birth")
    nothing = Single(glue.nothing(isa), edit=_EDIT)
    return [nothing] * (size_bytes // nothing.size_bytes)
