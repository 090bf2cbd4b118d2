"""A page for any tool whose report has rows with addresses: its tables, beside source and disassembly.

In: a tool, a launch, its report. Out: the page, or nothing where no row has an address. Invariant: a row is shown where
its instruction is; numbers of several rows of an instruction or a line are put together as everywhere (`tallies`).
What a report says of source lines itself (`lines`) is shown there alone: a row of it may be of several lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from luthier_py.base.errors import how_many
from luthier_py.program.analysis.lines import SourceLine, SourceLines, source_lines
from luthier_py.report.annotated import Beside, build_listing, sort_by_annotated_lines, source_table
from luthier_py.report.cfg import cfg_svg, flow_counts, kernel_functions
from luthier_py.report.html import SVG, HtmlRow, HtmlTable, Page, Picture
from luthier_py.report.plain import Json, flat, is_number
from luthier_py.report.sources import SourceFolder
from luthier_py.report.tallies import ADDRESSES, AddedUp, NumberName, numbers_of
from luthier_py.rewrite.tool import CountsBy, Declaration, LaunchResult, RowsBy, Tool, amount_at, as_data, declared_at

MOST_COLUMNS = 8
PLACES = ("pc", "branch", "header")  # where a row belongs
RowAtLine = tuple[SourceLine, Json, Declaration | None]
TEXTS = ("instruction", "function", "source", "line")  # shown as code, or as the place


def tool_page(tool: Tool, launch: LaunchResult, report: Any) -> Page | None:
    """None where no list of the report has an address in each row, or the launch comes without its program; ToolError
    where the report is no data."""
    data = as_data(report, f"the report of {tool.name}")
    lists = dict(_lists(data))
    if not lists or launch.program is None:
        return None
    program = launch.program()
    functions = program.reachable(program.kernel(launch.kernel).function)
    lines, folder = source_lines(program.obj), SourceFolder(tool.selection.sources)
    texts = {instr.pc: program.isa.text(instr.inst, instr.pc) for function in functions for instr in function.instrs}
    kinds = {name: None if tool.amounts is None else declared_at(tool.amounts, (name,)) for name in lists}
    rows = [(row, kinds[name]) for name, members in lists.items() for row in members if _address(row) in texts]
    names = sorted(dict.fromkeys(name for row, _ in rows for name in numbers_of(row)), key=_rank(kinds.values()))
    columns = tuple(names[:MOST_COLUMNS])
    by_pc = _put_together((_address(row), row, kind) for row, kind in rows)
    beside = _beside(by_pc, columns)
    placed = [*_collect_rows_by_line(tool, data)] or [
        (line, row, kind) for row, kind in rows if (line := _line(row, lines)) is not None]
    of_lines = tuple(sorted(dict.fromkeys(name for _, row, _ in placed for name in numbers_of(row)),
                            key=_rank(kind for _, _, kind in placed)))[:MOST_COLUMNS]
    files = sorted({line.file for line, _, _ in placed})
    sources = sort_by_annotated_lines(source_table(file, source, of_lines, _beside(_of_file(placed, file), of_lines))
                         for file in files if (source := folder.source(file)).lines)
    code = [build_listing(function, lines, folder, columns, beside) for function in functions]
    notes = [*folder.not_shown(files)]
    if left_out := names[MOST_COLUMNS:]:
        notes.append(f"Not shown, but in {tool.name}.json: {', '.join(left_out)}.")
    tables = [_table(name, members, texts, lines, kinds[name]) for name, members in lists.items()]
    shape = ("work-groups x work-items", f"{launch.grid} x {launch.block}")
    facts = (("target", program.obj.target.name), *([shape] if launch.launches == 1 else []),
             ("launches", str(launch.launches)), *_facts(data))
    title = f"{tool.name} of {tool.selection.short(launch.kernel)}"
    counts, drawn = flow_counts([data], functions), kernel_functions(program, program.kernel(launch.kernel))
    pictures = [Picture("control flow", cfg_svg(drawn, counts, lines).encode(), form=SVG)] if counts else []
    panes = [pane for pane in (sources, code) if pane]
    return Page(title, facts, tables, pictures, notes, panes, tool.selection.whole(launch.kernel))


def _lists(data: Any) -> Iterator[tuple[str, list[Json]]]:
    """Those of a report whose rows have addresses."""
    for name, value in (data if isinstance(data, Mapping) else {"rows": data}).items():
        rows = value if isinstance(value, list) else []
        if rows and all(isinstance(row, dict) and _address(row) is not None for row in rows):
            yield name, rows


def _rank(kinds: Iterable[Declaration | None]) -> Callable[[str], int]:
    """The order of columns, of which not all have room: parts of a number, as of a histogram, are last."""
    parts = {name for kind in kinds if isinstance(kind, RowsBy)
             for name, column in kind.columns.items() if isinstance(column, CountsBy)}
    return lambda name: 2 if name.partition(".")[0] in parts else int("." in name)


def _address(row: Mapping[str, Any]) -> int | None:
    return next((row[name] for name in PLACES if isinstance(row.get(name), int)), None)


def _facts(data: Any) -> Iterator[tuple[str, str]]:
    """The report's own numbers and texts."""
    for name, value in data.items() if isinstance(data, Mapping) else ():
        if isinstance(value, (int, float, str)):
            yield name.replace("_", " "), _text(value)


def _put_together(rows: Iterable[tuple[Any, Mapping[str, Any], Declaration | None]]) -> dict[Any, dict[str, float]]:
    """Numbers of rows by what they are of."""
    found: dict[Any, AddedUp] = {}
    for key, row, kind in rows:
        sums = found.setdefault(key, AddedUp())
        for name, value in numbers_of(row).items():
            amount = None if kind is None else amount_at(kind, ("0", *name.split(".")))
            sums.add(NumberName("", "", name), value, amount)
    return {key: {name.number: value for name, value in sums.result().items()} for key, sums in found.items()}


def _collect_rows_by_line(tool: Tool, data: Any) -> Iterator[RowAtLine]:
    """What a report has by source line, under ``lines``; ranges of lines are on none."""
    kind = None if tool.amounts is None else declared_at(tool.amounts, ("lines",))
    for row in data.get("lines", ()) if isinstance(data, Mapping) else ():
        if (line := _line_named(row["source"])) is not None:
            yield line, row, kind


def _line(row: Json, lines: SourceLines) -> SourceLine | None:
    """The line that a row names, or that of its address."""
    pc = _address(row)
    return _line_named(row.get("source")) or _line_named(None if pc is None else lines.text_at(pc))


def _line_named(text: object) -> SourceLine | None:
    file, _, line = text.rpartition(":") if isinstance(text, str) else ("", "", "")
    return SourceLine(file, int(line)) if line.isdecimal() else None


def _of_file(placed: Iterable[RowAtLine], file: str) -> dict[int, dict[str, float]]:
    return _put_together((line.line, row, kind) for line, row, kind in placed if line.file == file)


def _beside(numbers: Mapping[int, Mapping[str, float]], columns: Sequence[str]) -> dict[int, Beside]:
    """The first column is the heat."""
    most = max((row.get(columns[0], 0) for row in numbers.values()), default=0) if columns else 0
    return {key: Beside(tuple(map(_text, map(row.get, columns))), row.get(columns[0], 0) / most if most else 0.0)
            for key, row in numbers.items()}


def _table(name: str, rows: Sequence[Json], texts: Mapping[int, str], lines: SourceLines,
           kind: Declaration | None) -> HtmlTable:
    """As the report has it, without what never happened; the first column of numbers is the heat."""
    flattened = [flat(row) for row in rows if any(numbers_of(row).values())] or list(map(flat, rows))
    idle = len(rows) - len(flattened)
    found = dict.fromkeys(key for row in flattened for key in row)
    columns = [key for key in sorted(found, key=_rank([kind])) if key not in (*TEXTS, *PLACES)
               and any(row.get(key) not in (None, "") for row in flattened)
               and not any(isinstance(row.get(key), list) for row in flattened)]
    sourced = any(_line(row, lines) for row in flattened)
    columns = [key for key in columns if key != "loop" or not sourced][:MOST_COLUMNS]
    amounts = [key for key in columns if key not in ADDRESSES]
    hot = next((key for key in amounts if any(is_number(row.get(key)) for row in flattened)), "")
    most = max((row[hot] for row in flattened if is_number(row.get(hot))), default=0)
    made: list[HtmlRow] = []
    for row in flattened:
        pc = _address(row)
        assert pc is not None
        line = str(_line(row, lines) or "")
        heat = row[hot] / most if most and is_number(row.get(hot)) else 0.0
        cells = (f"{pc:#x}", *(_cell(key, row.get(key)) for key in columns), texts.get(pc, ""), *[line] * sourced)
        made.append(HtmlRow(cells, heat, link=f"pc{pc:x}" if pc in texts else "", line=line))
    note = f"Without {how_many(idle, 'row')} whose numbers are all 0; the data have them." if idle else ""
    return HtmlTable(name.replace("_", " "), ("pc", *columns, "instruction", *["source"] * sourced), tuple(made),
                     len(columns) + 1, note)


def _cell(column: str, value: Any) -> str:
    return f"{value:#x}" if column in ADDRESSES and isinstance(value, int) else _text(value)


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "", False: "no", True: "yes"}[value]
    return f"{value:.6g}" if isinstance(value, float) else str(value)
