"""atomic_sub(pointer, value): ``*pointer -= value`` at once; yields the old value."""

from __future__ import annotations

from luthier_py.rewrite.tool import Ir, Operand, Result, Value, intrinsic

from .memory import read_modify_write


@intrinsic(result=Result.LANE)
def atomic_sub(ir: Ir, pointer: Operand, value: Operand) -> Value:
    """``*pointer -= value`` at once; yields the old value."""
    return read_modify_write(ir, "sub", pointer, value)
