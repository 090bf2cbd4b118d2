"""What one instruction does to registers, as dataflow over lanes needs it.

In: an instruction and what is known of EXEC and modes before it. Out: :class:`Effect`. Invariant: it errs to the
safe side: reads may be too many, kills too few.

A set of registers is one int here, as in `isa.columns`. MODE is left out, as hooks never change it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from luthier_py.isa import MODE, Inst, InstructionSet, OpFlag, RegSet, sgpr
from luthier_py.isa.model.registers import SCALARS
from luthier_py.program.analysis.execution import START, ExecState

if TYPE_CHECKING:
    from luthier_py.isa.columns import Kinds

_VECTOR = OpFlag.VALU | OpFlag.VMEM | OpFlag.LDS | OpFlag.GDS | OpFlag.EXPORT


def pack(regs: RegSet) -> int:
    """The set as one int, as `isa.columns` has sets of registers, without MODE."""
    return regs.bits & ~(1 << MODE)


@cache
def everything(isa: InstructionSet) -> int:
    """All registers of a target."""
    vectors = (1 << isa.target.vgpr_limit) - 1
    return pack(RegSet.by_file((1 << MODE) - 1, vectors, vectors if isa.target.has_agprs else 0))


_TRAP_READS = RegSet.of(sgpr(0, 2))  # the queue, for trap handlers up to code object version 4 (AMDGPUUsage)


class Summary(NamedTuple):
    """Instructions in a row: what they read before they write it, what they write, what inactive lanes read."""

    reads: int
    kills: int
    wave_reads: int


class Effect(NamedTuple):
    """What one instruction does to registers: three sets, each one int as :func:`pack` makes it."""

    reads: int       # by the wave, or by active lanes
    kills: int       # written whole, in active lanes
    wave_reads: int  # vector registers read in inactive lanes too


def effect(isa: InstructionSet, inst: Inst, state: ExecState, owned: int = -1) -> Effect:
    """What ``inst`` does when ``state`` holds before it. ``owned``: the registers, packed, that an index can reach."""
    flags = inst.op.flags
    reads, kills = pack(inst.reads), pack(inst.writes - inst.partial_writes)
    if OpFlag.INDEXES_REGISTERS in flags:
        reads &= owned
    wave_reads = 0
    if OpFlag.IGNORES_EXEC in flags:
        if OpFlag.MATRIX not in flags:  # v_writelane keeps the other lanes of its destination, but uses none
            reads &= ~pack(inst.partial_writes)
        wave_reads = reads & ~SCALARS
    elif OpFlag.READS_OTHER_LANES in flags or (OpFlag.READS_FIRST_LANE in flags and not state.some_lane):
        wave_reads = reads & ~SCALARS
    elif OpFlag.MAY_STOP in flags:
        reads |= pack(_TRAP_READS)
    if state.indexed and flags & _VECTOR:  # relative to M0 are those of VALU alone, in other banks any
        vectors = everything(isa) & owned & ~SCALARS
        reads |= vectors
        wave_reads |= vectors if wave_reads else 0
        kills &= SCALARS
    skipped = state.skipping and flags & _VECTOR
    if skipped or OpFlag.INDEXES_REGISTERS in flags:
        kills = 0
    return Effect(reads, kills, wave_reads)


_PARTICULAR = OpFlag.INDEXES_REGISTERS | OpFlag.IGNORES_EXEC | OpFlag.READS_OTHER_LANES | OpFlag.MAY_STOP


def usual_effects(distinct: Kinds) -> list[Effect]:
    """The effects of each kind, where some lane is active and no mode changes what vector instructions mean."""
    masks, mode = distinct.masks, 1 << MODE
    reads = [(read | mode) ^ mode for read in masks.reads]
    kills = [(write | part) ^ part for write, part in zip(masks.writes, (p | mode for p in masks.partial), strict=True)]
    found = [Effect(read, kill, 0) for read, kill in zip(reads, kills, strict=True)]
    for kind in np.flatnonzero(distinct.flags & _PARTICULAR.value).tolist():
        found[kind] = effect(distinct.isa, distinct.inst(kind), START)
    return found


def summarise_effects(effects: Iterable[Effect]) -> Summary:
    """The summary of instructions in a row, the first one first."""
    reads = kills = wave_reads = 0
    for read, kill, wave_read in effects:
        reads |= (read | kills) ^ kills
        kills |= kill
        wave_reads |= wave_read
    return Summary(reads, kills, wave_reads)
