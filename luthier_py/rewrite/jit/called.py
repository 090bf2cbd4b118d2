"""Hooks that need a stack: compiled as functions that are called, and made into fragments again.

In: IR of a hook, and the code that LLVM makes of it as an amdgpu_gfx function. Out: IR, and instructions. Invariant:
all private memory that the code touches is at offsets from what s32 holds, the stack pointer (AMDGPUUsage, "Calling
Conventions"), where it is in buffers by the resource in s[0:3]; it falls off its end where it would return.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from luthier_py.base.records import replace
from luthier_py.isa import Inst, InstructionSet, OpFlag, RegFile, Space, build, sgpr, vgpr
from luthier_py.isa.properties.private_buffers import private_resource
from luthier_py.isa.properties.vector_modes import moves_relative
from luthier_py.rewrite.jit.convention import Seat
from luthier_py.rewrite.jit.object import Code
from luthier_py.rewrite.jit.python.frontend import HookIr
from luthier_py.rewrite.llvm_text.modules import add_attribute

STACK_POINTER = sgpr(32)
PRIVATE_RESOURCE = sgpr(0, 4)  # where private memory is in buffers
_RETURN_ADDRESS = sgpr(30, 2)
_FIRST_SGPR = 4  # of arguments
_NO_ARRAYS_IN_REGISTERS = '"amdgpu-promote-alloca-to-vector-max-regs"="0"'
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


def with_stack(ir: HookIr) -> HookIr:
    """``ir`` as a function that is called. Its results come in vector registers, those for the wave first: `scalars`
    brings these into scalar registers."""
    params = tuple(replace(seat, index=seat.index + _FIRST_SGPR) if seat.file is RegFile.SGPR else seat
                   for seat in ir.params)
    for_wave = sum(seat.type.dwords for seat in ir.results if seat.file is RegFile.SGPR)
    results = tuple(replace(seat, index=seat.index + (_FIRST_SGPR if seat.file is RegFile.SGPR else for_wave))
                    for seat in ir.results)
    assert ir.function.count(_START) == 1
    function = add_attribute(ir.function.replace(_START, _CALLED), _NO_ARRAYS_IN_REGISTERS, _CALLED)
    return replace(ir, function=function, params=params, results=results, called=True)


def scalars(results: Sequence[Seat], isa: InstructionSet) -> Iterator[Inst]:
    """Instructions behind such a function: they read results for the wave from the first active lane."""
    for seat in results:
        for k in range(seat.index, seat.index + seat.type.dwords) if seat.file is RegFile.SGPR else ():
            yield build.first_lane(isa, sgpr(k), vgpr(k - _FIRST_SGPR))


def without_returns(instrs: tuple[Inst, ...], isa: InstructionSet) -> tuple[Inst, ...]:
    """All ways out lead to the end. A function that is called waits first for what its caller has on its way: hooks
    find their arguments ready."""
    while instrs and OpFlag.WAIT in instrs[0].op.flags:
        instrs = instrs[1:]
    if instrs and returns(instrs[-1]):
        instrs = instrs[:-1]
    starts = [0, *accumulate(inst.size_bytes for inst in instrs)]
    return tuple(build.jump(isa, (starts[-1] - starts[k + 1]) // 4) if returns(inst) else inst
                 for k, inst in enumerate(instrs))


def in_buffers(instrs: Sequence[Inst], isa: InstructionSet) -> bool:
    """Whether they touch private memory through its resource."""
    return isa.target.scratch_in_buffers and any(private_resource(inst) == PRIVATE_RESOURCE for inst in instrs)


def returns(inst: Inst) -> bool:
    """Whether the instruction returns to a caller."""
    return OpFlag.INDIRECT in inst.op.flags and OpFlag.CALL not in inst.op.flags and (
        inst.reads.sgpr == _RETURN_ADDRESS.bits)
