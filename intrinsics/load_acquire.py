"""load_acquire(pointer): a word that the host or another device writes; what was written before it is seen, too."""

from __future__ import annotations

from luthier_py.rewrite.tool import Ir, Operand, Result, Value, intrinsic

from .memory import integer_place


@intrinsic(result=Result.ARGUMENTS)
def load_acquire(ir: Ir, pointer: Operand) -> Value:
    """``*pointer`` as the whole system sees it; what its writer wrote before is seen after."""
    place, element = integer_place(ir, pointer)
    where = f"ptr addrspace(1) {place.text} acquire, align {element.size_bytes}"
    return ir.emit(element, f"load atomic {ir.llvm(element)}, {where}")
