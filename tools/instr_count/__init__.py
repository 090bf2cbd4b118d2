"""Counts the instructions that a kernel executes."""

from __future__ import annotations

from typing import Any

from luthier_py import (
    COUNT_WARP_LEVEL,
    EXCLUDE_PRED_OFF,
    EXEC,
    LaunchResult,
    Mutator,
    Option,
    Tool,
    Variable,
    WaveVariable,
    sgpr,
    u32,
    u64,
)
from luthier_py.program.ir import Function
from luthier_py.rewrite.tool import SO_FAR, SUM
from luthier_py.tools.instr_count.hooks import add, add_if_active, add_lanes, count_steps, flush, flush_threads, start


class InstrCount(Tool):
    """Executed instructions of each launch."""

    name = "instr_count"
    cacheable = True
    aliases = ("instr_count_bb",)
    mode = Option(
        "block",
        choices=("block", "instruction"),
        help="count the blocks from which all others follow, or every instruction: same numbers",
    )
    amounts = {"instructions": SUM.of("executed instructions"), "total": SO_FAR.of("executed instructions")}
    per_wave = COUNT_WARP_LEVEL
    active_only = EXCLUDE_PRED_OFF
    per_launch = Option(True, help="0: one count for all launches of a kernel, which wait for nothing then")

    instructions = Variable(u64)
    count = WaveVariable(u64)
    threads = WaveVariable(u32)  # that the wave was launched with
    begun = WaveVariable(u32)  # what a loop's register held before it

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self.total = 0

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            if self.mode == "instruction":
                for instr in m.instrs(function):
                    m.before(instr, *self.adding(m, 1), into=self.count)
            elif self.active_only:
                for stretch in (stretch for block in m.blocks(function) for stretch in m.stretches(block)):
                    m.at_stretch(stretch, *self.adding(m, len(stretch)), into=self.count, anywhere=True)
            else:
                self.count_few(m, function)
        for kernel in m.kernels:
            if self.per_wave or self.active_only:
                m.at_exit(kernel, flush, self.instructions, self.count)
            else:  # each thread of the wave executed what the wave did
                m.at_entry(kernel, start, into=self.threads)
                m.at_exit(kernel, flush_threads, self.instructions, self.count, self.threads)

    def count_few(self, m: Mutator, function: Function) -> None:
        """Count a function with few counters, each weighted by all code whose count follows from it."""
        counting = m.counting(function)
        weights = counting.following.weights([len(stretch) for stretch in counting.stretches])
        for counted, weight in zip(counting.counters, weights, strict=True):
            if weight and counted.steps is not None:
                count_steps(m, counted.steps, self.begun, {self.count: weight % (1 << 64)})
            elif weight:
                m.at_counted(counted, add, self.count, weight % (1 << 64), into=self.count)

    def adding(self, m: Mutator, n: int) -> tuple[Any, ...]:
        """The hook that counts ``n`` instructions, and its arguments."""
        if self.per_wave and self.active_only:  # EXEC as an argument: LLVM takes it for granted that there is a lane
            return add_if_active, self.count, n, sgpr(EXEC, 2), (1 << m.program.isa.wave_size) - 1
        return add_lanes if self.active_only else add, self.count, n

    def report(self, launch: LaunchResult) -> dict[str, int]:
        instructions = launch[self.instructions]
        self.total += instructions
        return {"instructions": instructions, "total": self.total}

    def text(self, launch: LaunchResult, report: dict[str, int]) -> str:
        counts = f"kernel instructions {report['instructions']}, total instructions {report['total']}"
        return f"{self.headline(launch)}, {counts}"
