"""Counters of few blocks, from which the executions of all others follow.

In: a program, and what a tool notes of each Stretch of it (`note`). Out: Parts. Invariant: executions of a Stretch are
those of waves, or of threads, as the tool's options say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from luthier_py import (
    COUNT_WARP_LEVEL,
    EXCLUDE_PRED_OFF,
    EXEC,
    LaunchResult,
    Mutator,
    Tool,
    Variable,
    WaveVariable,
    sgpr,
    u32,
    u64,
)
from luthier_py.program.analysis import Edge
from luthier_py.program.ir import Function, Kernel
from luthier_py.rewrite.tool import Counted, Following, Stretch
from luthier_py.tools.instr_count.hooks import flush_threads, start
from luthier_py.tools.opcode_histogram.hooks import (
    add,
    count,
    count_if_active,
    count_lanes,
    flush_four,
    flush_marks,
    mark,
)

MARKS, NUMBERS = 2, 12  # wave variables at most


@dataclass(frozen=True, slots=True)
class Part:
    """What is noted of some Stretches. Their executions are counted one by one, or follow from counters."""

    noted: tuple[Any, ...]
    counters: tuple[int, ...]
    following: Following | None = None
    edges: tuple[Edge, ...] = ()

    def executions(self, counts: Sequence[int]) -> Sequence[int]:
        own = [counts[number] for number in self.counters]
        return own if self.following is None else self.following.executions(own)

    def taken(self, counts: Sequence[int]) -> Sequence[int]:
        """How often each edge was taken."""
        own = [counts[number] for number in self.counters]
        return () if self.following is None else self.following.taken(own)


@dataclass(frozen=True, slots=True)
class Parts:
    """What the counters of one program mean."""

    parts: tuple[Part, ...]
    executions: Variable

    def by_pc(self, launch: LaunchResult) -> Counter[int]:
        """How often each instruction ran, where `note` keeps addresses."""
        found, counts = Counter[int](), launch[self.executions]
        for part in self.parts:
            for number, pcs in zip(part.executions(counts), part.noted, strict=True):
                found.update(dict.fromkeys(pcs, int(number)))
        return found


def functions_of(m: Mutator, kernels: Iterable[Kernel]) -> Iterable[Function]:
    return dict.fromkeys(function for kernel in kernels for function in m.functions(kernel))


class BlockCounts(Tool):
    """Executions of each Stretch; a tool that is derived from this reports them."""

    per_wave = COUNT_WARP_LEVEL
    active_only = EXCLUDE_PRED_OFF
    with_edges: ClassVar[bool] = False  # whether ways between blocks are counted, too

    threads = WaveVariable(u32)  # that the wave was launched with

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        own = type(self).__name__
        self.marks = [WaveVariable(u64, f"{own}.ran{number}") for number in range(MARKS)]
        self.numbers = [WaveVariable(u64, f"{own}.count{number}") for number in range(NUMBERS)]

    def executions_of(self, counters: int) -> Variable:
        return Variable(u64, max(counters, 1), name=f"{type(self).__name__}.executions")

    def note(self, stretch: Stretch) -> Any:
        """What to note of a Stretch, for the report."""
        raise NotImplementedError

    def counted_parts(self, m: Mutator) -> Parts:
        if self.active_only:
            return self.count_stretches(m)
        if not self.per_wave:
            for kernel in m.kernels:
                m.at_entry(kernel, start, into=self.threads)
        components = [(kernels, [m.counting(f, edges=self.with_edges) for f in functions_of(m, kernels)])
                      for kernels in m.components()]
        executions = self.executions_of(sum(len(c.counters) for _, countings in components for c in countings))
        parts: list[Part] = []
        first = 0
        for kernels, countings in components:
            counters = [counted for counting in countings for counted in counting.counters]
            counters.sort(key=lambda counted: (counted.again, -counted.often))
            self.count_all(m, kernels, counters, executions, first)
            numbers = {counter: number for number, counter in enumerate(counters, first)}
            for counting in countings:
                own = tuple(numbers[counted] for counted in counting.counters)
                parts.append(Part(tuple(map(self.note, counting.stretches)), own, counting.following,
                                  counting.edges))
            first += len(counters)
        return Parts(tuple(parts), executions)

    def count_stretches(self, m: Mutator) -> Parts:
        """Count each range with one EXEC separately, as active lanes change."""
        counting = count_if_active if self.per_wave else count_lanes
        lanes = (1 << m.program.isa.wave_size) - 1
        stretches = [s for function in m.functions() for block in m.blocks(function) for s in m.stretches(block)]
        executions = self.executions_of(len(stretches))
        for number, stretch in enumerate(stretches):
            m.at_stretch(stretch, counting, executions[number], sgpr(EXEC, 2), lanes, anywhere=True)
        return Parts((Part(tuple(map(self.note, stretches)), tuple(range(len(stretches)))),), executions)

    def count_all(
        self, m: Mutator, kernels: Sequence[Kernel], counters: Sequence[Counted], executions: Variable, first: int
    ) -> None:
        """Where registers are free, what runs once in a wave is a bit in one, and what runs more often is added up in
        one, the most frequent first. The others are counted in memory at once."""
        threads: Any = 1 if self.per_wave else self.threads
        width, free = m.program.isa.wave_size, m.spare_scalars(kernels) // 2
        again = sum(counted.again for counted in counters)
        once = min(len(counters) - again, width * min(free, MARKS))
        kept = min(again, free - -(-once // width), NUMBERS) if once == len(counters) - again else 0
        for at, counter in enumerate(counters):
            if at < once:
                m.at_counted(counter, mark, self.marks[at // width], 1 << at % width, into=self.marks[at // width])
            elif at < once + kept:
                m.at_counted(counter, add, self.numbers[at - once], into=self.numbers[at - once])
            else:
                m.at_counted(counter, count, executions[first + at], threads)
        for kernel in kernels:
            for at in range(0, once, width):
                m.at_exit(kernel, flush_marks, executions[first + at], self.marks[at // width], threads)
            for at in range(0, kept, 4):
                some = self.numbers[at : min(at + 4, kept)]
                for number, one in enumerate(some if len(some) < 4 else ()):
                    m.at_exit(kernel, flush_threads, executions[first + once + at + number], one, threads)
                if len(some) == 4:
                    m.at_exit(kernel, flush_four, executions[first + once + at], *some, threads)
