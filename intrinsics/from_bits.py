"""from_bits(x): the float that has these bits."""

from __future__ import annotations

from luthier_py.tool import F32, F64, U32, U64, Ir, Operand, Result, Value, intrinsic


@intrinsic(result=Result.ARGUMENTS)
def from_bits(ir: Ir, x: Operand) -> Value:
    """The f32 with the bits of a u32, the f64 with the bits of a u64."""
    value = ir.integer(x)
    if value.type not in (U32, U64):
        ir.refuse("from_bits needs a u32 or u64")
    into = F32 if value.type == U32 else F64
    return ir.emit(into, f"bitcast {ir.llvm(value.type)} {value.text} to {ir.llvm(into)}")
