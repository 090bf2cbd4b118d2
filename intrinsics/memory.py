"""What intrinsics about memory share. Atomics act on integers in global memory, relaxed, seen by the whole agent.

The memory is taken to be the GPU's own and coarse-grained, as tool variables are; then every atomic is one instruction.
"""

from __future__ import annotations

from luthier_py.isa import Space
from luthier_py.rewrite.tool import BOOL, U64, Ir, Kind, Operand, Pointer, Scalar, Value

ORDER = 'syncscope("agent") monotonic'
OWN_MEMORY = "!amdgpu.no.remote.memory !0, !amdgpu.no.fine.grained.memory !0"


def integer_place(ir: Ir, pointer: Operand) -> tuple[Value, Scalar]:
    """The pointer, and the integer type that it points to; refused otherwise."""
    if isinstance(pointer, Value) and isinstance(pointer.type, Pointer):
        if pointer.type.space is not Space.GLOBAL:
            ir.refuse(f"atomics are for global memory; {pointer.type} can be read only")
        element = pointer.type.element
        if isinstance(element, Scalar) and element.is_integer and element.bits >= 32:
            return pointer, element
    ir.refuse("atomics need a pointer to u32, i32, u64 or i64 first")


def is_signed(ir: Ir, pointer: Operand) -> bool:
    return integer_place(ir, pointer)[1].kind is Kind.SIGNED


def read_modify_write(ir: Ir, operation: str, pointer: Operand, value: Operand) -> Value:
    """One of LLVM's atomicrmw operations; the old value."""
    place, element = integer_place(ir, pointer)
    operand = ir.value(value, element)
    where = f"ptr addrspace(1) {place.text}, {ir.llvm(element)} {operand.text}"
    return ir.emit(element, f"atomicrmw {operation} {where} {ORDER}, {OWN_MEMORY}")


def in_aperture(ir: Ir, name: str, address: Operand) -> Value:
    """Whether a flat address, a number or a pointer into global memory, is in one of LLVM's apertures."""
    value = ir.convert(address, U64)
    return ir.emit(BOOL, f"call i1 @llvm.amdgcn.is.{name}(ptr {ir.raw(f'inttoptr i64 {value.text} to ptr')})")
