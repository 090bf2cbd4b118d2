"""Executed wave instructions by the unit of the GPU that carries them out: a tool of a study's own."""

from __future__ import annotations

from collections import Counter

from luthier_py import LaunchResult, Mutator, Tool, Variable, hook, ptr, u64
from luthier_py.intrinsics import atomic_add

UNITS = {"VOP": "VALU", "SOPP": "control", "SOP": "SALU", "SM": "SMEM", "DS": "LDS"}  # by how a format's name begins


class Units(Tool):
    """Executed wave instructions by unit: VALU, SALU, SMEM, VMEM, LDS, control."""

    @hook(lanes="one")
    def count(executions: ptr[u64]) -> None:
        atomic_add(executions, u64(1))

    def instrument(self, m: Mutator) -> None:
        regions = [region for function in m.functions() for region in m.regions(function)]
        self.units = [Counter(unit(instr.inst.op.format) for instr in region.instrs) for region in regions]
        self.executions = Variable(u64, max(len(regions), 1), name="Units.executions")
        for slot, region in enumerate(regions):
            m.at_region(region, self.count, self.executions[slot])

    def report(self, launch: LaunchResult) -> dict[str, dict[str, int]]:
        total: Counter[str] = Counter()
        for executions, units in zip(launch[self.executions], self.units, strict=True):
            total.update({name: n * executions for name, n in units.items()})
        return {"units": dict(total)}


def unit(encoding: str) -> str:
    """Of an encoding's instructions: what is none of the others goes to memory through the vector units."""
    return next((name for start, name in UNITS.items() if encoding.startswith(start)), "VMEM")
