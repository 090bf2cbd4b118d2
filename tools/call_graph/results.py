"""What counters say of calls and functions.

In: what each counter means, and their values. Out: the report. Invariant: instructions of all stacks together are those
of all functions, and those that ran; calls that cannot be distinguished are counted under "?".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from luthier_py.base.names import demangle
from luthier_py.program.analysis import Frames
from luthier_py.program.ir import Function, Program
from luthier_py.rewrite.tool import SUM, Amounts, Counting, Following, RowsBy, Variable
from luthier_py.tools.call_graph.contexts import Contexts

UNKNOWN = "?"
AMOUNTS: Amounts = {
    "calls": RowsBy(("caller", "callee", "pc"), {"count": SUM.of("calls by waves")}),
    "functions": RowsBy(("address",), {
        "calls": SUM.of("calls by waves"), "exclusive": SUM.of("executed instructions of its own"),
        "inclusive": SUM.of("executed instructions with those of what it calls")}),
    "stacks": RowsBy(("stack",), {"instructions": SUM.of("executed instructions")}),
}  # fmt: skip
Stack = tuple[str, ...]
"""Names of functions, the outermost first."""


@dataclass(frozen=True, slots=True)
class Site:
    """A call: its address, the functions around it, the number of its Stretch, and the addresses of the functions that
    it may reach, 0 for one that is not known."""

    pc: int
    around: Stack
    stretch: int
    targets: tuple[int, ...]
    indirect: bool


@dataclass(frozen=True, slots=True)
class Part:
    """One function. For each context it has a set of ``counters``, the first one of the first is ``first``."""

    address: int
    name: str
    first: int
    counters: int
    following: Following
    frames: tuple[Mapping[Stack, int], ...]
    """Of each Stretch: the functions around its instructions, and how many instructions these are."""
    sites: tuple[Site, ...]


@dataclass(frozen=True, slots=True)
class Parts:
    """What the counters of one program mean. ``apart``: whether contexts are counted separately."""

    parts: tuple[Part, ...]
    contexts: Contexts
    apart: bool
    counts: Variable


@dataclass(frozen=True, slots=True)
class Run:
    """What ran of a function in one context: the numbers of its Stretches, and how often it was entered."""

    part: Part
    context: int
    stack: tuple[tuple[int, int], ...]
    executions: tuple[int, ...]
    entered: int


def part_of(program: Program, function: Function, counting: Counting, first: int, frames: Frames) -> Part:
    name = demangle(function.name)
    noted = tuple(Counter(_stack(frames, name, instr.pc) for instr in s.instrs) for s in counting.stretches)
    numbers = {instr: number for number, s in enumerate(counting.stretches) for instr in s.instrs}
    sites = tuple(
        Site(site.instr.pc, _stack(frames, name, site.instr.pc), numbers[site.instr],
             (*(target.address for target in site.targets), *[0] * site.unknown), site.indirect)
        for site in program.calls(function) if site.instr in numbers)
    return Part(function.address, name, first, len(counting.counters), counting.following, noted, sites)


def _stack(frames: Frames, function: str, pc: int) -> Stack:
    """The function, and what is inlined into it there."""
    inlined = [demangle(frame.function) for frame in frames.at(pc)[:-1]]
    return (function, *reversed(inlined))


def result(notes: Parts, counts: Sequence[int]) -> dict[str, Any]:
    runs = [run for part in notes.parts for run in _runs(part, notes.contexts, counts)]
    names = {part.address: part.name for part in notes.parts}
    around = {site.pc: site.around for part in notes.parts for site in part.sites}
    own, inclusive, calls = Counter[int](), Counter[int](), Counter[int]()
    stacks = Counter[Stack]()
    for run in runs:
        base = tuple(name for _, pc in run.stack for name in around[pc])
        here = Counter[Stack]()
        for times, frames in zip(run.executions, run.part.frames, strict=True):
            for stack, n in frames.items():
                here[base + stack] += times * n
        stacks += here
        own[run.part.address] += here.total()
        calls[run.part.address] += run.entered
        for function in {run.part.address, *(function for function, _ in run.stack)}:
            inclusive[function] += here.total()
    functions = [{"function": names[each], "address": each, "calls": calls[each], "exclusive": own[each],
                  "inclusive": inclusive[each]} for each in sorted(own, key=lambda each: (-inclusive[each], each))]
    return {
        "functions": functions, "calls": [*_calls(notes, runs, names)], "apart": notes.apart,
        "stacks": [{"stack": list(stack), "instructions": n} for stack, n in stacks.most_common()],
    }


def _runs(part: Part, contexts: Contexts, counts: Sequence[int]) -> Iterator[Run]:
    for context in range(contexts.many[part.address]):
        first = part.first + context * part.counters
        own = counts[first : first + part.counters]
        executions = part.following.executions(own)
        if any(executions):
            stack = contexts.stack(part.address, context)
            yield Run(part, context, stack, executions, part.following.entered(own))


def _calls(notes: Parts, runs: Sequence[Run], names: Mapping[int, str]) -> Iterator[dict[str, Any]]:
    """By call and callee. A call that reaches one function reaches it each time; otherwise contexts of callees give the
    number, less the calls inside of their groups."""
    made, inside, reached = Counter[int](), Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for run in runs:
        for site in run.part.sites:
            made[site.pc] += run.executions[site.stretch]
            if len(site.targets) == 1 and site.targets[0] and site.pc not in notes.contexts.adds:
                inside[site.targets[0], run.context] += run.executions[site.stretch]
    unclear = {target for part in notes.parts for site in part.sites
               if len(site.targets) > 1 and site.pc not in notes.contexts.adds for target in site.targets}
    for run in runs:
        if run.stack and run.part.address not in unclear:
            reached[run.stack[-1][1], run.part.address] += run.entered - inside[run.part.address, run.context]
    for part in notes.parts:
        for site in part.sites:
            single = len(site.targets) == 1 and site.targets[0]
            found = {target: made[site.pc] if single else reached[site.pc, target] for target in site.targets if target}
            left = made[site.pc] - sum(found.values())
            for name, n in [*((names[target], n) for target, n in found.items()), (UNKNOWN, left)]:
                if n:
                    yield {"caller": part.name, "callee": name, "pc": site.pc, "count": n, "indirect": site.indirect}
