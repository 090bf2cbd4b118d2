"""All of RandomTool's edits, and loops, records and prints, at random places.

In: a seed. Out: edits of one function. Invariant: as RandomTool's; ``recorded`` and ``said`` are the instructions at
which lanes push a record and print a line, by the number that is in it.
"""

from __future__ import annotations

from collections import Counter

from random_tool import RandomTool

from luthier_py import Channel, Mutator, channel, hook, sgpr, u32
from luthier_py.intrinsics import push
from luthier_py.isa import M0, VCC
from luthier_py.program.ir import Instr

PLACES = 3  # of each kind


class Site:
    """Where a lane was."""

    number: u32


class RandomEdits(RandomTool):
    """Hooks and edits of all kinds."""

    sites = Channel(Site)

    @hook
    def record(out: channel[Site], number: u32) -> None:
        push(out, number)

    @hook
    def say(number: u32) -> None:
        print("at", number)

    def __init__(self, seed: int, shown=()) -> None:
        super().__init__(seed, shown)
        self.recorded: list[Instr] = []
        self.said: list[Instr] = []
        self.received_of: Counter[int] = Counter()

    def instrument(self, m: Mutator) -> None:
        super().instrument(m)
        (function,) = m.functions()
        for loop in m.loops(function):
            if not loop.begins and self.rng.random() < 0.5:
                m.at_loop_entry(loop, self.tick, self.seen, into=self.seen)
                m.at_back_edge(loop, self.tick, self.seen, into=self.seen)
                m.at_loop_exit(loop, self.work, self.noise, sgpr(VCC, 2), sgpr(M0), into=self.noise)
                self.ticks.append(loop.header.instrs[0])
        instrs = list(function.instrs)
        for collected, called in ((self.recorded, self.record), (self.said, self.say)):
            for instr in self.rng.sample(instrs, min(self.rng.randrange(PLACES + 1), len(instrs))):
                out = (self.sites,) if called is self.record else ()
                m.before(instr, called, *out, len(collected))
                collected.append(instr)

    def received(self, channel, launch, records) -> None:
        self.received_of.update(records["number"].tolist())
