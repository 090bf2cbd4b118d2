"""popcount(x): how many bits of an integer are one."""

from __future__ import annotations

from luthier_py.rewrite.tool import U32, Ir, Operand, Result, Value, intrinsic


@intrinsic(result=Result.ARGUMENTS)
def popcount(ir: Ir, x: Operand) -> Value:
    """u32: how many bits of an integer are one."""
    value = ir.integer(x)
    return ir.convert(ir.call(f"llvm.ctpop.{ir.llvm(value.type)}", value.type, value), U32)
