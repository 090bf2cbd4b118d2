"""What notebooks show of kernels, functions, blocks, programs and launches.

In: one of these, perhaps with what a tool reported of it. Out: HTML, and SVG where there is a drawing. Invariant: what
is shown does not depend on notebooks; `%load_ext luthier_py` registers these functions with IPython. Every text of a
program is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import singledispatch
from html import escape
from typing import Any

from luthier_py.base.errors import Invalid, printable, printable_lines
from luthier_py.base.records import dataclass
from luthier_py.binary.loader import CodeObject
from luthier_py.features.code.info import kernel_facts
from luthier_py.features.code.instrumented import collect_instrumented_facts
from luthier_py.features.run.launch import Done, Ran
from luthier_py.program.analysis import SourceLines, source_lines
from luthier_py.program.ir import Block, Function, Kernel, Program
from luthier_py.report.cfg import cfg_svg, flow_counts, kernel_functions
from luthier_py.report.html import notebook_table
from luthier_py.report.output import launch_row
from luthier_py.report.plain import Json
from luthier_py.rewrite.pipeline import Instrumented
from luthier_py.rewrite.tool import LaunchResult, as_data

MOST_ROWS = 100
_SCROLLED = '<div style="overflow:auto;max-height:640px">{}</div>'


@dataclass(frozen=True, slots=True)
class Shown:
    """By the names that IPython asks for."""

    html: str
    svg: str | None = None

    def _repr_html_(self) -> str:
        return self.html

    def _repr_svg_(self) -> str | None:
        return self.svg


def show(thing: Any, report: Any = None) -> Shown:
    """``thing`` as a notebook shows it. ``report``: of hot_blocks or branch_edges, or several, whose counts a drawing
    of control flow gets. Invalid for what there is no picture of."""
    return _render_thing(thing, report if isinstance(report, Sequence) else [report])


def load_ipython_extension(ipython: Any) -> None:
    """`%load_ext luthier_py`: a cell whose value is one of these shows it."""
    formatters = ipython.display_formatter.formatters
    for kind in _render_thing.registry.keys() - {object}:
        formatters["text/html"].for_type(kind, lambda thing: show(thing).html)
        formatters["image/svg+xml"].for_type(kind, lambda thing: show(thing).svg)


@singledispatch
def _render_thing(thing: Any, reports: Sequence[Any]) -> Shown:
    known = ", ".join(sorted(kind.__name__ for kind in _render_thing.registry.keys() - {object}))
    raise Invalid(f"there is no picture of a {type(thing).__name__}; there is one of {known}")


def _flow(functions: Sequence[Function], reports: Sequence[Any], lines: SourceLines | None = None) -> Shown:
    svg = cfg_svg(functions, flow_counts(map(_as_report, reports), functions), lines)
    return Shown(_SCROLLED.format(svg), svg)


def _as_report(report: Any) -> Any:
    return report.report if isinstance(report, Ran) else report


@_render_thing.register
def _of_kernel(kernel: Kernel, reports: Sequence[Any]) -> Shown:
    return _flow([kernel.function], reports)


@_render_thing.register
def _of_function(function: Function, reports: Sequence[Any]) -> Shown:
    return _flow([function], reports)


@_render_thing.register
def _of_block(block: Block, reports: Sequence[Any]) -> Shown:
    isa = block.code.distinct.isa
    rows = [{"pc": f"0x{instr.pc:x}", "instruction": printable(isa.text(instr.inst, instr.pc))}
            for instr in block.instrs]
    ways = ", ".join(f"0x{address:x}" for address in block.successors) or "nowhere"
    return Shown(notebook_table(f"block 0x{block.address:x}, then {ways}", rows))


@_render_thing.register
def _of_program(program: Program, reports: Sequence[Any]) -> Shown:
    blocks = {kernel.name: len(kernel.function.blocks) for kernel in program.kernels}
    return _of_kernels(program.obj, blocks)


@_render_thing.register
def _of_object(obj: CodeObject, reports: Sequence[Any]) -> Shown:
    return _of_kernels(obj)


def _of_kernels(obj: CodeObject, blocks: Mapping[str, int] | None = None) -> Shown:
    rows = [{**{name: value for name, value in kernel_facts(obj, kernel).items() if name not in ("entry", "arguments")},
             **({} if blocks is None else {"blocks": blocks[kernel.name]})}
            for kernel in obj.kernels if blocks is None or kernel.name in blocks]
    return Shown(notebook_table(f"{printable(obj.name)}, {obj.target.name}", rows[:MOST_ROWS]))


@_render_thing.register
def _of_copy(made: Instrumented, reports: Sequence[Any]) -> Shown:
    facts = collect_instrumented_facts(made, made.obj.name)
    rows = [{name: _change(value) for name, value in kernel.items()} for kernel in facts["kernels"]]
    refused = [{"name": row["kernel"], "refused": f"{row['reason']} [{row['where']}]"} for row in facts["refused"]]
    return Shown(notebook_table(f"{printable(made.obj.name)}, {facts['sites']} sites", [*rows, *refused][:MOST_ROWS]))


def _change(value: Any) -> Any:
    return " -> ".join(map(str, value)) if isinstance(value, (list, tuple)) else value


@_render_thing.register
def _of_launch(launch: LaunchResult, reports: Sequence[Any]) -> Shown:
    rows = [{**launch_row(launch), **{name: f"{len(data)} bytes" for name, data in launch.memory.items()}}]
    return Shown(notebook_table(f"launch {launch.index}", rows))


@_render_thing.register
def _of_run(ran: Ran, reports: Sequence[Any]) -> Shown:
    return _render_launch(ran, ran.text, ran.report)


@_render_thing.register
def _of_command(done: Done, reports: Sequence[Any]) -> Shown:
    verdict = "" if done.verdict is None else done.verdict.text()
    rows = done.tool.rows(done.ran.report) if done.tool is not None and done.ran.result is not None else None
    return _render_launch(done.ran, "\n".join(filter(None, [done.text, verdict])), rows)


def _render_launch(ran: Ran, text: str, report: Any) -> Shown:
    """What was said of a launch, rows of the report, and control flow where that has been counted."""
    html, svg = f"<pre>{escape(printable_lines(text))}</pre>", None
    data = as_data(report, "the report") if report is not None else []
    rows: list[Json] = [row for row in (data if isinstance(data, list) else [data]) if isinstance(row, dict)]
    if rows:
        html += _SCROLLED.format(notebook_table("report", rows[:MOST_ROWS]))
    if ran.result is not None and ran.result.program is not None:
        program = ran.result.program()
        functions = kernel_functions(program, program.kernel(ran.result.kernel))
        if counts := flow_counts([as_data(ran.report, "the report")], functions):
            svg = cfg_svg(functions, counts, source_lines(program.obj))
            html += _SCROLLED.format(svg)
    return Shown(html, svg)
