"""What is shared by intrinsics that take a value from one lane."""

from __future__ import annotations

from luthier_py.rewrite.tool import U16, U32, Ir, Kind, Scalar, Struct, Value


def from_lane(ir: Ir, function: str, value: Value, *args: Value) -> Value:
    """What ``function`` yields of a value, of structures by member; short ones go in the low bits of a u32."""
    type = value.type
    if isinstance(type, Struct):
        return _members_from_lane(ir, function, value, type, args)
    if not isinstance(type, Scalar) or type.bits not in (8, 16):
        return ir.call(f"{function}.{ir.mangled(type)}", type, value, *args)
    if type.kind is Kind.FLOAT:
        value = ir.emit(U16, f"bitcast {ir.llvm(type)} {value.text} to i16")
    found = ir.call(f"{function}.i32", U32, ir.convert(value, U32), *args)
    short = ir.convert(found, U16 if type.kind is Kind.FLOAT else type)
    return ir.emit(type, f"bitcast i16 {short.text} to {ir.llvm(type)}") if type.kind is Kind.FLOAT else short


def _members_from_lane(ir: Ir, function: str, value: Value, type: Struct, args: tuple[Value, ...]) -> Value:
    found = Value(type, "poison", lane=False)
    for at, member in enumerate(type.members):
        own = ir.emit(member.type, f"extractvalue {ir.llvm(type)} {value.text}, {at}")
        part = from_lane(ir, function, own, *args)
        found = ir.emit(type, f"insertvalue {ir.llvm(type)} {found.text}, {ir.llvm(part.type)} {part.text}, {at}")
    return found
