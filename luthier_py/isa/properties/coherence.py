"""Which instructions let a wave know what others have just written.

In: an instruction. Out: whether it does. Source: AMDGPUUsage, "Memory Model", the tables of each generation: atomic and
volatile loads of wider scopes have GLC, on gfx94x SC0 or SC1, from gfx12 on a scope; nontemporal ones have GLC and SLC
up to gfx90a, and never SC0, SC1 or GLC later. An acquire of the device makes the caches of a compute unit forget behind
such a load: BUFFER_WBINVL1 up to gfx90a, BUFFER_INV with SC1 on gfx94x, BUFFER_GL1_INV beside BUFFER_GL0_INV on gfx10
and gfx11, GLOBAL_INV of that scope from gfx12 on (on gfx1250, which has clusters, of a shader engine's, too).
"""

from __future__ import annotations

from luthier_py.isa.encoding.instruction import Inst, OpFlag
from luthier_py.isa.model.target import Target

_GLC, _SLC, _SC0, _SC1, _SCOPE = 1, 2, 1, 16, 3 << 3  # of the cache policy
_ENGINE, _DEVICE = 1 << 3, 2 << 3  # scopes
_FORGETTING = frozenset({"BUFFER_WBINVL1", "BUFFER_WBINVL1_VOL", "BUFFER_GL1_INV"})


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


def acquires(inst: Inst, target: Target) -> bool:
    """Whether plain loads of the wave find from then on what other work-groups had written."""
    base, policy = inst.op.base, inst.find("cpol")
    bits = policy.value if policy is not None else 0
    if base == "BUFFER_INV":
        return bool(bits & _SC1)
    if base in ("GLOBAL_INV", "GLOBAL_WBINV"):
        return bits & _SCOPE >= (_ENGINE if target.minor >= 5 else _DEVICE)
    return base in _FORGETTING
