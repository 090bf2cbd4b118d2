"""How lanes exchange values: what device code of this tool needs beside the built-in intrinsics."""

from __future__ import annotations

from luthier_py.rewrite.tool import BOOL, U32, U64, Ir, Operand, Result, Value, intrinsic


@intrinsic(result=Result.LANE)
def sent(ir: Ir, lane4: Operand, value: Operand) -> Value:
    """u32: the ``value`` that a lane sent to this one; that of one of them if there are more, 0 if there is none.
    ``lane4``: the lane to send to, times 4; other bits of it do not count."""
    return ir.call("llvm.amdgcn.ds.permute", U32, ir.value(lane4, U32), ir.value(value, U32))


@intrinsic(result=Result.LANE)
def fetched(ir: Ir, lane4: Operand, value: Operand) -> Value:
    """u32: the ``value`` of another lane, which is active."""
    return ir.call("llvm.amdgcn.ds.bpermute", U32, ir.value(lane4, U32), ir.value(value, U32))


@intrinsic(result=Result.LANE)
def is_in(ir: Ir, lanes: Operand) -> Value:
    """bool_: whether this lane's bit is set in a u64 that is the same in all lanes."""
    width = U64 if ir.wave_size == 64 else U32
    return ir.call(f"llvm.amdgcn.inverse.ballot.{ir.llvm(width)}", BOOL, ir.convert(ir.value(lanes, U64), width))


@intrinsic(result=Result.ARGUMENTS)
def first_in(ir: Ir, lanes: Operand) -> Value:
    """u32: the lowest bit of a u64 that is set; anything where none is."""
    number = ir.call("llvm.cttz.i64", U64, ir.value(lanes, U64), ir.value(True, BOOL))
    return ir.convert(ir.emit(U64, f"freeze i64 {number.text}"), U32)


@intrinsic(result=Result.LANE)
def half_of_lane(ir: Ir) -> Value:
    """u32: 32 in the lanes from 32 on, else 0."""
    low = ir.call("llvm.amdgcn.mbcnt.lo", U32, ir.value((1 << 32) - 1, U32), ir.value(0, U32))
    return ir.emit(U32, f"and i32 {low.text}, 32")
