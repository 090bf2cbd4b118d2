"""as_bits(x): the bits of a float."""

from __future__ import annotations

from luthier_py.tool import F32, U32, U64, Ir, Kind, Operand, Result, Scalar, Value, intrinsic


@intrinsic(result=Result.ARGUMENTS)
def as_bits(ir: Ir, x: Operand) -> Value:
    """The bits of an f32 as u32, of an f64 as u64."""
    value = ir.typed(x)
    if not (isinstance(value.type, Scalar) and value.type.kind is Kind.FLOAT):
        ir.refuse("as_bits needs an f32 or f64")
    into = U32 if value.type == F32 else U64
    return ir.emit(into, f"bitcast {ir.llvm(value.type)} {value.text} to {ir.llvm(into)}")
