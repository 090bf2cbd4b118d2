"""Where instructions of a program come from in its source, as filters ask for it: lines, inlined functions, loops.

In: a program. Out: answers, computed at first use. Invariant: debug information is a hint; what has none
comes from nowhere, and that is no error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import PurePosixPath

from luthier_py.base.names import demangle
from luthier_py.base.records import dataclass
from luthier_py.program import analysis, ir

_INTERVAL = re.compile(r"(.+):(\d+)(?:-(\d+))?")
_NAME = re.compile(r"(?:.*?[\s:])?(\w+)(?:<.*>)?\(.*")  # of a demangled function, its result and scopes before it


@dataclass(frozen=True, slots=True)
class Interval:
    """Lines ``first`` to ``last`` of a file, both included."""

    file: str  # a path, or the last parts of one; * stands for anything in a part
    first: int
    last: int

    @classmethod
    def of(cls, text: str) -> Interval | None:
        """``kernel.hip:22-50`` or ``kernel.hip:22``; None where it is neither."""
        found = _INTERVAL.fullmatch(text)
        if found is None or not PurePosixPath(found[1]).parts or int(found[3] or found[2]) < int(found[2]):
            return None
        return cls(found[1], int(found[2]), int(found[3] or found[2]))

    def has(self, line: analysis.SourceLine) -> bool:
        """Whether a source line is in the interval."""
        return self.covers(analysis.LineRange(line.file, line.line, line.line))

    def covers(self, lines: analysis.LineRange) -> bool:
        """Whether all lines of a range are in the interval, and of a file that its path or pattern matches."""
        return self.first <= lines.first and lines.last <= self.last and PurePosixPath(lines.file).match(self.file)


class Sources:
    """Mutable: caches answers."""

    def __init__(self, program: ir.Program) -> None:
        self._program = program
        self._loops: dict[ir.Function, tuple[analysis.Loop, ...]] = {}
        self._depths: dict[ir.Function, dict[ir.Block, int]] = {}
        self._ranges: dict[ir.Function, Mapping[int, analysis.LineRange]] = {}
        self._at: dict[tuple[ir.Function, Interval], Sequence[analysis.Loop]] = {}

    @cached_property
    def lines(self) -> analysis.SourceLines:
        """The line table of the program's object."""
        return analysis.source_lines(self._program.obj)

    @cached_property
    def frames(self) -> analysis.Frames:
        """Which functions each instruction was inlined into, and at which lines, by the object's debug information."""
        return analysis.source_frames(self._program.obj)

    def loops(self, function: ir.Function) -> tuple[analysis.Loop, ...]:
        """The natural loops of a function, those inside of others too."""
        if function not in self._loops:
            self._loops[function] = analysis.loops_of(function)
        return self._loops[function]

    def depth(self, instr: ir.Instr) -> int:
        """How many loops an instruction is in."""
        function = self._program.function_of(instr)
        if function not in self._depths:
            loops = sorted(self.loops(function), key=lambda loop: loop.depth)
            self._depths[function] = {block: loop.depth for loop in loops for block in loop.blocks}
        return self._depths[function].get(function.block(instr.pc), 0)

    def range(self, instr: ir.Instr) -> analysis.LineRange | None:
        """The lines of its function that an instruction is between (program/analysis/line_range)."""
        function = self._program.function_of(instr)
        if function not in self._ranges:
            self._ranges[function] = analysis.line_ranges(function, self.frames)
        return self._ranges[function].get(instr.pc)

    def is_of(self, instr: ir.Instr, interval: Interval) -> bool:
        """Whether an instruction is of these lines, or was inlined from them, or is between some of them."""
        if any(map(interval.has, self.frames.lines_at(instr.pc))):
            return True
        between = self.range(instr)
        return between is not None and interval.covers(between)

    def names(self, instr: ir.Instr) -> frozenset[str]:
        """The names of the functions that an instruction is of: the one that its line is in, and those which it was
        inlined into; each as it is in the object, as C++ and without result, scopes and parameters."""
        found = [frame.function for frame in self.frames.at(instr.pc)] or [self._program.function_of(instr).name]
        return frozenset(spelling for name in found for spelling in spellings(name))

    def in_loop_of(self, instr: ir.Instr, interval: Interval) -> bool:
        """Whether an instruction is in one of the innermost loops that have code of a line."""
        function = self._program.function_of(instr)
        if (function, interval) not in self._at:
            self._at[function, interval] = self._loops_of(function, interval)
        block = function.block(instr.pc)
        return any(block in loop.blocks for loop in self._at[function, interval])

    def _loops_of(self, function: ir.Function, interval: Interval) -> Sequence[analysis.Loop]:
        blocks = {block for block in function.blocks
                  if any(interval.has(line) for instr in block.instrs for line in self.frames.lines_at(instr.pc))}
        found = [loop for loop in self.loops(function) if loop.blocks & blocks]
        around = {loop.parent for loop in found}
        return [loop for loop in found if loop not in around]


@cache
def spellings(symbol: str) -> tuple[str, ...]:
    """``_Z6squaref``, ``square(float)`` and ``square``."""
    full = demangle(symbol)
    name = _NAME.fullmatch(full)
    return (symbol, full, name[1]) if name else (symbol, full)
