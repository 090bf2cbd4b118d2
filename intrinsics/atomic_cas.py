"""atomic_cas(pointer, expected, value): compare and swap; yields the old value."""

from __future__ import annotations

from luthier_py.rewrite.tool import Ir, Operand, Result, Value, intrinsic

from .memory import ORDER, integer_place


@intrinsic(result=Result.LANE)
def atomic_cas(ir: Ir, pointer: Operand, expected: Operand, value: Operand) -> Value:
    """``if *pointer == expected: *pointer = value`` at once; yields the old value."""
    place, element = integer_place(ir, pointer)
    old, new = ir.value(expected, element), ir.value(value, element)
    kind = ir.llvm(element)
    where = f"ptr addrspace(1) {place.text}, {kind} {old.text}, {kind} {new.text}"
    pair = ir.raw(f"cmpxchg {where} {ORDER} monotonic")
    return ir.emit(element, f"extractvalue {{ {kind}, i1 }} {pair}, 0")
