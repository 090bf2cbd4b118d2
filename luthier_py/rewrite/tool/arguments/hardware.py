"""Arguments that say where a wave runs: registers of the hardware, as s_getreg reads them.

In: a kernel and the name of a register. Out: an argument for hooks. Invariant: the name is one of the kernel's target.
"""

from __future__ import annotations

from functools import cache

from luthier_py.base.errors import HookError
from luthier_py.isa.model.names import HARDWARE_REGISTERS, names_of
from luthier_py.program.ir import Kernel
from luthier_py.rewrite.tool.arguments.computed import Computed
from luthier_py.rewrite.tool.arguments.expected import expect
from luthier_py.rewrite.tool.author import caller
from luthier_py.rewrite.tool.hooks.author_types import u32
from luthier_py.rewrite.tool.hooks.hook import Device, device
from luthier_py.rewrite.tool.hooks.intrinsic import Ir, Operand, Result, Value, intrinsic
from luthier_py.rewrite.tool.hooks.types import U32

_WHOLE = 31 << 11  # of the immediate: bits 0 to 31


@intrinsic(result=Result.UNIFORM)
def _register(ir: Ir, which: Operand) -> Value:
    """The immediate of s_getreg is a constant of the code."""
    return ir.call("llvm.amdgcn.s.getreg", U32, ir.value(which, U32))


def hardware_register(kernel: Kernel, name: str) -> Computed:
    """``u32``: a register of the hardware where the wave runs, by its name in AMD's manuals: HW_ID (compute unit, SIMD,
    wave slot ...), XCC_ID, MODE, STATUS, LDS_ALLOC and others, as the kernel's target has them.

    HookError: the target has no such register.
    """
    expect(kernel, Kernel)
    expect(name, str, name="name")
    target = kernel.function.isa.target
    numbers = {text: number for number, text in names_of(HARDWARE_REGISTERS, target).items()}
    if name not in numbers:
        known = ", ".join(sorted(numbers))
        raise HookError(f"{caller()}: {target.name} has no hardware register {name}; it has {known}")
    return Computed(_reader(numbers[name] | _WHOLE), (), f"hardware register {name}")


@cache
def _reader(immediate: int) -> Device:
    @device
    def read() -> u32:
        found: u32 = _register(immediate)
        return found

    assert isinstance(read, Device)
    return read
