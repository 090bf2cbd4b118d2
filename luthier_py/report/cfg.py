"""Control flow as a picture: blocks with their code, the ways between them, loops, and counts where there are some.

In: functions, perhaps counts by address. Out: SVG, which needs no other program and loads nothing.
Invariant: every text of the program is escaped; each block and each edge is there once. Heat is a block's share of the
instructions that were executed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from math import hypot
from typing import TYPE_CHECKING, Any

from luthier_py.base.errors import how_many, printable
from luthier_py.base.names import demangle
from luthier_py.base.records import dataclass, field
from luthier_py.program.analysis import Edge, SourceLines, edges_of, loops_of, source_lines
from luthier_py.program.ir import Block, Function, Kernel, Program, lift
from luthier_py.report.layered import APART, Corner, GraphLayout, Size, lay_out_graph

if TYPE_CHECKING:
    from luthier_py.binary.loader import CodeObject

LINE, COLUMN, INSIDE, HEAD = 13.0, 6.7, 8.0, 20.0  # pixels: a line of code, a character, around code, a block's title
MOST_LINES, MOST_COLUMNS, ROUND = 14, 64, 5.0
LARGE = 150  # blocks, from which on a block shows FEW lines
FEW = 5
TITLE = 30.0
HOT, TAKEN, FALLS, BACK = "#f2540d", "#1a7f37", "#57606a", "#8250df"
_STYLE = (
    ".luthier-cfg text{font:11px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#1f2328;white-space:pre}"
    ".luthier-cfg .t{font-weight:bold}.luthier-cfg .n{fill:#57606a}.luthier-cfg path{fill:none;stroke-width:1.3}"
)


@dataclass(frozen=True, slots=True)
class FlowCounts:
    """``blocks``: executions by address; ``ways``: how often control went from block to block, by both addresses."""

    blocks: Mapping[int, int] = field(default_factory=dict)
    ways: Mapping[tuple[int, int], int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.blocks or self.ways)


def flow_counts(reports: Iterable[Any], functions: Iterable[Function]) -> FlowCounts:
    """Counts of all reports, as data, that have `blocks` and `ways`, as hot_blocks', or `edges`, as branch_edges',
    which are taken where there are no ways: of one launch both may be there."""
    branches = {block.instrs[-1].pc: block.address for function in functions for block in function.blocks}
    blocks, ways, sides = Counter[int](), Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for report in reports:
        for row in _rows(report, "blocks", "pc", "executions"):
            blocks[row["pc"]] += row["executions"]
        for row in _rows(report, "ways", "from", "to", "executions"):
            ways[row["from"], row["to"]] += row["executions"]
        for row in _rows(report, "edges", "branch", "target", "count"):
            if row["branch"] in branches:
                sides[branches[row["branch"]], row["target"]] += row["count"]
    return FlowCounts(blocks, ways or sides)


def has_flow(reports: Iterable[Any]) -> bool:
    """Whether some report has a table that ``flow_counts`` takes, though it may be empty."""
    return any(isinstance(report, Mapping) and not report.keys().isdisjoint(("blocks", "ways", "edges"))
               for report in reports)


def _rows(report: Any, name: str, *columns: str) -> Iterator[Mapping[str, int]]:
    rows = report.get(name) if isinstance(report, Mapping) else None
    for row in rows if isinstance(rows, Sequence) and not isinstance(rows, str) else ():
        if isinstance(row, Mapping) and all(isinstance(row.get(column), int) for column in columns):
            yield row


def kernel_svg(obj: CodeObject, name: str, reports: Iterable[Any] = ()) -> str:
    """A kernel of a code object with all that it may call; Invalid where there is none of this name."""
    program = lift(obj, [obj.kernel(name).name])
    functions = kernel_functions(program, program.kernel(name))
    return cfg_svg(functions, flow_counts(reports, functions), source_lines(obj))


def kernel_functions(program: Program, kernel: Kernel) -> list[Function]:
    """Its own, and those that it may call."""
    return [kernel.function, *(each for each in program.reachable(kernel.function) if each is not kernel.function)]


def cfg_svg(functions: Sequence[Function], counts: FlowCounts | None = None, lines: SourceLines | None = None) -> str:
    """The functions below each other."""
    drawings = [_Drawing(function, counts or FlowCounts(), lines) for function in functions if function.blocks]
    most = max((heat for each in drawings for heat in each.executed.values()), default=0)
    width, parts, y = 0.0, list[str](), 0.0
    for drawing in drawings:
        parts += [f'<g transform="translate(0 {y:.0f})">', *drawing.parts(most), "</g>"]
        y += drawing.height
        width = max(width, drawing.width)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" class="luthier-cfg" width="{width:.0f}" height="{y:.0f}" '
            f'viewBox="0 0 {width:.0f} {y:.0f}"><style>{_STYLE}</style>'
            f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>')


class _Drawing:
    """Of one function."""

    def __init__(self, function: Function, counts: FlowCounts, lines: SourceLines | None) -> None:
        self.function, self.counts, self.edges = function, counts, edges_of(function)
        loops = loops_of(function)
        self.loop_count = len(loops)
        self.loops = {block: loop for loop in sorted(loops, key=lambda loop: loop.depth) for block in loop.blocks}
        self.numbers = {block: number for number, block in enumerate(function.blocks)}
        first = {} if lines is None else {
            block: lines.first_at(instr.pc for instr in block.instrs) for block in function.blocks}
        self.sources = {block: str(first.get(block) or "").rpartition("/")[2] for block in function.blocks}
        self.codes = [list(_code(function, block, FEW if len(function.blocks) >= LARGE else MOST_LINES))
                      for block in function.blocks]
        self.executed = {block: counts.blocks[block.address] * len(block.instrs) for block in function.blocks
                         if block.address in counts.blocks}
        self.placed: GraphLayout = lay_out_graph(
            [self.size(block) for block in function.blocks],
            [(self.numbers[edge.source], self.numbers[edge.target]) for edge in self.edges],
            [self.numbers[function.block(address)] for address in function.entries])
        self.width = max(self.placed.size.width, 2 * APART + COLUMN * (len(self.title) + 2))
        self.height = self.placed.size.height + TITLE

    @property
    def title(self) -> str:
        kind = "kernel" if self.function.kernel else "function"
        return (f"{kind} {printable(demangle(self.function.name))}, {how_many(len(self.function.blocks), 'block')}, "
                f"{how_many(self.loop_count, 'loop')}")

    def size(self, block: Block) -> Size:
        code = self.codes[self.numbers[block]]
        wide = max(map(len, [*code, f"{self.head(block)}  {self.note(block)}"]))
        return Size(wide * COLUMN + 2 * INSIDE, HEAD + len(code) * LINE + INSIDE)

    def head(self, block: Block) -> str:
        loop = self.loops.get(block)
        inside = "" if loop is None else f"  loop{' header' * (loop.header is block)}, depth {loop.depth}"
        return f"0x{block.address:x}{inside}"

    def note(self, block: Block) -> str:
        times = self.counts.blocks.get(block.address)
        return "  ".join(filter(None, ["" if times is None else f"{times:,} times", self.sources[block]]))

    def parts(self, most: int) -> Iterator[str]:
        yield f'<text class="t" x="{APART}" y="20">{escape(self.title)}</text><g transform="translate(0 {TITLE:.0f})">'
        for number, edge in enumerate(self.edges):
            yield from self.way(edge, number)
        for block, corner in zip(self.function.blocks, self.placed.corners, strict=True):
            yield from self.box(block, corner, self.executed.get(block, 0) / most if most else 0.0)
        yield "</g>"

    def box(self, block: Block, corner: Corner, heat: float) -> Iterator[str]:
        (x, y), size, loop = corner, self.size(block), self.loops.get(block)
        place = f'x="{x:.1f}" y="{y:.1f}" width="{size.width:.1f}" height="{size.height:.1f}" rx="4"'
        yield f'<g><title>{escape(self.tip(block))}</title><rect {place} fill="#f6f8fa" stroke="#8c959f"/>'
        if heat:
            yield f'<rect {place} fill="{HOT}" fill-opacity="{0.08 + 0.52 * heat:.2f}"/>'
        if loop is not None:
            wide = min(2.5 * loop.depth, INSIDE - 1)
            yield f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{size.height:.1f}" rx="2" fill="{BACK}"/>'
        left, right = x + INSIDE, x + size.width - INSIDE
        yield f'<text class="t" x="{left:.1f}" y="{y + 14:.1f}">{escape(self.head(block))}</text>'
        if note := self.note(block):
            yield f'<text class="n" x="{right:.1f}" y="{y + 14:.1f}" text-anchor="end">{escape(note)}</text>'
        for number, line in enumerate(self.codes[self.numbers[block]]):
            yield f'<text x="{left:.1f}" y="{y + HEAD + 10 + number * LINE:.1f}">{escape(line)}</text>'
        yield "</g>"

    def tip(self, block: Block) -> str:
        return f"block 0x{block.address:x} to 0x{block.end:x}, {len(block.instrs)} instructions"

    def way(self, edge: Edge, number: int) -> Iterator[str]:
        *line, (x, y) = self.placed.lines[number]
        colour = BACK if number in self.placed.back else TAKEN if edge.splits and edge.taken else FALLS
        style = ' stroke-dasharray="4 3"' if edge.splits and not edge.taken else ""
        own = number not in self.placed.joined
        yield f'<path d="{_format_rounded_path([*line, (x, y - 5 * own)])}" stroke="{colour}"{style}/>'
        if own:
            yield f'<path d="M{x - 3.5:.1f} {y - 6.5:.1f}h7L{x:.1f} {y:.1f}Z" style="fill:{colour}"/>'
        times = self.counts.ways.get((edge.source.address, edge.target.address))
        if times is not None:
            yield f'<text class="n" x="{line[0][0] + 3:.1f}" y="{line[0][1] + 11:.1f}">{times:,}</text>'


def _code(function: Function, block: Block, most: int) -> Iterator[str]:
    """Its instructions, or the first ones and the last one."""
    cut = len(block.instrs) > most
    for instr in block.instrs[: most - 2] if cut else block.instrs:
        yield _short(function.isa.text(instr.inst, instr.pc))
    if cut:
        yield f"... {len(block.instrs) - most + 1} more"
        yield _short(function.isa.text(block.instrs[-1].inst, block.instrs[-1].pc))


def _short(text: str) -> str:
    text = printable(text)
    return text if len(text) <= MOST_COLUMNS else f"{text[: MOST_COLUMNS - 3]}..."


def _format_rounded_path(line: Sequence[Corner]) -> str:
    """A path with round corners."""
    points = [line[0], *(point for before, point in pairwise(line) if point != before)]
    words = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        start, end = _towards(corner, before), _towards(corner, after)
        words.append(f"L{start[0]:.1f} {start[1]:.1f}Q{corner[0]:.1f} {corner[1]:.1f} {end[0]:.1f} {end[1]:.1f}")
    words.append(f"L{points[-1][0]:.1f} {points[-1][1]:.1f}")
    return "".join(words)


def _towards(corner: Corner, other: Corner) -> Corner:
    """Where a corner's curve begins on the way to ``other``."""
    far = hypot(other[0] - corner[0], other[1] - corner[1])
    part = min(ROUND, far / 2) / far
    return corner[0] + (other[0] - corner[0]) * part, corner[1] + (other[1] - corner[1]) * part
