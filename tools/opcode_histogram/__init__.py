"""Counts how often each opcode is executed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from luthier_py import LaunchResult, Mutator
from luthier_py.program.analysis import loops_of
from luthier_py.program.ir import Function
from luthier_py.rewrite.tool import SUM, CountsBy, RowsBy, Stretch
from luthier_py.tools.opcode_histogram.blocks import BlockCounts, Parts

from .page import files_of, parts_of


@dataclass(frozen=True, slots=True)
class LoopBlocks:
    """A loop, by the address of its header, with those of its blocks."""

    function: str
    header: int
    blocks: frozenset[int]


@dataclass(frozen=True, slots=True)
class Counts:
    """What of a program was counted, and its loops."""

    counted: Parts
    loops: tuple[LoopBlocks, ...]


class OpcodeHistogram(BlockCounts):
    """Executions of each opcode, from counters of few blocks: those of others follow."""

    name = "opcode_histogram"
    cacheable = True
    amounts = {
        "instructions": SUM.of("executed instructions"), "opcodes": CountsBy("executions", most_first=True),
        "kinds": CountsBy("executions by kind of instruction", most_first=True),
        "loops": RowsBy(("header",), {"instructions": SUM.of("executed instructions"),
                                      "kinds": CountsBy("executions by kind of instruction", most_first=True)}),
    }  # fmt: skip

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self.total = 0

    def note(self, stretch: Stretch) -> Any:
        """What to note of a Stretch, for the report."""
        opcodes = Counter(mnemonic for instr in stretch.instrs for mnemonic in instr.op.mnemonics)
        return stretch.block.address, opcodes, Counter(instr.kind.value for instr in stretch.instrs)

    def instrument(self, m: Mutator) -> Any:
        """Counts, here."""
        return Counts(self.counted_parts(m), _loops(m.functions()))

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        """A dual instruction is one, and of both its opcodes."""
        opcodes, notes = Counter[str](), launch.notes
        by_block: defaultdict[int, Counter[str]] = defaultdict(Counter)
        counts = launch[notes.counted.executions]
        for part in notes.counted.parts:
            for executions, (block, each, kinds) in zip(part.executions(counts), part.noted, strict=True):
                if executions:
                    opcodes.update({mnemonic: n * int(executions) for mnemonic, n in each.items()})
                    by_block[block].update({kind: n * int(executions) for kind, n in kinds.items()})
        kinds = sum(by_block.values(), Counter[str]())
        self.total += kinds.total()
        rows = [_row(loop, sum((by_block[block] for block in loop.blocks if block in by_block), Counter[str]()))
                for loop in notes.loops]
        return {"instructions": kinds.total(), "opcodes": dict(opcodes.most_common()),
                "kinds": dict(kinds.most_common()), "loops": [row for row in rows if row["instructions"]]}

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        head = f"{self.headline(launch)}, kernel instructions {report['instructions']}, total instructions {self.total}"
        lines = [f"  {name}: {', '.join(told)}" for name, told in parts_of(report)]
        return "\n".join([head, *lines, *(f"  {mnemonic} = {n}" for mnemonic, n in report["opcodes"].items())])

    def rows(self, report: Any) -> Sequence[Any]:
        """One, without what has rows itself."""
        return [{name: value for name, value in report.items() if name != "loops"}]

    def files(self, launch: LaunchResult, report: dict[str, Any]) -> Mapping[str, bytes]:
        return {**super().files(launch, report), **files_of(self, launch, report)}


def _loops(functions: Iterable[Function]) -> tuple[LoopBlocks, ...]:
    return tuple(LoopBlocks(function.name, loop.header.address, frozenset(block.address for block in loop.blocks))
                 for function in functions for loop in loops_of(function))


def _row(loop: LoopBlocks, kinds: Counter[str]) -> dict[str, Any]:
    return {"header": loop.header, "function": loop.function, "instructions": kinds.total(),
            "kinds": dict(kinds.most_common())}
