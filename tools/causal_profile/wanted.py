"""When a wave's instructions would issue if they cost more: by the cycle model, as far as a program alone says it.

In: a function, and what the costs of each instruction are multiplied by. Out: for each instruction the cycles that are
to pass before it, beside those of its own. Invariant: no instruction issues sooner than it could by itself, so that
code that waits for these cycles never waits longer than for them.

A block begins with all results of the ALUs there; accesses go on over its borders. Of several ways into it one counts:
round a loop, where it begins one; else without a jump. An access takes what it takes with the best addresses there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from luthier_py.isa import Counter, OpFlag
from luthier_py.isa.encoding.waitcnt import waits_for
from luthier_py.isa.timing.costs import cost_of, least_access
from luthier_py.isa.timing.cycles import Pipe
from luthier_py.isa.timing.issue import IssueOrder
from luthier_py.program.analysis import edges_of, loops_of
from luthier_py.program.ir import Block, Function, Instr

ENDS = OpFlag.BRANCH | OpFlag.CALL | OpFlag.INDIRECT | OpFlag.END

Accesses = Mapping[Counter, tuple[int, ...]]
"""When those that are not there yet will be, oldest first, in cycles from here on; by counter."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Before an instruction, or behind it: ``held`` cycles for which ``pipe`` is busy, and ``idle`` ones."""

    instr: Instr
    behind: bool
    held: int
    pipe: Pipe | None
    idle: int


def delays(function: Function, weight: Callable[[Instr], int]) -> list[Delay]:
    """Delays of all instructions that are to be slower."""
    blocks, before = {block.address: block for block in function.blocks}, _usual(function)
    found: dict[int, list[Delay]] = {}
    leaving: dict[int, Accesses] = {}
    work = [*blocks]
    while work:
        address = work.pop(0)
        walk = _Walk(function, weight, leaving.get(before.get(address, -1), {}))
        found[address] = walk.block(blocks[address])
        if leaving.get(address) != (left := walk.leaving()):
            leaving[address] = left
            work += [other for other in blocks[address].successors if before[other] == address and other not in work]
    return [each for address in blocks for each in found[address]]


def _usual(function: Function) -> dict[int, int]:
    """By a block's address, the block from which control mostly comes into it."""
    found: dict[int, int] = {}
    for edge in edges_of(function):
        if not edge.taken or edge.target.address not in found:
            found[edge.target.address] = edge.source.address
    for loop in loops_of(function):
        found[loop.header.address] = loop.backs[-1].source.address
    return found


class _Walk:
    """One block (mutable: how far)."""

    def __init__(self, function: Function, weight: Callable[[Instr], int], accesses: Accesses) -> None:
        self._isa, self._weight = function.isa, weight
        self._order, self._base = IssueOrder(), 0
        self._accesses = {counter: list(there) for counter, there in accesses.items()}

    def block(self, block: Block) -> list[Delay]:
        found = [self._instr(instr) for instr in block.instrs]
        last, left = block.instrs[-1], self._order.settled - self._order.at
        self._order.at += left
        if left and not last.op.flags & ENDS:
            found.append(Delay(last, True, 0, None, left))
        elif left:
            found.append(Delay(last, False, 0, None, left))
        return [each for each in found if each.held or each.idle]

    def leaving(self) -> Accesses:
        now = self._base + self._order.at
        return {counter: tuple(each - now for each in there if each > now) for counter, there in self._accesses.items()}

    def _instr(self, instr: Instr) -> Delay:
        target, size, weight = self._isa.target, self._isa.wave_size, self._weight(instr)
        own = cost_of(target, instr.inst, size)
        before = self._order.at
        start = self._order.issue(instr.inst, own.times(weight))
        served, latency = least_access(target, instr.inst, size)
        for counter in (each for each in Counter if each & instr.op.counters):
            there = self._accesses.setdefault(counter, [])
            there.append(max([self._base + start + weight * (served + latency), *there[-1:]]))
        idle = start - before + self._waits(instr)
        return Delay(instr, False, own.held * (weight - 1), own.pipe, idle)

    def _waits(self, instr: Instr) -> int:
        """Cycles until all is there that the instruction waits for."""
        now, until = self._base + self._order.at, 0
        waits = waits_for(self._isa.target, instr.inst)
        for counter, count in waits.items():
            there = self._accesses.get(counter, [])
            done = there[: max(len(there) - count, 0)]
            until = max([until, *done[-1:]])
            self._accesses[counter] = there[len(done):]
        if not waits:
            return 0
        self._order.begin_here()
        self._base = max(now, until)
        return self._base - now
