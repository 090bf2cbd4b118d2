"""Groups of memory instructions that the hardware is told to issue as one.

In: clones with everything inserted. Out: the same, where a group that something was inserted into is no group any more
(its `s_clause` became `s_nop`): a group may hold nothing else, and it is there for speed alone (RDNA ISA, S_CLAUSE).
"""

from __future__ import annotations

from collections.abc import Iterable

from luthier_py.inject.model import Clone
from luthier_py.isa import Inst, InstructionSet


def members(clause: Inst) -> int:
    """How many of the instructions behind a `s_clause` are its group."""
    return (clause["simm16"].value & 0x3F) + 1


def dissolve(isa: InstructionSet, clones: Iterable[Clone]) -> None:
    """Mutates ``clones``."""
    for clone in clones:
        for number, item in enumerate(clone.items):
            if item.inst.op.base != "S_CLAUSE" or item.inserted:
                continue
            if any(member.inserted for member in clone.items[number + 1:number + 1 + members(item.inst)]):
                item.inst = isa.make("s_nop", 0)
