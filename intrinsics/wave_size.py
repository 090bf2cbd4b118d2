"""wave_size(): the number of lanes in a wave."""

from __future__ import annotations

from luthier_py.tool import U32, Ir, Result, Value, intrinsic


@intrinsic(result=Result.UNIFORM)
def wave_size(ir: Ir) -> Value:
    """u32: 64 or 32, known when the hook is compiled."""
    return ir.value(ir.wave_size, U32)
