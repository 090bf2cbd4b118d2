"""as_bits(x): the bits of a float."""

from __future__ import annotations

from luthier_py.rewrite.tool import U16, U32, U64, Ir, Kind, Operand, Result, Scalar, Value, intrinsic


@intrinsic(result=Result.ARGUMENTS)
def as_bits(ir: Ir, x: Operand) -> Value:
    """The bits of a float as an unsigned integer of its width."""
    value = ir.typed(x)
    if not (isinstance(value.type, Scalar) and value.type.kind is Kind.FLOAT):
        ir.refuse("as_bits needs a float")
    into = {16: U16, 32: U32, 64: U64}[value.type.bits]
    return ir.emit(into, f"bitcast {ir.llvm(value.type)} {value.text} to {ir.llvm(into)}")
