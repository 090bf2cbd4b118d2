"""is_lds(address): whether a flat address is one of the work-group's LDS."""

from __future__ import annotations

from luthier_py.rewrite.tool import Ir, Operand, Result, Value, intrinsic

from .memory import in_aperture


@intrinsic(result=Result.ARGUMENTS)
def is_lds(ir: Ir, address: Operand) -> Value:
    """bool_: whether a flat address is one of the work-group's LDS; its low 32 bits are the byte there."""
    return in_aperture(ir, "shared", address)
