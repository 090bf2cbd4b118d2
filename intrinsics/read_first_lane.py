"""read_first_lane(x): the value of the first active lane, in all lanes."""

from __future__ import annotations

from luthier_py.tool import Ir, Operand, Result, Value, intrinsic


@intrinsic(result=Result.UNIFORM)
def read_first_lane(ir: Ir, x: Operand) -> Value:
    """``x`` of the first active lane (of lane 0 when none is active)."""
    value = ir.typed(x)
    return ir.call(f"llvm.amdgcn.readfirstlane.{ir.mangled(value.type)}", value.type, value)
