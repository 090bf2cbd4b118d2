"""any_(condition): whether a condition holds in some active lane."""

from __future__ import annotations

from luthier_py.rewrite.tool import Ir, Operand, Result, Value, holds, intrinsic, mask_of


@intrinsic(result=Result.UNIFORM)
def any_(ir: Ir, condition: Operand) -> Value:
    """bool_: whether ``condition`` holds in at least one active lane."""
    return holds(ir, "ne", mask_of(ir, condition))
