"""is_first_lane(): whether this is the first active lane."""

from __future__ import annotations

from luthier_py.rewrite.tool import BOOL, Ir, Result, Value, bits_below, intrinsic, mask_of


@intrinsic(result=Result.LANE)
def is_first_lane(ir: Ir) -> Value:
    """bool_: true in one lane, the lowest that is active."""
    return ir.emit(BOOL, f"icmp eq i32 {bits_below(ir, mask_of(ir, True)).text}, 0")
