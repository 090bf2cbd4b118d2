"""from_bits(x): the float that has these bits."""

from __future__ import annotations

from luthier_py.rewrite.tool import F16, F32, F64, U16, U32, U64, Ir, Operand, Result, Scalar, Value, intrinsic


@intrinsic(result=Result.ARGUMENTS)
def from_bits(ir: Ir, x: Operand) -> Value:
    """The f16 with the bits of a u16, the f32 with those of a u32, the f64 with those of a u64."""
    value = ir.integer(x)
    if not isinstance(value.type, Scalar) or value.type not in (U16, U32, U64):
        ir.refuse("from_bits needs a u16, u32 or u64")
    into = {16: F16, 32: F32, 64: F64}[value.type.bits]
    return ir.emit(into, f"bitcast {ir.llvm(value.type)} {value.text} to {ir.llvm(into)}")
