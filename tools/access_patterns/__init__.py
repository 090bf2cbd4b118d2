"""Predicts how lanes' addresses lie to each other at each global memory instruction, before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from luthier_py import LaunchResult, Mutator, Option, Tool
from luthier_py.analysis import source_lines
from luthier_py.errors import how_many
from luthier_py.ir import Instr
from luthier_py.isa import AccessKind, AddressForm, Reg
from luthier_py.isa.semantics.readers.numbers import Number
from luthier_py.report.columns import aligned

from .patterns import Pattern, Shape, lines_of, pattern_of


@dataclass(frozen=True, slots=True)
class Site:
    """A memory instruction. ``bytes``: of a lane, if that is known; ``address``: its low 32 bits, as far as known;
    ``whole``: surely run by all lanes that the wave started with."""

    pc: int
    text: str
    function: str
    source: str
    kind: AccessKind
    bytes: int | None
    address: Number | None
    whole: bool


@dataclass(frozen=True, slots=True)
class Sites:
    """By kernel."""

    of: dict[str, tuple[Site, ...]]
    wave_size: int


class AccessPatterns(Tool):
    """Strides between lanes at each global memory instruction, predicted: nothing is inserted, nothing measured."""

    name = "access_patterns"
    wants_arguments = True  # so that launches of kernels are reported in which nothing was inserted
    line_bytes = Option(128, choices=tuple(16 << shift for shift in range(9)), help="bytes of a cache line")

    def instrument(self, m: Mutator) -> Sites:
        lines, of = source_lines(m.program.obj), dict[str, tuple[Site, ...]]()
        for kernel in m.kernels:
            found = [(function, instr) for function in m.functions(kernel)
                     for instr in m.instrs(function, where="global")]
            of[kernel.name] = tuple(
                Site(instr.pc, m.program.isa.text(instr.inst), function.name, str(lines.at(instr.pc) or ""),
                     instr.memory.kind, instr.memory.total_bytes, address_of(m, instr),
                     m.facts.exec_as_at_start(instr))
                for function, instr in found if instr.memory is not None)
        return Sites(of, m.program.isa.wave_size)

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: Sites = launch.notes
        items = launch.block[0] * launch.block[1] * launch.block[2]
        lanes = min(notes.wave_size, items)
        rows = [self.row(site, launch.block, notes.wave_size, lanes) for site in notes.of.get(launch.kernel, ())]
        return {"line": self.line_bytes, "lanes": lanes, "instructions": rows,
                "predicted": sum(row["shape"] != Shape.UNKNOWN.value for row in rows)}

    def row(self, site: Site, block: tuple[int, int, int], wave_size: int, lanes: int) -> dict[str, Any]:
        size = site.bytes
        pattern = Pattern(Shape.UNKNOWN) if size is None else pattern_of(site.address, block, wave_size, size)
        lines = None if size is None else lines_of(pattern, size, self.line_bytes, lanes)
        least, most = lines or (None, None)
        known = pattern.shape is not Shape.UNKNOWN
        return {
            "pc": site.pc, "instruction": site.text, "function": site.function, "source": site.source,
            "kind": site.kind.name.lower(), "bytes": size, "shape": pattern.shape.value,
            "stride": pattern.stride if known else None, "row": pattern.row if known else None,
            "least_lines": least, "most_lines": most, "advice": advice(site, pattern, self.line_bytes, lines, lanes),
        }  # fmt: skip

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        rows = report["instructions"]
        head = (f"{self.headline(launch)}, {report['predicted']} of {how_many(len(rows), 'access pattern')} predicted; "
                f"{report['lanes']} lanes, lines of {report['line']} bytes")
        cells = [(_of_bytes(row), _pattern(row), _lines(row), f"{row['pc']:#x}", row["instruction"], row["source"])
                 for row in rows]
        table = aligned(("bytes", "pattern", "lines", "pc", "instruction", "source"), cells, left=5)
        told = [f"  {row['source'] or hex(row['pc'])}: {row['advice']}" for row in rows if row["advice"]]
        return "\n".join([head, table, *told])

    def rows(self, report: dict[str, Any]) -> list[dict[str, Any]]:
        return list(report["instructions"])

    def combined(self, reports: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
        """That of one, if work-groups of all have the same patterns."""
        return reports[0] if all(report == reports[0] for report in reports) else None


def address_of(m: Mutator, instr: Instr) -> Number | None:
    """Where it is a register's and what is the same in all lanes: what is known of the register's low 32 bits."""
    access = instr.memory
    if access is None or access.form not in (AddressForm.FAR, AddressForm.NEAR) or access.vector is None:
        return None
    reg = access.vector.reg
    return None if reg is None else m.facts.affine_before(instr, Reg(reg.file, reg.index))


def advice(site: Site, pattern: Pattern, line: int, lines: tuple[int, int] | None, lanes: int) -> str:
    """What may be done better, if anything."""
    if pattern.shape is Shape.BROADCAST and pattern.row >= lanes > 1:
        if site.kind is AccessKind.LOAD:
            return "all lanes load from one address: a scalar load would take no vector register"
        return "all lanes meet at one address: combine their values in the wave first" if site.whole else ""
    if pattern.shape is not Shape.STRIDED or lines is None or site.bytes is None:
        return ""
    fewest = -(-lanes * site.bytes // line)
    if lines[0] <= fewest:
        return ""
    stride = abs(pattern.stride)
    cure = ("let neighbouring lanes take neighbouring addresses: transpose the loops or the data, or stage through LDS"
            if stride >= line else "an array for each member of the structure, or staging through LDS, uses them whole")
    return (f"stride of {stride} bytes between lanes: each access touches {lines[0]} lines of {line} bytes where "
            f"{fewest} would do; {cure}")


def _of_bytes(row: dict[str, Any]) -> str:
    return "-" if row["bytes"] is None else str(row["bytes"])


def _pattern(row: dict[str, Any]) -> str:
    text = f"stride {row['stride']}" if row["shape"] == Shape.STRIDED.value else row["shape"]
    return text if row["row"] is None else f"{text}, {how_many(row['row'], 'lane')}"


def _lines(row: dict[str, Any]) -> str:
    least, most = row["least_lines"], row["most_lines"]
    return "-" if least is None else str(least) if least == most else f"{least} to {most}"
