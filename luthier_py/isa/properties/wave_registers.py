"""What a wave does with its registers as a whole: it gives them back, gets others, or asks which it has.

In: an instruction. Out: whether a wave gives back its vector registers there; why a copy with inserted code could not
be what the original is. Invariant: an instruction that is none of these leaves a wave the registers that it was
launched with, and cannot see how many these are.

Sources: RDNA 3 ISA, 16.5 (S_SENDMSG); LLVM 22, SIInsertWaitcnts ("Insert DEALLOC_VGPR messages"): with a s_nop before
it, and never where stores to private memory are on their way, since that is given back, too; AMDGPUUsage, "Dynamic
VGPRs"; RDNA 4 ISA, 3.4 (hardware registers).
"""

from __future__ import annotations

from luthier_py.isa.encoding.instruction import Inst, OpInfo
from luthier_py.isa.model.target import Target
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.control import DEALLOC_VGPRS, Action, HardwareRegister

_RESIZES = "it changes how many vector registers the wave has"
_SAVED = "it ends a wave whose registers a trap handler has saved"
_OF_SIZES = "it reads how many registers the wave has, which is another number in a copy"
_OF_FLOATS = "it reads which exceptions floats have raised, and so may those of a hook"
_OF_WAITS = "it reads whether hardware waits for operands, which it always does in a copy"
_OPERATIONS = {"S_ALLOC_VGPR": _RESIZES, "S_ENDPGM_SAVED": _SAVED}
_READ = {HardwareRegister.GPR_ALLOC.value: _OF_SIZES}
_BEFORE_GFX12 = _READ | {HardwareRegister.TRAPSTS.value: _OF_FLOATS}
_GFX12_ON = _READ | {
    HardwareRegister.DVGPR_ALLOC_LO.value: _OF_SIZES, HardwareRegister.DVGPR_ALLOC_HI.value: _OF_SIZES,
    HardwareRegister.EXCP_FLAG_PRIV.value: _OF_FLOATS, HardwareRegister.EXCP_FLAG_USER.value: _OF_FLOATS,
    HardwareRegister.SCHED_MODE.value: _OF_WAITS,
}


def gives_back_vectors(inst: Inst, target: Target) -> bool:
    """Whether the wave has no vector registers behind it."""
    return target.generation >= 11 and find_meaning(inst.op) is Action.SENDMSG and inst["simm16"].value == DEALLOC_VGPRS


def may_see_inserted_code(op: OpInfo) -> bool:
    """Whether `sees_inserted_code` may have a reason for an instruction of ``op``: a quick test of whole programs."""
    return find_meaning(op) is Action.GETREG or op.base in _OPERATIONS


def sees_inserted_code(inst: Inst, target: Target) -> str:
    """Why it cannot stand in a copy, or nothing."""
    if find_meaning(inst.op) is Action.GETREG:
        rows = _BEFORE_GFX12 if target.generation < 12 else _GFX12_ON
        return rows.get(inst["simm16"].value & 63, "")
    return _OPERATIONS.get(inst.op.base, "")
