"""atomic_load(pointer): what others have stored or counted there, not what a cache remembers."""

from __future__ import annotations

from luthier_py.rewrite.tool import Ir, Operand, Result, Value, intrinsic

from .memory import ORDER, integer_place


@intrinsic(result=Result.ARGUMENTS)
def atomic_load(ir: Ir, pointer: Operand) -> Value:
    """``*pointer`` as the whole GPU sees it, relaxed."""
    place, element = integer_place(ir, pointer)
    where = f"ptr addrspace(1) {place.text} {ORDER}, align {element.size_bytes}"
    return ir.emit(element, f"load atomic {ir.llvm(element)}, {where}")
