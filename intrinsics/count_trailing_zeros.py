"""count_trailing_zeros(x): the number of the lowest bit that is one."""

from __future__ import annotations

from luthier_py.rewrite.tool import BOOL, U32, Ir, Operand, Result, Value, intrinsic


@intrinsic(result=Result.ARGUMENTS)
def count_trailing_zeros(ir: Ir, x: Operand) -> Value:
    """u32: the number of the lowest one bit of an integer; its width when there is none."""
    value = ir.integer(x)
    exact = ir.value(False, BOOL)
    return ir.convert(ir.call(f"llvm.cttz.{ir.llvm(value.type)}", value.type, value, exact), U32)
