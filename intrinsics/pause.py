"""pause(): in a loop that waits for others, gives way to them."""

from __future__ import annotations

from luthier_py.rewrite.tool import U32, Ir, Result, intrinsic


@intrinsic(result=Result.UNIFORM)
def pause(ir: Ir) -> None:
    """The wave sleeps for some hundred cycles: for loops that wait for others."""
    ir.effect("llvm.amdgcn.s.sleep", ir.value(8, U32))
