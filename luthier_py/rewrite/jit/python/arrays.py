"""Arrays that are locals of device code: zeros at first, in registers where LLVM finds a way.

In: a call of ``array``, an index. Out: the array, and addresses of its elements. Invariant: an index never leaves the
array: one that is not known, and past its end, is that of the last element.
"""

from __future__ import annotations

import ast
from typing import Any, Protocol

from luthier_py.base.records import dataclass
from luthier_py.isa import Space
from luthier_py.rewrite.jit.python import arithmetic
from luthier_py.rewrite.jit.python.arithmetic import UNSIGNED
from luthier_py.rewrite.jit.python.builder import PRIVATE, Builder, constant, llvm
from luthier_py.rewrite.tool.hooks.intrinsic import Operand, Value
from luthier_py.rewrite.tool.hooks.types import U32, Pointer, Scalar, Struct, Type

LONGEST = 1 << 12
MOST_BYTES_AT_ONCE = 1024
"""Of zeros that are stored one by one; others a loop stores."""
_FILL = f"declare void @llvm.memset.p5.i32(ptr {PRIVATE}, i8, i32, i1)"


@dataclass(frozen=True, slots=True)
class LocalArray:
    """``slot``: its address; ``region``: where it was made."""

    element: Type
    length: int
    slot: str
    region: int

    def __str__(self) -> str:
        return f"array of {self.length} {self.element}"


@dataclass(frozen=True, slots=True)
class ElementAddress(Pointer):
    """The type of an element's address: which array's it is."""

    array: LocalArray
    name: str

    @property
    def space(self) -> Space:
        return Space.SCRATCH


class ArrayScope(Protocol):
    """What a function's scope has of arrays."""

    arrays: dict[str, LocalArray]
    locals: dict[str, Any]
    assigned: set[str]
    region: int


def make(ir: Builder, scope: ArrayScope, name: str, element: object, length: Operand) -> bool:
    """An array of zeros, in the memory of one that has the same name; whether lanes differ in it by that. ValueError
    says what is wrong."""
    if name in scope.locals:
        raise ValueError(f"{name} is a number already; give the array another name")
    known = scope.arrays.get(name)
    scope.arrays[name] = _make_local_array(ir, element, length, scope.region, known)
    scope.assigned.add(name)
    return known is not None and known.region != scope.region


def _make_local_array(ir: Builder, element: object, length: Operand, region: int,
                      known: LocalArray | None) -> LocalArray:
    if not isinstance(element, (Scalar, Pointer, Struct)):
        raise ValueError("array needs a type and a length, as in array(u32, 8)")
    if not isinstance(length, int) or isinstance(length, bool) or not 1 <= length <= LONGEST:
        raise ValueError(f"the length of an array is a constant from 1 to {LONGEST}")
    if known is not None and (known.element, known.length) != (element, length):
        raise ValueError(f"it is an {known} already")
    kind = f"[{length} x {llvm(element)}]"
    found = known or LocalArray(element, length, ir.raw_alloca(kind), region)
    if length * element.size_bytes > MOST_BYTES_AT_ONCE:
        ir.declarations.add(_FILL)
        ir.line(f"call void @llvm.memset.p5.i32(ptr {PRIVATE} {found.slot}, i8 0, i32 {length * element.size_bytes}, "
                "i1 false)")
    else:
        ir.line(f"store {kind} zeroinitializer, ptr {PRIVATE} {found.slot}")
    return found


def element_of(ir: Builder, name: str, array: LocalArray, index: Operand) -> Value:
    """The address of an element."""
    if not isinstance(index, Value):
        if not isinstance(index, int) or isinstance(index, bool) or not -array.length <= index < array.length:
            raise ValueError(f"{name} is an {array}; {index} is no index of it")
        at = constant(U32, index % array.length)
    else:
        if not isinstance(index.type, Scalar) or not index.type.is_integer:
            raise ValueError(f"an index must be an integer, not {index.type}")
        index = arithmetic.explicit(ir, index, UNSIGNED[max(index.type.bits, 32)])
        at = arithmetic.explicit(ir, _lower(ir, index, constant(index.type, array.length - 1)), U32)
    where = ir.raw(f"getelementptr {llvm(array.element)}, ptr {PRIVATE} {array.slot}, i32 {at.text}")
    return Value(ElementAddress(array.element, array, name), where, at.lane)


def _lower(ir: Builder, index: Value, last: Value) -> Value:
    inside = arithmetic.compare(ir, ast.LtE(), index, last)
    kind = llvm(index.type)
    return ir.emit(index.type, f"select i1 {inside.text}, {kind} {index.text}, {kind} {last.text}", index.lane)
