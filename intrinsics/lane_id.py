"""lane_id(): the number of this lane in its wave."""

from __future__ import annotations

from luthier_py.tool import U64, Ir, Result, Value, intrinsic

from .lanes import bits_below


@intrinsic(result=Result.LANE)
def lane_id(ir: Ir) -> Value:
    """u32: the number of this lane, from 0."""
    return bits_below(ir, ir.value((1 << 64) - 1, U64))
