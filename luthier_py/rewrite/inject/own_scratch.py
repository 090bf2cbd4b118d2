"""Kernels that set up where their private memory is: whether that is what the prologue has found already.

In: a component. Out: whether its kernels may have the prologue's. Invariant: nothing but the sum of what a wave is
initial with is ever written there (AMDGPUUsage, "Flat Scratch")."""

from __future__ import annotations

from luthier_py.binary.loader.initial import Initial, initial_places
from luthier_py.isa import SCC, Inst, InstructionSet, Reg, RegFile, RegSet, build, sgpr
from luthier_py.program.ir import Function, Kernel, Program
from luthier_py.rewrite.inject.resources import Component


def keeps_base(program: Program, component: Component, base: Reg) -> bool:
    """Whether all that is written to ``base`` is what the prologue has put there before, by a kernel that sets it up
    where it begins, as compilers do."""
    found = {kernel.function: _set_up(program, kernel, base) for kernel in component.kernels}
    return all(_count(function, base) == found.get(function, 0) for function in component.functions)


def _count(function: Function, base: Reg) -> int:
    """Instructions that write there."""
    distinct = function.code.distinct
    return len(function.code.where(distinct.match_writes(base.bits)))


def _set_up(program: Program, kernel: Kernel, base: Reg) -> int:
    """Instructions that write the sum there, in a first block to which nothing leads back."""
    function, places = kernel.function, initial_places(program.obj.target, kernel.record.descriptor)
    first = function.block(function.entries[0])
    if not {Initial.FLAT_SCRATCH_INIT, Initial.SCRATCH_WAVE_OFFSET} <= places.keys() or len(function.entries) > 1:
        return 0
    if any(first.address in block.successors for block in function.blocks):
        return 0
    sums, found = _Sums(program.isa, places[Initial.FLAT_SCRATCH_INIT], places[Initial.SCRATCH_WAVE_OFFSET]), 0
    for instr in first.instrs:
        sums.through(instr.inst)
        found += instr.inst.writes.overlaps(RegSet.of(base)) and sums.wrote(instr.inst, base)
    return found


class _Sums:
    """Which registers hold the two halves of a wave's base and its offset, and of their sum (mutable)."""

    def __init__(self, isa: InstructionSet, base: Reg, offset: Reg) -> None:
        self.isa = isa
        self.initial = {base.index: "low", base.index + 1: "high", offset.index: "offset"}
        self.sums = dict[int, int]()  # halves, by register
        self.carry = False

    def through(self, inst: Inst) -> None:
        to = inst.find("sdst")
        made = None if to is None or to.reg is None else self.match_half(inst, to.reg)
        self.carry = made == 0 or self.carry and not inst.writes.overlaps(RegSet.of(sgpr(SCC)))
        for index in [each for each in {**self.initial, **self.sums} if inst.writes.sgpr >> each & 1]:
            self.initial.pop(index, None)
            self.sums.pop(index, None)
        if made is not None and to is not None and to.reg is not None:
            self.sums[to.reg.index] = made

    def match_half(self, inst: Inst, to: Reg) -> int | None:
        """The half of the sum that an instruction makes."""
        where = {name: sgpr(index) for index, name in self.initial.items()}
        if to.dwords != 1:
            return None
        if {"low", "offset"} <= where.keys() and inst.raw == build.add(
                self.isa, to, where["low"], where["offset"]).raw:
            return 0
        carries = self.carry and "high" in where
        return 1 if carries and inst.raw == build.add_with_carry(self.isa, to, where["high"], 0).raw else None

    def wrote(self, inst: Inst, base: Reg) -> bool:
        """Whether an instruction has put a half of the sum where it belongs in ``base``."""
        if self.isa.target.flat_scratch_operands:
            return all(self.sums.get(base.index + half) == half for half in (0, 1)
                       if inst.writes.sgpr >> base.index + half & 1)
        return any(inst.raw == build.set_scratch_base(self.isa, half, Reg(RegFile.SGPR, index)).raw
                   for index, half in self.sums.items())
