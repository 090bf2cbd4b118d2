"""Which instructions others may replace, and what replaces one that is removed.

In: instructions. Out: why not, or the replacement; Unsupported where there is none. Invariant: what is taken away or
changed leaves control, MODE and the counting of memory operations as they were: a wait for a count behind an operation
that is gone would else be over too early, so that a wait for all of its kind replaces it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier_py.base.errors import Unsupported
from luthier_py.isa.build import nothing, times_one
from luthier_py.isa.encoding.instruction import Counter, Inst, OpFlag
from luthier_py.isa.model.registers import MODE, NO_REGS, VCC, RegSet, sgpr

if TYPE_CHECKING:
    from luthier_py.isa import InstructionSet

_STAYS = {
    OpFlag.TERMINATOR | OpFlag.CALL | OpFlag.INDIRECT | OpFlag.SETS_PC | OpFlag.MAY_STOP | OpFlag.FORKS:
        "decides where control goes",
    OpFlag.GETS_PC: "makes an address", OpFlag.WAIT: "waits for what others need",
    OpFlag.CLAUSE: "binds the instructions behind it together",
}


def stays(inst: Inst) -> str | None:
    """Why no other instruction may stand for ``inst``, nor ``inst`` for another; None where it may."""
    if inst.writes.sgpr >> MODE & 1:
        return "changes the MODE in which others run"
    return next((why for flags, why in _STAYS.items() if inst.op.flags & flags), None)


def unlike(old: Inst, new: Inst) -> str | None:
    """Why ``new`` may not stand for ``old``; None where it may."""
    why = stays(old) or stays(new)
    if why is None and old.op.counters != new.op.counters:
        why = "is waited for in another way than what stands there"
    return why


def make_replacement(isa: InstructionSet, inst: Inst, given: RegSet = NO_REGS) -> Inst:
    """The replacement of a removed ``inst``: nothing, or a wait for all that its kind may have on its way.

    ``given``: what others write in its place. Where these are scalar registers, which may be masks of lanes, the
    replacement multiplies them by one: analyses count that as a write, and so forget the old masks.
    """
    counters = [counter for counter in Counter if counter in inst.op.counters & ~Counter.X]  # X says nothing of results
    masks = [number for number in range(VCC + 2) if given.sgpr >> number & 1]
    if len({number // 2 for number in masks}) > 1 or counters and masks:
        raise Unsupported(f"results in {given.scalars} cannot take the place of {inst.op.mnemonic}: "
                          "one pair of scalar registers can, and not that of an access to memory")
    if masks:
        return times_one(isa, sgpr(masks[0]))
    if not counters:
        return nothing(isa)
    wait, *more = isa.waits(dict.fromkeys(counters, 0))
    if more:
        both = " and ".join(f"{str(counter.name).lower()}cnt" for counter in counters)
        raise Unsupported(f"nothing can stand for {inst.op.mnemonic}: it is counted by {both}, and {isa.target.name} "
                          "has no single instruction that waits for both, as waits behind it would need")
    return wait
