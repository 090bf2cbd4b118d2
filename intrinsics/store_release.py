"""store_release(pointer, value): a word for the host or another device; what was written before it is seen first."""

from __future__ import annotations

from luthier_py.rewrite.tool import Ir, Operand, Result, intrinsic

from .memory import integer_place


@intrinsic(result=Result.UNIFORM)
def store_release(ir: Ir, pointer: Operand, value: Operand) -> None:
    """``*pointer = value`` for the whole system; who sees it sees all that was written before."""
    place, element = integer_place(ir, pointer)
    stored = ir.value(value, element)
    where = f"ptr addrspace(1) {place.text} release, align {element.size_bytes}"
    ir.line(f"store atomic {ir.llvm(element)} {stored.text}, {where}")
