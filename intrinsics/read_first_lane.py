"""read_first_lane(x): the value of the first active lane, in all lanes."""

from __future__ import annotations

from luthier_py.rewrite.tool import Ir, Operand, Result, Value, intrinsic

from .lanes import from_lane


@intrinsic(result=Result.UNIFORM)
def read_first_lane(ir: Ir, x: Operand) -> Value:
    """``x`` of the first active lane (of lane 0 when none is active)."""
    return from_lane(ir, "llvm.amdgcn.readfirstlane", ir.typed(x))
