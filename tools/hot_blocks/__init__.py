"""Reports which blocks execute the most instructions, their successors, and which run one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from luthier_py import COUNT_WARP_LEVEL, EXCLUDE_PRED_OFF, LaunchResult, Mutator, Option
from luthier_py.program.analysis import SourceLines, source_lines
from luthier_py.program.ir import Block, Program
from luthier_py.rewrite.tool import SAME, SUM, Amount, OfSeveral, RowsBy, Stretch, combined
from luthier_py.tools.hot_blocks.forms import dot
from luthier_py.tools.hot_blocks.traces import traces
from luthier_py.tools.opcode_histogram.blocks import BlockCounts, Parts


@dataclass(frozen=True, slots=True)
class Blocks:
    """What the counters of one program mean. ``regions``: of each block that is counted as a whole, the address of the
    first of those that run equally often."""

    counted: Parts
    program: Program
    regions: Mapping[int, int]
    lines: SourceLines
    by_line: Mapping[Stretch, Mapping[str, int]]
    """How many instructions are of each source line."""


class HotBlocks(BlockCounts):
    """Executions and instructions of each block, with its code and where control goes from it; and traces."""

    name = "hot_blocks"
    cacheable = True
    amounts = {
        "instructions": SUM.of("executed instructions"),
        "blocks": RowsBy(("pc",), {"executions": SUM.of("executions by waves"), "length": SAME.of("instructions"),
                                   "instructions": SUM.of("executed instructions")}),
        "lines": RowsBy(("source",), {"instructions": SUM.of("executed instructions")}),
        "ways": RowsBy(("from", "to"), {"executions": SUM}),
        "traces": Amount(OfSeveral.WORKED_OUT),
    }  # fmt: skip
    per_wave = COUNT_WARP_LEVEL.only(True)
    active_only = EXCLUDE_PRED_OFF.only(False)
    shown = Option(5, bounds=(0, 1000), help="blocks and traces that are printed, the blocks with their code")
    with_edges = True

    def note(self, stretch: Stretch) -> Stretch:
        return stretch

    def instrument(self, m: Mutator) -> Blocks:
        regions = {stretch.first.pc: region.stretches[0].first.pc for function in m.functions()
                   for region in m.regions(function) for stretch in region.stretches}
        lines, counted = source_lines(m.program.obj), self.counted_parts(m)
        by_line = {stretch: Counter(lines.text_at(instr.pc) or "" for instr in stretch.instrs)
                   for part in counted.parts for stretch in part.noted}
        return Blocks(counted, m.program, regions, lines, by_line)

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: Blocks = launch.notes
        counts = launch[notes.counted.executions]
        ran = {stretch: n for part in notes.counted.parts
               for stretch, n in zip(part.noted, part.executions(counts), strict=True)}
        executed = Counter[str]()
        for stretch, n in ran.items():
            executed.update({source: n * length for source, length in notes.by_line[stretch].items() if n})
        passed = Counter[tuple[int, int]]()
        for part in notes.counted.parts:
            for edge, n in zip(part.edges, part.taken(counts), strict=True):
                passed[edge.source.address, edge.target.address] += n
        rows = _hottest(_rows(notes, ran), "pc")
        return {
            "instructions": sum(row["instructions"] for row in rows), "blocks": rows,
            "lines": _hottest([{"source": source, "instructions": n} for source, n in executed.items()], "source"),
            "ways": [{"from": source, "to": target, "executions": n} for (source, target), n in passed.items()],
            "traces": _traces(rows, passed),
        }

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        total, lines = report["instructions"], [self.headline(launch)]
        for row in report["blocks"][: self.shown]:
            lines.append(f"  {row['instructions'] / max(total, 1):6.1%}  {row['executions']} x {row['length']} "
                         f"instructions, block {row['pc']:#x} of {self.selection.shown(row['function'])}, "
                         f"region {row['region']:#x}")
            lines += [f"          {line}" for line in _code(launch.notes, row["pc"])]
            lines += [f"          -> {way['to']:#x} {way['executions']} times"
                      for way in report["ways"] if way["from"] == row["pc"]]
        lines += [f"  {row['instructions'] / max(total, 1):6.1%}  {row['source'] or 'without a line'}"
                  for row in report["lines"][: self.shown]]
        for trace in report["traces"][: self.shown]:
            first, *others = trace["blocks"]
            ways = (f" {likely:.0%} {block:#x}" for likely, block in zip(trace["likely"], others, strict=True))
            lines.append(f"  trace {trace['instructions'] / max(total, 1):6.1%}  {first:#x}{''.join(ways)}")
        return "\n".join(lines)

    def combined(self, reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """What was likely in all launches together is no trace of one of them."""
        added = combined(self.amounts, reports)
        blocks = _hottest(added["blocks"], "pc")
        return {**added, "blocks": blocks, "lines": _hottest(added["lines"], "source"), "traces": _traces(blocks, {
            (way["from"], way["to"]): way["executions"] for way in added["ways"]})}

    def files(self, launch: LaunchResult, report: dict[str, Any]) -> Mapping[str, bytes]:
        return {**super().files(launch, report), f"{self.name}.dot": dot(report, self.selection.shown)}


def _hottest(rows: Iterable[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Rows with the most instructions first; ``name``: of what they are of."""
    return sorted(rows, key=lambda row: (-row["instructions"], row[name]))


def _traces(rows: Sequence[Mapping[str, Any]], passed: Mapping[tuple[int, int], int]) -> list[dict[str, Any]]:
    executions, instructions = ({row["pc"]: row[name] for row in rows} for name in ("executions", "instructions"))
    return [{"blocks": list(each.blocks), "likely": list(each.likely), "instructions": each.instructions}
            for each in traces(executions, instructions, passed)]


def _rows(notes: Blocks, ran: Mapping[Stretch, int]) -> Iterator[dict[str, Any]]:
    """By block: its runs together."""
    instructions, executions = Counter[Block](), dict[Block, int]()
    for stretch, n in ran.items():
        instructions[stretch.block] += n * len(stretch)
        executions.setdefault(stretch.block, n)
    for block, n in executions.items():
        yield {
            "function": notes.program.function_of(block.instrs[0]).name, "pc": block.address, "executions": n,
            "length": len(block.instrs), "instructions": instructions[block],
            "region": notes.regions.get(block.address, block.address),
            "lines": list(notes.lines.texts_at(instr.pc for instr in block.instrs)),
        }


def _code(notes: Blocks, address: int) -> Iterator[str]:
    """A block's instructions, with their source lines."""
    stretches = (stretch for part in notes.counted.parts for stretch in part.noted)
    for instr in next(s.block for s in stretches if s.block.address == address).instrs:
        text, line = notes.program.isa.text(instr.inst), notes.lines.at(instr.pc)
        yield f"{instr.pc:#x}  {text:48} {line or ''}".rstrip()
