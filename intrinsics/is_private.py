"""is_private(address): whether a flat address is one of a lane's private memory."""

from __future__ import annotations

from luthier_py.rewrite.tool import Ir, Operand, Result, Value, intrinsic

from .memory import in_aperture


@intrinsic(result=Result.ARGUMENTS)
def is_private(ir: Ir, address: Operand) -> Value:
    """bool_: whether a flat address is one of a lane's private memory."""
    return in_aperture(ir, "private", address)
