"""When a wave's instructions would issue if they cost more: by the cycle model, as far as a program alone says it.

In: a function, and what the costs of each instruction are multiplied by. Out: for each instruction the cycles that are
to pass before it, beside those of its own. Invariant: no instruction issues sooner than it could by itself, so that
who waits for these cycles never waits longer than for them.

A block begins with all results of the ALUs there; accesses go on over its borders, of several ways at the latest, and
into a loop as they do when it goes round. An access takes what it takes with the best addresses there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from luthier_py.analysis import loops_of
from luthier_py.ir import Block, Function, Instr
from luthier_py.isa import Counter, OpFlag
from luthier_py.isa.costs import cost_of, least_access
from luthier_py.isa.cycles import Pipe
from luthier_py.isa.issue import IssueOrder
from luthier_py.isa.waitcnt import waits_for

MOST = 64  # accesses that a counter tells apart
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
    """Of all instructions that are to be slower."""
    found: dict[int, list[Delay]] = {}
    arriving: dict[int, Accesses] = {block.address: {} for block in function.blocks}
    blocks, work = {block.address: block for block in function.blocks}, [block.address for block in function.blocks]
    into = {(edge.source.address, loop.header.address) for loop in loops_of(function) for edge in loop.entries}
    while work:
        block = blocks[work.pop(0)]
        walk = _Walk(function, weight, arriving[block.address])
        found[block.address] = walk.block(block)
        for successor in block.successors:
            if (block.address, successor) in into:
                continue
            joined = _latest(arriving[successor], walk.leaving())
            if joined != arriving[successor]:
                arriving[successor] = joined
                work += [successor] * (successor not in work)
    return [each for block in function.blocks for each in found[block.address]]


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
        found = {counter: tuple(max(each - now, 0) for each in there[-MOST:])
                 for counter, there in self._accesses.items()}
        return {counter: there for counter, there in found.items() if any(there)}

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


def _latest(one: Accesses, other: Accesses) -> Accesses:
    """What is on its way from either of two, the newest of both beside each other."""
    return {counter: _later(one.get(counter, ()), other.get(counter, ())) for counter in {*one, *other}}


def _later(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    size = max(len(one), len(other))
    return tuple(max(pair) for pair in zip(*((0,) * (size - len(each)) + tuple(each) for each in (one, other)),
                                           strict=True))
