"""all_(condition): whether a condition holds in every active lane."""

from __future__ import annotations

from luthier_py.rewrite.tool import BOOL, Ir, Operand, Result, Value, holds, intrinsic, mask_of


@intrinsic(result=Result.UNIFORM)
def all_(ir: Ir, condition: Operand) -> Value:
    """bool_: whether ``condition`` holds in all active lanes."""
    fails = ir.emit(BOOL, f"xor i1 {ir.condition(condition).text}, true")
    return holds(ir, "eq", mask_of(ir, fails))
