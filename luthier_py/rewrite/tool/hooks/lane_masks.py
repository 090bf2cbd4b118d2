"""What device code asks of its lanes: masks, and the number of a lane.

In: operands of device code. Out: LLVM IR of a few intrinsics of AMDGPU. Invariant: masks are u64, whatever the wave
size.
"""

from __future__ import annotations

from luthier_py.rewrite.tool.hooks.intrinsic import Ir, Operand, Result, Value, intrinsic
from luthier_py.rewrite.tool.hooks.types import BOOL, U32, U64


def mask_of(ir: Ir, condition: Operand) -> Value:
    """u64 with the bits of the active lanes whose ``condition`` holds, whatever the wave size."""
    width = U64 if ir.wave_size == 64 else U32
    return ir.convert(ir.call(f"llvm.amdgcn.ballot.{ir.llvm(width)}", width, ir.condition(condition)), U64)


def bits_below(ir: Ir, mask: Value) -> Value:
    """u32: how many bits of a u64 ``mask`` belong to lanes below this one."""
    zero = ir.value(0, U32)
    low = ir.call("llvm.amdgcn.mbcnt.lo", U32, ir.convert(mask, U32), zero)
    if ir.wave_size == 32:
        return low
    high = ir.emit(U64, f"lshr i64 {mask.text}, 32")
    return ir.call("llvm.amdgcn.mbcnt.hi", U32, ir.convert(high, U32), low)


def holds(ir: Ir, comparison: str, mask: Value) -> Value:
    """bool_: ``mask`` compared with zero."""
    return ir.emit(BOOL, f"icmp {comparison} i64 {mask.text}, 0")


@intrinsic(result=Result.LANE)
def lane_id(ir: Ir) -> Value:
    """u32: the number of this lane, from 0."""
    return bits_below(ir, ir.value((1 << 64) - 1, U64))


@intrinsic(result=Result.UNIFORM)
def wave_size(ir: Ir) -> Value:
    """u32: 64 or 32, known when the hook is compiled."""
    return ir.value(ir.wave_size, U32)
