"""read_lane(x, lane): the value of one lane, in all lanes."""

from __future__ import annotations

from luthier_py.rewrite.tool import U32, Ir, Operand, Result, Value, intrinsic

from .lanes import from_lane


@intrinsic(result=Result.UNIFORM, uniform=(1,))
def read_lane(ir: Ir, x: Operand, lane: Operand) -> Value:
    """``x`` of the lane with a number, which is the same in all lanes; active or not."""
    return from_lane(ir, "llvm.amdgcn.readlane", ir.typed(x), ir.value(lane, U32))
