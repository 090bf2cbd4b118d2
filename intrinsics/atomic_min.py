"""atomic_min(pointer, value): ``*pointer = min(*pointer, value)`` at once; yields the old value."""

from __future__ import annotations

from luthier_py.rewrite.tool import Ir, Operand, Result, Value, intrinsic

from .memory import is_signed, read_modify_write


@intrinsic(result=Result.LANE)
def atomic_min(ir: Ir, pointer: Operand, value: Operand) -> Value:
    """``*pointer = min(*pointer, value)`` at once; yields the old value."""
    return read_modify_write(ir, "min" if is_signed(ir, pointer) else "umin", pointer, value)
