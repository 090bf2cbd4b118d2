"""ballot(condition): one bit for each active lane in which a condition holds."""

from __future__ import annotations

from luthier_py.rewrite.tool import Ir, Operand, Result, Value, intrinsic, mask_of


@intrinsic(result=Result.UNIFORM)
def ballot(ir: Ir, condition: Operand) -> Value:
    """u64 with the bits of the active lanes whose ``condition`` holds."""
    return mask_of(ir, condition)
