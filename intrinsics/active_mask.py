"""active_mask(): one bit for each active lane."""

from __future__ import annotations

from luthier_py.rewrite.tool import Ir, Result, Value, intrinsic, mask_of


@intrinsic(result=Result.UNIFORM)
def active_mask(ir: Ir) -> Value:
    """u64 with the bits of the active lanes."""
    return mask_of(ir, True)
