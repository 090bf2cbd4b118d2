"""Which accesses let a wave know what others have just written.

In: an instruction. Out: whether it does. Source: AMDGPUUsage, "Memory Model", the tables of each generation: atomic and
volatile loads of wider scopes have GLC, on gfx94x SC0 or SC1, from gfx12 on a scope; nontemporal ones have GLC and SLC
up to gfx90a, and never SC0, SC1 or GLC later.
"""

from __future__ import annotations

from luthier_py.isa.instruction import Inst, OpFlag
from luthier_py.isa.target import Target

_GLC, _SLC, _SC0, _SC1, _SCOPE = 1, 2, 1, 16, 3 << 3  # of the cache policy


def is_coherent(inst: Inst, target: Target) -> bool:
    """Whether a wave learns of what others have just written: by an atomic that returns something, or a load whose
    cache policy names a wider scope than the wave's."""
    if OpFlag.ATOMIC in inst.op.flags:
        return OpFlag.ATOMIC_RETURN in inst.op.flags
    policy = inst.find("cpol")
    if policy is None or OpFlag.VMEM not in inst.op.flags:
        return False
    if target.generation >= 12:
        return bool(policy.value & _SCOPE)
    if target.sc_cache_bits:
        return bool(policy.value & (_SC0 | _SC1))
    return bool(policy.value & _GLC) and not (target.generation < 10 and policy.value & _SLC)
