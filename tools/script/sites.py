"""Where a probe is in a program: sites, and what is known of each when it is instrumented.

In: a Mutator, a probe's head. Out: sites. Invariant: each execution of what the head names is one of one site.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from luthier_py import Mutator, OpFlag
from luthier_py.program.analysis import SourceLine, line_of_loop, source_lines
from luthier_py.program.ir import Function, Instr, Kernel
from luthier_py.rewrite.tool import Clock, InstrPlace

PER_LANE = OpFlag.VALU | OpFlag.VMEM | OpFlag.LDS | OpFlag.GDS | OpFlag.EXPORT
UNKNOWN = "?"


@dataclass(frozen=True)
class Site:
    """``source``: its line. ``call``: records a hook with arguments there. ``instructions``: of a block or a part of
    it; ``by_line``: of a block, by lines. ``way``: of a branch. ``element`` and
    ``half``: which of an instruction's accesses, or of a dual one's opcodes, is meant, where each is looked at for
    itself."""

    instr: Instr
    function: Function
    kernels: Sequence[Kernel]
    source: SourceLine | None
    text: str
    clock: Clock
    shown: Callable[[Kernel | Function], str]
    call: Callable[..., None]
    instructions: int = 1
    by_line: Mapping[SourceLine | None, int] = field(default_factory=dict)
    way: str = ""
    element: int | None = None
    half: int | None = None

    @property
    def of_lanes(self) -> bool:
        """Whether what happens there happens in each lane, and not once for the wave."""
        return bool(self.instr.op.flags & PER_LANE)

    @property
    def anywhere(self) -> dict[str, bool]:
        """For calls that ask nothing of the place."""
        return {"anywhere": True} if self.by_line else {}

    @property
    def elements(self) -> Iterator[Site]:
        """One for each element that the instruction accesses."""
        memory = self.instr.memory
        return (replace(self, element=element) for element in range(1 if memory is None else len(memory.offsets)))

    @property
    def halves(self) -> Iterator[Site]:
        """One for each opcode: a dual instruction has two."""
        return (replace(self, half=half) for half in range(len(self.instr.op.mnemonics)))

    @property
    def opcode(self) -> str:
        names = self.instr.op.mnemonics
        return " :: ".join(names) if self.half is None else names[self.half]

    @property
    def parts(self) -> Iterator[Site]:
        """One for each source line that a block has instructions of."""
        return (replace(self, source=line, instructions=number) for line, number in self.by_line.items())

    @property
    def place(self) -> InstrPlace:
        return InstrPlace(self.instr.pc, self.text, self.function.name, str(self.source) if self.source else None)

    @property
    def line(self) -> int:
        return 0 if self.source is None else self.source.line

    @property
    def file(self) -> str:
        return UNKNOWN if self.source is None else PurePosixPath(self.source.file).name

    @cached_property
    def texts(self) -> dict[str, str]:
        """What is known before anything runs, as a key of a table."""
        return {
            "pc": f"0x{self.instr.pc:x}", "line": f"{self.file}:{self.line}" if self.line else UNKNOWN,
            "file": self.file, "function": self.shown(self.function), "opcode": self.opcode,
            "instruction": self.text, "kernel": " or ".join(map(self.shown, self.kernels)), "way": self.way,
        }  # fmt: skip


class Places:
    """Sites of one program."""

    def __init__(self, m: Mutator, shown: Callable[[str], str]) -> None:
        """``shown``: a kernel's or function's name, for people."""
        self.m, self.lines = m, source_lines(m.program.obj)
        self.clock = Clock(m.program.obj.target.clock_bits)
        self.shown = lambda what: shown(what.name)
        self.kernels: dict[Function, list[Kernel]] = {}
        for kernel in m.kernels:
            for function in m.functions(kernel):
                self.kernels.setdefault(function, []).append(kernel)

    def site(self, function: Function, instr: Instr, call: Callable[..., None], **more: Any) -> Site:
        text = self.m.program.isa.text(instr.inst)
        known = {"source": self.lines.at(instr.pc), **more}
        return Site(instr, function, self.kernels[function], text=text, clock=self.clock, shown=self.shown, call=call,
                    **known)

    def at(self, head: str, where: str, behind: bool) -> Iterator[Site]:
        """The sites of a probe; ``behind``: after its instructions."""
        elsewhere = {"launch": self.entry, "entry": self.entry, "exit": self.exit, "block": self.block,
                     "branch": self.branch, "loop": self.loop}
        return elsewhere[head]() if head in elsewhere else self.instructions(where, behind)

    def instructions(self, where: str, behind: bool) -> Iterator[Site]:
        record = self.m.after if behind else self.m.before
        for function in self.m.functions():
            for instr in self.m.instrs(function, where=where):
                yield self.site(function, instr, _at(record, instr))

    def entry(self) -> Iterator[Site]:
        for kernel in self.m.kernels:
            yield self.site(kernel.function, _first(kernel), _at(self.m.at_entry, kernel))

    def exit(self) -> Iterator[Site]:
        for kernel in self.m.kernels:
            yield self.site(kernel.function, _first(kernel), _at(self.m.at_exit, kernel))

    def block(self) -> Iterator[Site]:
        for function in self.m.functions():
            for block in self.m.blocks(function):
                call = _at(self.m.at_block, block)
                lines = [self.lines.at(instr.pc) for instr in block.instrs]
                first = next(filter(None, lines), None)
                yield self.site(function, block.instrs[0], call, source=first, instructions=len(lines),
                                by_line=Counter(lines))

    def branch(self) -> Iterator[Site]:
        for function in self.m.functions():
            for edge in self.m.edges(function):
                if edge.splits:
                    way = "taken" if edge.taken else "falls through"
                    yield self.site(function, edge.instr, _at(self.m.at_edge, edge), way=way)

    def loop(self) -> Iterator[Site]:
        for function in self.m.functions():
            for loop in self.m.loops(function):
                call = _at(self.m.at_back_edge, loop)
                yield self.site(function, loop.header.instrs[0], call, source=line_of_loop(loop, self.lines))


def _at(record: Callable[..., None], where: object) -> Callable[..., None]:
    return lambda *call, **more: record(where, *call, **more)


def _first(kernel: Kernel) -> Instr:
    """Where its waves begin."""
    return kernel.function.block(kernel.function.entries[0]).instrs[0]
