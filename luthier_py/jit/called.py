"""Hooks that need a stack: compiled as functions that are called, and made into fragments again.

In: IR of a hook, and the code that LLVM makes of it as an amdgpu_gfx function. Out: IR, and instructions. Invariant:
all private memory that the code touches is at offsets from what s32 holds, the stack pointer (AMDGPUUsage, "Calling
Conventions"); it falls off its end where it would return.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import accumulate

from luthier_py.errors import Unsupported
from luthier_py.isa import Inst, InstructionSet, OpFlag, RegFile, Space, glue, sgpr
from luthier_py.isa.vector_modes import moves_relative
from luthier_py.jit.frontend import HookIr
from luthier_py.jit.object import Code
from luthier_py.tool.hook import Hook

STACK_POINTER = sgpr(32)
_RETURN_ADDRESS = sgpr(30, 2)
_FIRST_SGPR = 4  # of arguments
_NO_ARRAYS_IN_REGISTERS = '"amdgpu-promote-alloca-to-vector-max-regs"="0"'
_ATTRIBUTES = re.compile(r"^(define amdgpu_gfx [^\n]*\)[^\n()#]*?) (#\d+ \{)$", re.MULTILINE)
_START, _CALLED = "define amdgpu_cs ", "define amdgpu_gfx "


def needs_stack(code: Code, isa: InstructionSet) -> bool:
    """It has one, or finds elements of arrays by registers' numbers, which are not those that it gets."""
    offset = 0
    while offset < len(code.code):
        inst = isa.decode(code.code, offset)
        if OpFlag.GETS_PC in inst.op.flags or inst.op.spaces is Space.SCRATCH or moves_relative(inst):
            return True
        offset += inst.size_bytes
    return False


def with_stack(hook: Hook, ir: HookIr) -> HookIr:
    """``ir`` as a function that is called; its results come in vector registers."""
    if any(seat.file is RegFile.SGPR for seat in ir.results):
        raise Unsupported(f"{hook.place}: hook {hook.name} needs a stack, and has a result for the wave; let it write "
                          "that to memory, or use fewer values at a time")
    params = tuple(replace(seat, index=seat.index + _FIRST_SGPR) if seat.file is RegFile.SGPR else seat
                   for seat in ir.params)
    assert ir.function.count(_START) == 1
    function = _ATTRIBUTES.sub(rf"\1 {_NO_ARRAYS_IN_REGISTERS} \2", ir.function.replace(_START, _CALLED), count=1)
    return replace(ir, function=function, params=params, called=True)


def without_returns(instrs: tuple[Inst, ...], isa: InstructionSet) -> tuple[Inst, ...]:
    """All ways out lead to the end. A function that is called waits first for what its caller has on its way: hooks
    find their arguments ready."""
    while instrs and OpFlag.WAIT in instrs[0].op.flags:
        instrs = instrs[1:]
    if instrs and returns(instrs[-1]):
        instrs = instrs[:-1]
    starts = [0, *accumulate(inst.size_bytes for inst in instrs)]
    return tuple(glue.jump(isa, (starts[-1] - starts[k + 1]) // 4) if returns(inst) else inst
                 for k, inst in enumerate(instrs))


def returns(inst: Inst) -> bool:
    """Whether control goes back to a caller."""
    return OpFlag.INDIRECT in inst.op.flags and OpFlag.CALL not in inst.op.flags and (
        inst.reads.sgpr == _RETURN_ADDRESS.bits)


