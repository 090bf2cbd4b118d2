"""Hardware waits for the operands of vector instructions by itself, unless DEP_MODE, bits 1:0 of WAVE_SCHED_MODE, says
that the code does (RDNA 4 ISA: 0 is "all checks").

In: instructions. Out: whether they may end that, and whether one is another one without that. Where the application
ends it, its clone does not: so inserted code can rely on hardware, and the application waits for what is there.
"""

from __future__ import annotations

from luthier_py.isa import Inst, Target
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.control import Action, HardwareRegister

_DEP_MODE = 3


def may_end_waits(inst: Inst, target: Target) -> bool:
    """Whether it may write anything but 0 to DEP_MODE: an s_setreg of a register may."""
    return _dep_mode(inst, target) != 0


def waits_instead(old: Inst, new: Inst, target: Target) -> bool:
    """Whether all that ``new`` does not do of ``old`` is to end hardware's waits."""
    known = _dep_mode(old, target)
    if known is None or not known or old.op is not new.op or old["simm16"].value != new["simm16"].value:
        return False
    kept = ~(_DEP_MODE >> (old["simm16"].value >> 6 & 31))
    return new["imm"].value == old["imm"].value & kept


def _dep_mode(inst: Inst, target: Target) -> int | None:
    """What it sets of those bits; None if that is not in the code."""
    row = find_meaning(inst.op)
    if target.generation < 12 or row not in (Action.SETREG, Action.SETREG_IMM):
        return 0
    field = inst["simm16"].value
    first, bits = field >> 6 & 31, (field >> 11 & 31) + 1
    if field & 63 != HardwareRegister.SCHED_MODE.value or first > 1:
        return 0
    return (inst["imm"].value & (1 << bits) - 1) << first & _DEP_MODE if row is Action.SETREG_IMM else None
