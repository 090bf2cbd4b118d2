"""Which of a program's instructions the user chose: INSTR_BEGIN, INSTR_END and INSTRUMENT.

In: a program and a Selection. Out: of each function the chosen ones, by their places in its code (``Instr.at``).
Invariant: places ascend; those without gaps are a range. What is chosen of code that runs as a whole or not at
all may have gaps, and runs as often.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from luthier_py.program import ir
from luthier_py.rewrite.tool.chosen.filters import compile_filter
from luthier_py.rewrite.tool.chosen.selection import Selection

if TYPE_CHECKING:
    from luthier_py.isa.columns import Columns


class Choice:
    """Mutable: caches answers, since a filter looks at each instruction of a function."""

    def __init__(self, program: ir.Program, selection: Selection) -> None:
        self._intervals = {f.code: selection.instructions(len(f.code)) for f in program.functions}
        self._program = program
        self._filtered: dict[Columns, Sequence[int]] = {}
        self._with: dict[ir.Function, bool] = {}
        self._passes = compile_filter(selection.instrument, program) if selection.instrument else None
        self._all = self._passes is None and all(map(_is_whole, self._intervals, self._intervals.values()))

    def runs_with(self, function: ir.Function) -> bool:
        """Whether an instruction is chosen of any kernel that may run ``function``."""
        if self._all:
            return True
        if function not in self._with:
            reached = (self._program.reachable(kernel.function) for kernel in self._program.kernels)
            around = {other for functions in reached if function in functions for other in functions}
            self._with[function] = any(self._select_instrs(other.code) for other in around)
        return self._with[function]

    def takes(self, instr: ir.Instr) -> bool:
        """Whether an instruction is chosen; what is of no function is not."""
        return bool(self.among(range(instr.at, instr.at + 1), instr.code))

    def takes_all(self, function: ir.Function) -> bool:
        """Whether every instruction of a function is chosen."""
        return self._all or len(self._select_instrs(function.code)) == len(function.code)

    def among(self, places: Sequence[int], code: Columns) -> Sequence[int]:
        """The chosen ones of ``places``; the very same object where all are."""
        if self._all:
            return places
        chosen = self._select_instrs(code)
        if not places or not chosen:
            return range(0)
        found = chosen[bisect_left(chosen, places[0]) : bisect_right(chosen, places[-1])]
        if not isinstance(places, range):
            found = tuple(sorted({*found}.intersection(places)))
        return places if len(found) == len(places) else found

    def _select_instrs(self, code: Columns) -> Sequence[int]:
        interval = self._intervals.get(code, range(0))
        if self._passes is None:
            return interval
        if code not in self._filtered:
            self._filtered[code] = tuple(at for at in interval if self._passes(ir.instr_at(code, at)))
        return self._filtered[code]


def _is_whole(code: Columns, interval: range) -> bool:
    return interval == range(len(code))
