"""Which accesses let a wave know what others have just written.

In: an instruction. Out: whether it does. Source: AMDGPUUsage, "Memory Model": atomic loads of wider scopes have bits of
the cache policy set, GLC and its like, from gfx12 on a scope.
"""

from __future__ import annotations

from luthier_py.isa.instruction import Inst, OpFlag
from luthier_py.isa.target import Target

_STREAM, _SCOPE = 2, 3 << 3  # of the cache policy: SLC; from gfx12 on SCOPE


def is_coherent(inst: Inst, target: Target) -> bool:
    """Whether a wave learns of what others have just written: by an atomic that returns something, or a load whose
    cache policy names a wider scope than the wave's."""
    if OpFlag.ATOMIC in inst.op.flags:
        return OpFlag.ATOMIC_RETURN in inst.op.flags
    policy = inst.find("cpol")
    if policy is None or OpFlag.VMEM not in inst.op.flags:
        return False
    return bool(policy.value & (_SCOPE if target.generation >= 12 else ~_STREAM))
