"""What instructions of the application read and write whole, as sets of registers in one integer.

In: kinds of instructions, and what is known of lanes and modes before them. Out: Effect. Invariant: reads may be too
many, and what is written whole too little.
"""

from __future__ import annotations

from typing import NamedTuple

from luthier_py.binary.loader import KernelDescriptor
from luthier_py.isa import EXEC, MODE, TTMP0, XNACK_MASK, Inst, InstructionSet, OpFlag, RegSet, Target
from luthier_py.isa.model.registers import SCALARS
from luthier_py.proof.modes import Modes

_VECTOR = OpFlag.VALU | OpFlag.VMEM | OpFlag.LDS | OpFlag.GDS | OpFlag.EXPORT
_QUEUE = 3  # s[0:1], for trap handlers up to version 4 of code objects (AMDGPUUsage, "Trap Handler ABI")


class Effect(NamedTuple):
    """What an instruction does to registers, as bits of a RegSet."""

    reads: int       # by the wave, or by active lanes
    kills: int       # written whole, in active lanes
    far_reads: int   # vector registers that are read in inactive lanes too


NO_EFFECT = Effect(0, 0, 0)


def everything(target: Target) -> int:
    """All registers that code may name, as bits of a RegSet, with SCC and without MODE."""
    vectors = (1 << target.vgpr_limit) - 1
    return RegSet.by_file((1 << MODE) - 1, vectors, vectors if target.has_agprs else 0).bits


def always_live(target: Target) -> int:
    """What only the application may change at any time: EXEC, and what the hardware itself looks at."""
    found = 3 << EXEC
    return found | 0xFFFF << TTMP0 | (3 << XNACK_MASK if target.flat_scratch_operands else 0)


def depends(inst: Inst) -> bool:
    """Whether the effect is another one for other lanes and modes."""
    return bool(inst.op.flags & OpFlag.READS_FIRST_LANE)


def may_touch(inst: Inst, needed: int) -> bool:
    """Whether the usual effect has any of ``needed``."""
    return bool((inst.reads.bits | inst.writes.bits) & needed or inst.op.flags & OpFlag.MAY_STOP)


def effect(isa: InstructionSet, inst: Inst, modes: Modes, owned: int) -> Effect:
    """``owned``: the registers that an index can reach."""
    flags = inst.op.flags
    keeps = inst.partial_writes.bits
    reads = inst.reads.bits & ~(1 << MODE)
    kills = inst.writes.bits & ~keeps & ~(1 << MODE)
    if OpFlag.INDEXES_REGISTERS in flags:
        reads, kills = reads & owned, 0
    far = 0
    if OpFlag.IGNORES_EXEC in flags:
        reads &= ~keeps if OpFlag.MATRIX not in flags else -1  # v_writelane keeps other lanes, but uses none
        far = reads & ~SCALARS
    elif OpFlag.READS_OTHER_LANES in flags or (OpFlag.READS_FIRST_LANE in flags and not modes.some_lane):
        far = reads & ~SCALARS
    if OpFlag.MAY_STOP in flags:
        reads |= _QUEUE
    if modes.relative and flags & _VECTOR:  # relative to M0 are those of VALU alone, in other banks any
        vectors = everything(isa.target) & owned & ~SCALARS
        reads |= vectors
        far |= vectors if far else 0
        kills &= SCALARS
    if modes.skips and flags & _VECTOR:
        kills = 0
    return Effect(reads, kills, far)


def compute_allocated_registers(target: Target, descriptor: KernelDescriptor) -> int:
    """Registers that a wave of a kernel has."""
    whole = (1 << target.vgpr_limit) - 1
    if descriptor.enable_dynamic_vgpr or descriptor.enable_dynamic_vgpr_rsrc3:
        return SCALARS | RegSet.by_file(0, whole, whole).bits
    vgprs, agprs = descriptor.arch_vgpr_count(target), descriptor.agpr_count(target)
    return SCALARS | RegSet.by_file(0, (1 << vgprs) - 1 & whole, (1 << agprs) - 1 & whole).bits
