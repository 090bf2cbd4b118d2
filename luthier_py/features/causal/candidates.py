"""What of a kernel may be made faster, one after the other: its source lines, blocks, loops or functions.

In: a program, how often instructions were executed, or filters. Out: Candidates, those first that a profile would have
first. Invariant: a candidate has executed instructions; each line, block and function has its own, while a loop has
those of the loops inside of it, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from luthier_py.base.names import demangle
from luthier_py.base.records import dataclass
from luthier_py.features.causal.report import NO_LINE
from luthier_py.isa.timing.costs import cost_of
from luthier_py.program.analysis import SourceLine, SourceLines, line_of_loop, loops_of, source_lines
from luthier_py.program.ir import Function, Instr, Program
from luthier_py.rewrite.tool.chosen.filters import compile_filter

Counts = Mapping[int, int] | None
"""Executions by address, None where they are unknown: then all code counts as executed once."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Code under test. ``share``: of the cycles for which executed instructions are issued, as a profile of hot spots
    has it. ``line``: where it is in the source, or begins."""

    name: str
    line: str | None
    pcs: tuple[int, ...]
    share: float

    def filter(self, program: Program) -> str:
        """The filter that chooses it, as tools take it."""
        every = sorted(instr.pc for function in program.functions for instr in function.instrs)
        chosen = {*self.pcs}
        runs = ([*run] for inside, run in groupby(every, chosen.__contains__) if inside)
        return " | ".join(f"pc = {run[0]:#x}..{run[-1]:#x}" for run in runs)


CONTROL = Candidate("nothing (control)", None, (), 0.0)
"""What delays of all code seem to save: a part of the time that they miss."""


Named = Iterator[tuple[str, SourceLine | None, Iterable[Instr]]]
"""Code with its name and its line; None: that of the first instruction that has one."""


def _lines(function: Function, lines: SourceLines) -> Named:
    for instr in function.instrs:
        line = lines.at(instr.pc)
        yield NO_LINE if line is None else str(line), line, (instr,)


def _blocks(function: Function, lines: SourceLines) -> Named:
    return ((f"block {block.address:#x}", None, block.instrs) for block in function.blocks)


def _loops(function: Function, lines: SourceLines) -> Named:
    for loop in loops_of(function):
        instrs = (instr for block in loop.blocks for instr in block.instrs)
        yield f"loop {loop.header.address:#x}", line_of_loop(loop, lines), instrs


def _functions(function: Function, lines: SourceLines) -> Named:
    yield demangle(function.name), None, function.instrs


KINDS: dict[str, Callable[[Function, SourceLines], Named]] = {
    "line": _lines, "block": _blocks, "loop": _loops, "function": _functions,
}
"""What candidates are, and the named instructions of each in a function."""


def candidates(program: Program, kind: str, counts: Counts) -> list[Candidate]:
    """All of a ``kind`` (a key of `KINDS`) that were executed, the largest share first."""
    found: defaultdict[str, list[Instr]] = defaultdict(list)
    lines, places = source_lines(program.obj), dict[str, SourceLine | None]()
    for function in program.functions:
        for name, line, instrs in KINDS[kind](function, lines):
            found[name] += instrs
            places[name] = line
    return _make_candidates(program, found, lines, places, counts)


def select_by_filters(program: Program, texts: Iterable[str], counts: Counts) -> list[Candidate]:
    """One for each filter."""
    instrs = [instr for function in program.functions for instr in function.instrs]
    found = {text: [*filter(compile_filter(text, program), instrs)] for text in texts}
    return _make_candidates(program, found, source_lines(program.obj), {}, counts)


def _make_candidates(
    program: Program, found: Mapping[str, Sequence[Instr]], lines: SourceLines,
    places: Mapping[str, SourceLine | None], counts: Counts,
) -> list[Candidate]:
    issued = {
        instr: _compute_issue_cycles(program, instr, counts)
        for function in program.functions
        for instr in function.instrs
    }
    whole = sum(issued.values())
    made = []
    for name, instrs in found.items():
        pcs = tuple(sorted(instr.pc for instr in instrs if issued[instr]))
        if pcs:
            share = sum(issued[instr] for instr in instrs) / whole
            line = places.get(name) or lines.first_at(pcs)
            made.append(Candidate(name, None if line is None else str(line), pcs, share))
    return sorted(made, key=lambda each: (-each.share, each.name))


def _compute_issue_cycles(program: Program, instr: Instr, counts: Counts) -> int:
    executed = 1 if counts is None else counts.get(instr.pc, 0)
    return executed and executed * cost_of(program.obj.target, instr.inst, program.isa.wave_size).held
