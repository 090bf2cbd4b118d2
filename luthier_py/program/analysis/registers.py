"""Registers of whole functions, and those that a wave starts with.

In: functions, or a kernel's descriptor. Out: sets of registers. Invariant: no instruction of the functions
reads or writes, named or implied, what is not in `collect_accessed_registers`; EXEC and MODE always count as touched.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from luthier_py.binary.loader.initial import initial_count
from luthier_py.isa import EXEC, M0, MODE, Inst, OpFlag, RegSet, Target, sgpr, vgpr
from luthier_py.isa.model.registers import SCALARS
from luthier_py.isa.properties.vector_modes import Turned, classify_mode_switch
from luthier_py.program.analysis.changes import find_switches
from luthier_py.program.analysis.effects import everything, pack

if TYPE_CHECKING:
    from luthier_py.binary.loader import KernelDescriptor
    from luthier_py.program.ir import Function, Program

_ALWAYS = RegSet.of(sgpr(EXEC, 2), sgpr(MODE))


def collect_accessed_registers(functions: Iterable[Function]) -> RegSet:
    """Registers that any instruction of ``functions`` may read or write; all, if one of them is not known whole."""
    found = _ALWAYS
    for function in functions:
        if function.incomplete:
            return RegSet(everything(function.isa)) | _ALWAYS
        code = function.code
        found |= RegSet(code.touched)
        if any(_makes_relative(function.isa.target, inst) for inst in {code.inst(at) for at in find_switches(code)}):
            found |= RegSet(everything(function.isa)).vectors  # M0 says which, beyond a file's end perhaps
    return found


def _makes_relative(target: Target, inst: Inst) -> bool:
    switch = classify_mode_switch(target, inst)
    indexes = OpFlag.INDEXES_REGISTERS in inst.op.flags and switch not in (Turned.SKIP_ON, Turned.SKIP_OFF)
    return indexes or switch in (Turned.BOTH_ON, Turned.RELATIVE_ON)


def collect_owned_registers(program: Program) -> dict[Function, int]:
    """For each function the registers, packed, of the waves that run it: what an index can reach, or code elsewhere.

    An index beyond what a kernel has allocated is the program's error; it means another register in a clone that
    has more.
    """
    target, every = program.obj.target, everything(program.isa)
    found: dict[Function, int] = {}
    for kernel in program.kernels:
        regs = compute_allocated_registers(target, kernel.record.descriptor)
        for function in program.reachable(kernel.function):
            found[function] = found.get(function, SCALARS) | regs
    return {function: found.get(function, every) for function in program.functions}


def compute_allocated_registers(target: Target, descriptor: KernelDescriptor) -> int:
    """Registers, packed, that a wave of a kernel has; all vector registers where it may get more while it runs."""
    whole = (1 << target.vgpr_limit) - 1
    if descriptor.enable_dynamic_vgpr or descriptor.enable_dynamic_vgpr_rsrc3:
        return SCALARS | pack(RegSet.by_file(0, whole, whole))
    vgprs, agprs = descriptor.arch_vgpr_count(target), descriptor.agpr_count(target)
    return SCALARS | pack(RegSet.by_file(0, (1 << vgprs) - 1 & whole, (1 << agprs) - 1 & whole))


def initial_registers(target: Target, descriptor: KernelDescriptor) -> RegSet:
    """Registers that hold something when a wave starts (AMDGPUUsage, "Initial Kernel Execution State"); M0 is one."""
    vgprs = 1 if target.packed_work_item_ids else descriptor.enable_vgpr_workitem_id + 1
    scalars = (1 << initial_count(target, descriptor)) - 1
    return RegSet.by_file(sgpr=scalars) | RegSet.of(vgpr(0, vgprs), sgpr(M0)) | _ALWAYS
