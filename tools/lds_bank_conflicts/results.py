"""From counters to a report: data, and a table for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from luthier_py import LaunchResult, Variable
from luthier_py.isa.timing.lds_banks import LdsAccess, bank_model
from luthier_py.program.analysis.lines import SourceLines
from luthier_py.program.ir import Function, Instr, Program
from luthier_py.report.columns import align_columns, idle_line
from luthier_py.rewrite.tool import MOST, SUM, Amounts, InstrPlace, Omission, RowsBy, left_out_lines, loop_of

Report = dict[str, Any]
SUMS: Amounts = {
    "accesses": SUM.of("executions with an active lane"), "cycles": SUM.of("LDS cycles"),
    "conflict_free_cycles": SUM.of("LDS cycles without conflicts"),
    "conflict_cycles": SUM.of("LDS cycles that conflicts cost"),
}  # fmt: skip
AMOUNTS: Amounts = {
    "launches": SUM, "total": SUMS,
    "instructions": RowsBy(("pc",), {**SUMS, "worst_way": MOST.of("cycles of one group of lanes")}),
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """One LDS instruction."""

    function: Function
    instr: Instr
    access: LdsAccess
    place: InstrPlace

    @property
    def low(self) -> int:
        """The offset's bits below a word; those of a pair are whole words."""
        return self.access.offsets_bytes[0] & 3


@dataclass(frozen=True, slots=True, eq=False)
class Sites:
    """What is counted in one program."""

    program: Program
    lines: SourceLines
    sites: tuple[Site, ...]
    counters: Variable
    turnout_rows: tuple[int, ...]
    """Of each site: the counter of executions with an active lane."""
    conflict_rows: tuple[int, ...]
    """And those of cycles beyond one for each group, and of how many the worst group had beyond its first."""
    left_out: tuple[Omission, ...]
    """Instructions that may touch LDS in ways that are not counted (flat, loads to LDS, appends)."""
    samples: Variable | None = None
    """Where accesses were written down."""

    def numbers(self, values: Sequence[int], site: int) -> dict[str, int]:
        """The numbers of the site with a number, by name."""
        accesses, conflicts = values[2 * self.turnout_rows[site]], 2 * self.conflict_rows[site]
        access = self.sites[site].access
        free = accesses * bank_model(self.program.obj.target).least(access, self.program.isa.wave_size)
        return {
            "accesses": accesses,
            "cycles": free + values[conflicts] * len(access.offsets_bytes),
            "conflict_free_cycles": free,
            "worst_way": values[conflicts + 1] + 1 if accesses else 0,
        }

    def reached(self, kernel: str) -> tuple[Function, ...]:
        """The functions that a kernel runs."""
        return self.program.reachable(self.program.kernel(kernel).function)


def report_of(launch: LaunchResult, worst_first: bool) -> Report:
    """JSON-ready."""
    counted: Sites = launch.notes
    program, reached = counted.program, counted.reached(launch.kernel)
    values, names = launch[counted.counters], {function.name for function in reached}
    rows = [
        _row(site, counted.numbers(values, number))
        for number, site in enumerate(counted.sites) if site.function in reached
    ]  # fmt: skip
    return {
        "target": program.obj.target.name,
        "bank_model": bank_model(program.obj.target).name,
        "launches": launch.launches,
        "total": {name: sum(row[name] for row in rows) for name in SUMS},
        "instructions": ordered(rows, worst_first),
        "left_out": [each.facts() for each in counted.left_out if each.place.function in names],
    }


def ordered(rows: list[Report], worst_first: bool) -> list[Report]:
    costs = ("conflict_cycles", "cycles") if worst_first else ()
    return sorted(rows, key=lambda row: (*(-row[name] for name in costs), row["pc"]))


def _row(site: Site, numbers: dict[str, int]) -> dict[str, Any]:
    return {
        **site.place.row(),
        "accesses": numbers["accesses"],
        "cycles": numbers["cycles"],
        "conflict_free_cycles": numbers["conflict_free_cycles"],
        "conflict_cycles": numbers["cycles"] - numbers["conflict_free_cycles"],
        "worst_way": numbers["worst_way"],
    }


def text_of(headline: str, report: Mapping[str, Any]) -> str:
    total = report["total"]
    lines = [
        f"{headline}, LDS accesses {total['accesses']}, "
        f"cycles {total['cycles']}, without conflicts {total['conflict_free_cycles']} "
        f"({report['target']}: banks of {report['bank_model']})"
    ]
    ran = [row for row in report["instructions"] if row["accesses"]]
    header = ("accesses", "cycles", "conflict-free", "conflicts", "worst", "pc", "loop", "instruction", "source")
    rows = [
        (
            row["accesses"], row["cycles"], row["conflict_free_cycles"], row["conflict_cycles"],
            f"{row['worst_way']}-way", f"{row['pc']:#x}", loop_of(row), row["instruction"], row["source"] or "",
        )
        for row in ran
    ]  # fmt: skip
    lines += [align_columns(header, rows, left=3), *idle_line(len(report["instructions"]) - len(ran))]
    return "\n".join([*lines, *left_out_lines(report["left_out"])])
