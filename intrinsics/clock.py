"""clock(): a counter of cycles."""

from __future__ import annotations

from luthier_py.rewrite.tool import U64, Ir, Result, Value, intrinsic


@intrinsic(result=Result.UNIFORM)
def clock(ir: Ir) -> Value:
    """u64: cycles, as s_memtime (or the target's own cycle counter) counts them."""
    return ir.call("llvm.readcyclecounter", U64)
