"""What lane intrinsics share: masks, and the number of a lane."""

from __future__ import annotations

from luthier_py.tool import BOOL, U32, U64, Ir, Operand, Value


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
