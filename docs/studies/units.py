"""Executed wave instructions by the unit of the GPU that carries them out: a tool of a study's own."""

from __future__ import annotations

from collections import Counter

from luthier_py import LaunchResult, Mutator, OpFlag, Tool, Variable, hook, ptr, u64
from luthier_py.intrinsics import atomic_add

CONTROL = OpFlag.BRANCH | OpFlag.INDIRECT | OpFlag.BARRIER | OpFlag.WAIT | OpFlag.END
UNITS = {  # the first that an instruction's flags meet
    "control": CONTROL, "LDS": OpFlag.LDS, "VMEM": OpFlag.VMEM, "SMEM": OpFlag.SMEM, "SALU": OpFlag.SALU,
    "VALU": OpFlag.VALU | OpFlag.MATRIX,
}  # fmt: skip


@hook(lanes="one")
def count(executions: ptr[u64]) -> None:
    atomic_add(executions, u64(1))


class Units(Tool):
    """Executed wave instructions by unit: VALU, SALU, SMEM, VMEM, LDS, control."""

    def instrument(self, m: Mutator) -> tuple[Variable, list[Counter[str]]]:
        regions = [region for function in m.functions() for region in m.regions(function)]
        units = [Counter(unit(instr.inst.op.flags) for instr in region.instrs) for region in regions]
        executions = Variable(u64, max(len(regions), 1), name="Units.executions")
        for slot, region in enumerate(regions):
            m.at_region(region, count, executions[slot])
        return executions, units

    def report(self, launch: LaunchResult) -> dict[str, dict[str, int]]:
        executions, units = launch.notes
        total: Counter[str] = Counter()
        for times, names in zip(launch[executions], units, strict=False):  # without code: one, for nothing
            total.update({name: n * times for name, n in names.items()})
        return {"units": dict(total)}


def unit(flags: OpFlag) -> str:
    return next((name for name, meant in UNITS.items() if flags & meant), "other")
