"""mbcnt(mask): how many bits of a mask belong to lanes below this one."""

from __future__ import annotations

from luthier_py.rewrite.tool import U64, Ir, Operand, Result, Value, bits_below, intrinsic


@intrinsic(result=Result.LANE)
def mbcnt(ir: Ir, mask: Operand) -> Value:
    """u32: how many bits of a u64 ``mask`` belong to lanes below this one."""
    return bits_below(ir, ir.value(mask, U64))
