"""Code and source with numbers beside them, as tables of a page.

In: a function or a source file, and what is to stand beside its instructions or lines. Out: tables, whose rows of one
source line are shown together. Invariant: every instruction and every line is there, with numbers or without.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from luthier_py.base.errors import how_many
from luthier_py.base.names import demangle, shorten_name
from luthier_py.base.records import dataclass
from luthier_py.program.analysis import Loop, innermost_loops
from luthier_py.report.html import HtmlRow, HtmlTable

if TYPE_CHECKING:
    from luthier_py.program.analysis.lines import SourceLines
    from luthier_py.program.ir import Function
    from luthier_py.report.sources import SourceFile, SourceFolder


@dataclass(frozen=True, slots=True)
class Beside:
    """The columns beside an instruction or a line: a cell for each column, and its heat, from 0 to 1."""

    cells: tuple[str, ...]
    heat: float = 0.0


def build_listing(
    function: Function, lines: SourceLines, folder: SourceFolder, columns: tuple[str, ...],
    beside: Mapping[int, Beside],
) -> HtmlTable:
    """A function's disassembly, with its source lines and loops as headings; branches lead to where they go. It starts
    at the loop of the first of its hottest instructions, if these are the hottest of all."""
    rows, before, nothing = list[HtmlRow](), None, Beside(("",) * len(columns))
    here, loops, around = {instr.pc for instr in function.instrs}, innermost_loops(function), None
    start = next((instr for instr in function.instrs if beside.get(instr.pc, nothing).heat >= 1.0), None)
    for instr in function.instrs:
        loop = loops.get(function.block(instr.pc))
        if loop is not around:
            rows.append(_loop_heading(instr.pc, loop, around))
        around = loop
        source, numbers = lines.at(instr.pc), beside.get(instr.pc, nothing)
        if source is not None and source != before:
            rows.append(HtmlRow((f"{source}  {folder.source(source.file).line(source.line)}",), heading=True))
        before = source or before
        text, target = function.isa.text(instr.inst, instr.pc), instr.inst.branch_target(instr.pc)
        jump = f"pc{target:x}" if target in here else ""
        rows.append(HtmlRow((f"{instr.pc:#x}", *numbers.cells, text), numbers.heat, name=f"pc{instr.pc:x}", jump=jump,
                            line="" if source is None else str(source)))
    title = f"Disassembly of {shorten_name(demangle(function.name), function.name)}"
    hottest = None if start is None else loops.get(function.block(start.pc))
    name = "" if start is None else f"pc{start.pc:x}" if hottest is None else f"loop{hottest.header.address:x}"
    return HtmlTable(title, ("pc", *columns, "instruction"), tuple(rows), len(columns) + 1, start=name)


def _loop_heading(pc: int, loop: Loop | None, before: Loop | None) -> HtmlRow:
    """Where control comes to another loop, or out of one, as far as code lies in a row."""
    if loop is None:
        assert before is not None
        return HtmlRow((f"behind loop {before.header.address:#x}",), heading=True)
    name, count = f"{loop.header.address:#x}", sum(len(block.instrs) for block in loop.blocks)
    inside = "" if loop.parent is None else f", in loop {loop.parent.header.address:#x}"
    if loop.header.address != pc:
        return HtmlRow((f"loop {name}{inside}, more of it",), heading=True)
    text = f"loop {name}, {how_many(count, 'instruction')}{inside}"
    return HtmlRow((text,), heading=True, name=f"loop{loop.header.address:x}")


def source_table(
    file: str, source: SourceFile, columns: tuple[str, ...], beside: Mapping[int, Beside],
    between: Mapping[int, Sequence[HtmlRow]] | None = None,
) -> HtmlTable:
    """A source file with the columns beside its lines, by their numbers; ``between``: rows behind some of them."""
    rows, nothing = [], Beside(("",) * len(columns))
    for number, text in enumerate(source.lines, start=1):
        numbers = beside.get(number, nothing)
        rows.append(HtmlRow((str(number), *numbers.cells, text), numbers.heat, line=f"{file}:{number}"))
        rows += (between or {}).get(number, ())
    return HtmlTable(f"Source {file}", ("line", *columns, "text"), tuple(rows), len(columns) + 1)


def sort_by_annotated_lines(sources: Iterable[HtmlTable]) -> list[HtmlTable]:
    """Files of which most lines have numbers before others: a kernel before the headers that it includes."""
    return sorted(sources, key=lambda table: -sum(any(row.cells[1:-1]) for row in table.rows if not row.heading))
