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
    hook,
    ptr,
    sgpr,
    u32,
    u64,
)
from luthier_py.analysis import Steps
from luthier_py.intrinsics import active_mask, atomic_add, popcount
from luthier_py.ir import Function


class InstrCount(Tool):
    """Executed instructions of each launch."""

    name = "instr_count"
    aliases = ("instr_count_bb",)
    mode = Option(
        "block",
        choices=("block", "instruction"),
        help="count the blocks from which all others follow, or every instruction: same numbers",
    )
    per_wave = COUNT_WARP_LEVEL
    active_only = EXCLUDE_PRED_OFF
    per_launch = Option(True, help="0: one count for all launches of a kernel, which wait for nothing then")

    instructions = Variable(u64)
    count = WaveVariable(u64)
    threads = WaveVariable(u32)  # that the wave was launched with
    begun = WaveVariable(u32)  # what a loop's register held before it

    @hook
    def add(count: u64, n: u64) -> u64:
        return count + n

    @hook(fold=False)
    def begin(register: u32, one: u32) -> u32:
        """A product leaves SCC alone; a copy would be no code at all, which nobody could find again."""
        return register * one

    @hook
    def add_steps(count: u64, register: u32, begun: u32, down: u32, shift: u32, n: u64) -> u64:
        steps = begun - register if down != 0 else register - begun
        return count + u64(steps >> shift) * n

    @hook
    def add_if_active(count: u64, n: u64, exec: u64, lanes: u64) -> u64:
        return count + (n if exec & lanes != 0 else 0)

    @hook
    def add_lanes(count: u64, n: u64) -> u64:
        return count + popcount(active_mask()) * n

    @hook
    def start() -> u32:
        return popcount(active_mask())

    @hook(lanes="one")
    def flush(instructions: ptr[u64], count: u64) -> None:
        atomic_add(instructions, count)

    @hook(lanes="one")
    def flush_threads(instructions: ptr[u64], count: u64, threads: u32) -> None:
        atomic_add(instructions, count * threads)

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
                m.at_exit(kernel, self.flush, self.instructions, self.count)
            else:  # each thread of the wave executed what the wave did
                m.at_entry(kernel, self.start, into=self.threads)
                m.at_exit(kernel, self.flush_threads, self.instructions, self.count, self.threads)

    def count_few(self, m: Mutator, function: Function) -> None:
        """What is counted stands for all code that follows from it."""
        counting = m.counting(function)
        weights = counting.following.weights([len(stretch) for stretch in counting.stretches])
        for counted, weight in zip(counting.counters, weights, strict=True):
            if weight and counted.steps is not None:
                self.count_steps(m, counted.steps, weight % (1 << 64))
            elif weight:
                m.at_counted(counted, self.add, self.count, weight % (1 << 64), into=self.count)

    def count_steps(self, m: Mutator, steps: Steps, weight: int) -> None:
        """Nothing is done in the loop: its register says how often it ran. No other loop runs between the two places.
        """
        for end in steps.before:
            m.before(end, self.begin, steps.register, 1, into=self.begun)
        down, shift = int(steps.step < 0), abs(steps.step).bit_length() - 1
        m.before(steps.behind, self.add_steps, self.count, steps.register, self.begun, down, shift, weight,
                 into=self.count)

    def adding(self, m: Mutator, n: int) -> tuple[Any, ...]:
        """The hook that counts ``n`` instructions, and its arguments."""
        if self.per_wave and self.active_only:  # EXEC as an argument: LLVM takes it for granted that there is a lane
            return self.add_if_active, self.count, n, sgpr(EXEC, 2), (1 << m.program.isa.wave_size) - 1
        return self.add_lanes if self.active_only else self.add, self.count, n

    def report(self, launch: LaunchResult) -> dict[str, int]:
        instructions = launch[self.instructions]
        self.total += instructions
        return {"instructions": instructions, "total": self.total}

    def text(self, launch: LaunchResult, report: dict[str, int]) -> str:
        counts = f"kernel instructions {report['instructions']}, total instructions {report['total']}"
        return f"{self.headline(launch)}, {counts}"
