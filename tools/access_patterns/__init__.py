"""Predicts how lanes' addresses lie to each other at each global memory instruction, before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from luthier_py import LaunchResult, Mutator, Option, Tool
from luthier_py.base.errors import how_many
from luthier_py.isa import AccessKind, AddressForm, Reg
from luthier_py.isa.semantics.readers.numbers import Number, linear
from luthier_py.program.analysis import Definitions
from luthier_py.program.ir import Function, Instr
from luthier_py.report.columns import align_columns
from luthier_py.rewrite.tool import SAME, InstrPlace, InstrPlaces, RowsBy

from .gathers import loads_behind
from .patterns import Pattern, Shape, lines_of, pattern_of


@dataclass(frozen=True, slots=True)
class Site:
    """A memory instruction. ``bytes``: of a lane, if that is known; ``address``: its low 32 bits, as far as known;
    ``whole``: surely run by all lanes that the wave started with. ``loads``: of which an unknown address is made."""

    place: InstrPlace
    kind: AccessKind
    bytes: int | None
    address: Number | None
    whole: bool
    loads: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sites:
    """By kernel."""

    of: dict[str, tuple[Site, ...]]
    wave_size: int


class AccessPatterns(Tool):
    """Strides between lanes at each global memory instruction, predicted: nothing is inserted, nothing measured."""

    name = "access_patterns"
    cacheable = True
    amounts = {"line": SAME, "lanes": SAME, "predicted": SAME, "instructions": RowsBy(("pc",), dict.fromkeys(
        ("bytes", "stride", "row", "least_lines", "most_lines"), SAME))}
    reports_untouched = True
    line_bytes = Option(128, choices=tuple(16 << shift for shift in range(9)), help="bytes of a cache line")

    def instrument(self, m: Mutator) -> Sites:
        places, of = InstrPlaces(m.program), dict[str, tuple[Site, ...]]()
        for kernel in m.kernels:
            of[kernel.name] = tuple(site for function in m.functions(kernel) for site in sites_of(m, function, places))
        return Sites(of, m.program.isa.wave_size)

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: Sites = launch.notes
        lanes = min(notes.wave_size, launch.workitems)
        rows = [self.row(site, launch.block, notes.wave_size, lanes) for site in notes.of.get(launch.kernel, ())]
        return {"line": self.line_bytes, "lanes": lanes, "instructions": rows,
                "predicted": sum(row["stride"] is not None for row in rows)}

    def row(self, site: Site, block: tuple[int, int, int], wave_size: int, lanes: int) -> dict[str, Any]:
        size = site.bytes
        pattern = Pattern(Shape.UNKNOWN) if size is None else pattern_of(site.address, block, wave_size, size)
        lines = None if size is None else lines_of(pattern, size, self.line_bytes, lanes)
        least, most = lines or (None, None)
        if pattern.shape is Shape.UNKNOWN and site.loads:
            pattern = Pattern(Shape.GATHER)
        known = lines is not None
        return {
            **site.place.row(), "kind": site.kind.name.lower(), "bytes": size, "shape": pattern.shape.value,
            "stride": pattern.stride if known else None, "row": pattern.row if known else None,
            "made_of": list(site.loads), "least_lines": least, "most_lines": most,
            "advice": advice(site, pattern, self.line_bytes, lines, lanes),
        }  # fmt: skip

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        rows = report["instructions"]
        head = (f"{self.headline(launch)}, {report['predicted']} of {how_many(len(rows), 'access pattern')} predicted; "
                f"{report['lanes']} lanes, lines of {report['line']} bytes")
        cells = [(_of_bytes(row), _pattern(row), _lines(row), f"{row['pc']:#x}", row["instruction"], row["source"])
                 for row in rows]
        table = align_columns(("bytes", "pattern", "lines", "pc", "instruction", "source"), cells, left=5)
        told = [f"  {row['source'] or hex(row['pc'])}: {row['advice']}" for row in rows if row["advice"]]
        return "\n".join([head, table, *told])

    def combined(self, reports: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
        """That of one, if work-groups of all have the same patterns."""
        return reports[0] if all(report == reports[0] for report in reports) else None


def sites_of(m: Mutator, function: Function, places: InstrPlaces) -> Iterator[Site]:
    definitions = Definitions(function, m.facts, of_lane=True)
    for instr in m.instrs(function, where="global"):
        access = instr.memory
        if access is not None:
            address = address_of(m, instr)
            loads = () if address is not None else tuple(each.pc for each in loads_behind(instr, definitions))
            whole = m.facts.exec_as_at_start(instr)
            yield Site(places.of(instr), access.kind, access.total_bytes, address, whole, loads)


def address_of(m: Mutator, instr: Instr) -> Number | None:
    """Where it is a register's and what is the same in all lanes: what is known of the register's low 32 bits."""
    access = instr.memory
    if access is None or access.form not in (AddressForm.FAR, AddressForm.NEAR) or access.vector is None:
        return None
    reg = access.vector.reg
    found = None if reg is None else m.facts.affine_before(instr, Reg(reg.file, reg.index))
    if found is None or access.unit == 1:
        return found
    constant = None if found.constant is None else found.constant * access.unit
    return linear({what: factor * access.unit for what, factor in found.terms}, constant, 32)


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
    if row["made_of"]:
        return f"{text} by {', '.join(map(hex, row['made_of']))}"
    return text if row["row"] is None else f"{text}, {how_many(row['row'], 'lane')}"


def _lines(row: dict[str, Any]) -> str:
    least, most = row["least_lines"], row["most_lines"]
    return "-" if least is None else str(least) if least == most else f"{least} to {most}"
