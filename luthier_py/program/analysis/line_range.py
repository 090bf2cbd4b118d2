"""Between which lines of its function an instruction is, those included that compilers give no line.

In: a function, and the frames of its code object. Out: for each instruction a LineRange, where something is known.

A function's own line of an instruction is that of the outermost frame: what runs there, or where what runs there was
inlined from. It is known where it is of the function's own file, the file of the first one that debug information has.
Where it is known, the range is that line. Elsewhere (line 0: code that stands for several lines, or for none) the range
is from `low` to `high`, or from `high` to `low` where that is more; what is unknown of the two leaves the other alone:

    low(i) = min over predecessors p of (own line of p, where it is known, else low(p))
    high(i) = max over successors s of (own line of s, where it is known, else high(s))

Predecessors and successors are those in the function; a call's successor is what follows it. Both start as unknown
everywhere, and what is unknown is left out of min and max; then `low` only falls and `high` only rises, each among the
function's known lines, until nothing changes. So `low` is the least line that comes to an instruction on a way through
others without one, and `high` the greatest that such a way leads to, in whatever order that is worked out.

Invariant: debug information is a hint; without it there are no ranges, and that is no error.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from luthier_py.base.records import dataclass

if TYPE_CHECKING:
    from luthier_py.program.analysis.frames import Frames
    from luthier_py.program.analysis.lines import SourceLine
    from luthier_py.program.ir import Function

Lines = Sequence[int | None]
"""Of the instructions of a block."""


@dataclass(frozen=True, slots=True)
class LineRange:
    """Lines ``first`` to ``last``, both included."""

    file: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.file}:{self.first}" + (f"-{self.last}" if self.last != self.first else "")


def line_ranges(function: Function, frames: Frames) -> Mapping[int, LineRange]:
    """Ranges of lines by address."""
    own = {block.address: [_own(frames, instr.pc) for instr in block.instrs] for block in function.blocks}
    file = next((line.file for lines in own.values() for line in lines if line is not None), None)
    if file is None:
        return {}
    known = {address: [line.line if line and line.file == file else None for line in lines]
             for address, lines in own.items()}
    after = {block.address: block.successors for block in function.blocks}
    before: defaultdict[int, list[int]] = defaultdict(list)
    for address, targets in after.items():
        for target in targets:
            before[target].append(address)
    low = _propagate_lines(known, before, min)
    high = _propagate_lines({address: lines[::-1] for address, lines in known.items()}, after, max)
    found = {}
    for block in function.blocks:
        for instr, *ends in zip(block.instrs, low[block.address], high[block.address][::-1], strict=True):
            if sides := [end for end in ends if end is not None]:
                found[instr.pc] = LineRange(file, min(sides), max(sides))
    return found


def _own(frames: Frames, pc: int) -> SourceLine | None:
    around = frames.at(pc)
    return around[-1].line if around else frames.lines.at(pc)


def _propagate_lines(
    known: Mapping[int, Lines], coming: Mapping[int, Sequence[int]], choose: Callable[[Iterable[int]], int]
) -> dict[int, Lines]:
    """Lines of each block's instructions, in the direction in which ``known`` has them, with what is carried to those
    without one from blocks that control comes from."""
    arriving: dict[int, int | None] = dict.fromkeys(known)
    leaving = {address: next((line for line in reversed(lines) if line is not None), None)
               for address, lines in known.items()}
    through = {address for address, line in leaving.items() if line is None}  # they pass on what arrives
    changed = True
    while changed:
        changed = False
        for address in known:
            lines = [line for other in coming.get(address, ()) if (line := leaving[other]) is not None]
            arrived = choose(lines) if lines else None
            if arrived != arriving[address]:
                arriving[address], changed = arrived, True
                if address in through:
                    leaving[address] = arrived
    return {address: _fill_missing_lines(lines, arriving[address]) for address, lines in known.items()}


def _fill_missing_lines(lines: Lines, last: int | None) -> Lines:
    found = []
    for line in lines:
        last = last if line is None else line
        found.append(last)
    return found
