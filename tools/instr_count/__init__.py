"""Counts the instructions that a kernel executes."""

from __future__ import annotations

from luthier_py import LaunchResult, Mutator, Option, Tool, Variable, WaveVariable, hook, ptr, u32, u64
from luthier_py.intrinsics import active_mask, atomic_add, popcount


class InstrCount(Tool):
    """Executed instructions of each launch, counted once for all blocks that run equally often."""

    name = "instr_count"
    level = Option(
        "wave", choices=("wave", "thread"), help="count an instruction once per wave, or once per active lane"
    )

    instructions = Variable(u64)
    count = WaveVariable(u64)

    @hook
    def add(count: u64, n: u32) -> u64:
        return count + n

    @hook
    def add_lanes(count: u64, n: u32) -> u64:
        return count + u64(popcount(active_mask()) * n)

    @hook(lanes="one")
    def flush(instructions: ptr[u64], count: u64) -> None:
        atomic_add(instructions, count)

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self.total = 0

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            if self.level == "wave":
                for region in m.regions(function):
                    m.at_region(region, self.add, self.count, len(region.instrs), into=self.count)
                continue
            for stretch in (stretch for block in function.blocks for stretch in m.stretches(block)):
                m.at_stretch(stretch, self.add_lanes, self.count, len(stretch.instrs), into=self.count, anywhere=True)
        for kernel in m.kernels:
            m.at_exit(kernel, self.flush, self.instructions, self.count)

    def report(self, launch: LaunchResult) -> dict[str, int]:
        self.total += launch[self.instructions]
        return {"instructions": launch[self.instructions], "total": self.total}

    def text(self, launch: LaunchResult, report: dict[str, int]) -> str:
        return (
            f"kernel {launch.index} - {launch.kernel} - #workgroups {launch.workgroups}, "
            f"kernel instructions {report['instructions']}, total instructions {report['total']}"
        )
