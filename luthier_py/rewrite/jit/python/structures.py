"""Structures in device code: made of members, split into members, and members' addresses.

In: values. Out: values: a structure is one value of LLVM's, with all its members. ValueError says what is wrong.
Invariant: members lie where NumPy and C++ have them.
"""

from __future__ import annotations

from collections.abc import Sequence

from luthier_py.base.records import replace
from luthier_py.rewrite.jit.python import arithmetic
from luthier_py.rewrite.jit.python.builder import Builder, llvm
from luthier_py.rewrite.tool.hooks.intrinsic import Operand, Value
from luthier_py.rewrite.tool.hooks.types import Pointer, Struct, StructMember


def build_struct(ir: Builder, struct: Struct, given: Sequence[Operand]) -> Value:
    """A structure of its members, in their order."""
    if len(given) != len(struct.members):
        raise ValueError(f"{struct.described} has {len(struct.members)} members, {len(given)} given")
    found = Value(struct, "poison", lane=False)
    for at, (member, operand) in enumerate(zip(struct.members, given, strict=True)):
        value = arithmetic.implicit(ir, operand, member.type)
        text = f"insertvalue {llvm(struct)} {found.text}, {llvm(member.type)} {value.text}, {at}"
        found = ir.emit(struct, text, found.lane or value.lane)
    return found


def member_of(ir: Builder, value: Value, name: str) -> Value:
    """One member's value."""
    at, member = _find_member(value.type, name)
    return ir.emit(member.type, f"extractvalue {llvm(value.type)} {value.text}, {at}", value.lane)


def member_address(ir: Builder, where: Value, name: str) -> Value:
    """The address of a member, of a structure's address."""
    assert isinstance(where.type, Pointer)
    struct = where.type.element
    at, member = _find_member(struct, name)
    text = f"getelementptr {llvm(struct)}, {llvm(where.type)} {where.text}, i32 0, i32 {at}"
    return ir.emit(replace(where.type, element=member.type), text, where.lane)


def _find_member(type: object, name: str) -> tuple[int, StructMember]:
    if not isinstance(type, Struct):
        hint = "; index it first, as in p[0].member" if isinstance(type, Pointer) else ""
        raise ValueError(f"this is {type}, which has no members{hint}")
    at = type.index(name)
    if at is None:
        raise ValueError(f"{type.described} has no member {name}")
    return at, type.members[at]
