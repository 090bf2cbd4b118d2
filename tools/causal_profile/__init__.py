"""Makes chosen code faster in comparison: all other code is made slower, and the launch's time divided by how much.

Instructions under test cost ``own`` times what they cost, all others ``others`` times (docs/causal.md has why that
says what cheaper instructions are worth). Delays stand before instructions: vector and scalar operations that hold the
same unit and do nothing, and idle cycles for latencies and waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from luthier_py import LaunchResult, Mutator, Option, Tool, Variable, hook, ptr, u64
from luthier_py.base.errors import how_many
from luthier_py.intrinsics import atomic_max, atomic_min, clock
from luthier_py.isa import InstructionSet
from luthier_py.isa.timing.cycles import Pipe, Work, cycle_model
from luthier_py.rewrite.tool import Clock
from luthier_py.rewrite.tool.chosen.filters import compile_filter
from luthier_py.tools.causal_profile.wanted import Delay, delays

OUTSIDE = 1 << 20  # priority of what measures
NEVER = (1 << 64) - 1
MOST_STATES, MOST_SLEEPS, SLEEP_CYCLES = 16, 127, 64  # of s_nop; of s_sleep, and cycles of each
BUSY = {Pipe.VECTOR: (Work.VECTOR, "v_nop"), Pipe.SCALAR: (Work.SCALAR, "s_mov_b32 s0, 0")}
"""What holds a unit and does nothing; s0 becomes a free register where it is inserted."""


@hook(lanes="one")
def begin(first: ptr[u64]) -> None:
    atomic_min(first, clock())


@hook(lanes="one")
def end(last: ptr[u64]) -> None:
    atomic_max(last, clock())


@dataclass(frozen=True, slots=True)
class Slowed:
    """What was done to a program. ``own``, ``others``: what costs are multiplied by."""

    clock: Clock
    own: int
    others: int
    tested: int
    delays: int


class CausalProfile(Tool):
    """What the kernel would take if chosen code were faster: other code is slower, by delays."""

    name = "causal_profile"
    cacheable = True
    test = Option("", help="a filter: the code under test; empty: none, all code is slower, to see what delays miss")
    speedup = Option(50, bounds=(0, 95),
                     help="by how many percent the code under test is to be faster; 0: all runs as it is")
    look = Option(True, help="read the clock where waves begin and end; off where the device tells its cycles itself")

    first = Variable(u64, initial=NEVER)
    last = Variable(u64)

    def instrument(self, m: Mutator) -> Slowed:
        own, others = weights(self.speedup)
        passes = compile_filter(self.test, m.program) if self.test else lambda instr: False
        tested = {instr for function in m.functions() for instr in m.instrs(function) if passes(instr)}
        inserted = 0
        for function in m.functions() if others > 1 else ():
            for delay in delays(function, lambda instr: own if instr in tested else others):
                inserted += insert(m, delay)
        for kernel in m.kernels if self.look else ():
            m.at_entry(kernel, begin, self.first, priority=OUTSIDE)
            m.at_exit(kernel, end, self.last, priority=-OUTSIDE)
        return Slowed(Clock(m.program.obj.target.clock_bits), own, others, len(tested), inserted)

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: Slowed = launch.notes
        cycles = launch[self.last] - launch[self.first] if self.look and notes.clock.compares_waves else None
        return {"test": self.test, "own": notes.own, "others": notes.others, "tested": notes.tested,
                "delays": notes.delays, "cycles": cycles, "as_if": None if cycles is None else cycles / notes.others}

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        faster = how_many(report["tested"], "instruction")
        head = (f"{self.headline(launch)}: {faster} under test cost {report['own']}/{report['others']} of what they did"
                if report["tested"] else f"{self.headline(launch)}: {self.nothing_tested}")
        if report["cycles"] is None:
            return f"{head}; the clock of this target does not compare waves" if self.look else head
        as_if = f", as if {report['as_if']:g}" if report["tested"] else ""
        return f"{head}\n  {report['cycles']} cycles with {how_many(report['delays'], 'delay')}{as_if}"

    @property
    def nothing_tested(self) -> str:
        """Why nothing is said of faster code."""
        return (f"TEST={self.test} chooses no instruction of this kernel" if self.test else
                "nothing is under test: TEST=FILTER says what is to be faster")

    def unobserved(self, launch: LaunchResult) -> str:
        return "" if launch.notes.tested else self.nothing_tested

    def rows(self, report: dict[str, Any]) -> list[dict[str, Any]]:
        return [report]


def weights(speedup: int) -> tuple[int, int]:
    """What costs under test, and others, are multiplied by so that the former are lower by so many percent."""
    cost = Fraction(100 - speedup, 100)
    return cost.numerator, cost.denominator


def insert(m: Mutator, delay: Delay) -> bool:
    """Whether there was anything to insert."""
    text = listing(m.program.isa, delay)
    if text and delay.behind:
        m.insert(text, after=delay.instr)
    elif text:
        m.insert(text, before=delay.instr)
    return bool(text)


def listing(isa: InstructionSet, delay: Delay) -> str:
    """Instructions that take a delay's cycles."""
    model, lines, idle = cycle_model(isa.target), list[str](), delay.held
    if delay.pipe in BUSY:
        work, text = BUSY[delay.pipe]
        times, idle = divmod(delay.held, model.compute_timing(work, isa.wave_size)[0])
        lines += [text] * times
    sleeps, rest = divmod(idle + delay.idle, SLEEP_CYCLES)
    states = rest // model.step
    lines += [f"s_sleep {min(MOST_SLEEPS, sleeps - at)}" for at in range(0, sleeps, MOST_SLEEPS)]
    lines += [f"s_nop {min(MOST_STATES, states - at) - 1}" for at in range(0, states, MOST_STATES)]
    return "\n".join(lines)
