"""From counters to a report: data, and a table for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from luthier_py import LaunchResult
from luthier_py.analysis.lines import SourceLine
from luthier_py.ir import Function, Instr, Program
from luthier_py.isa import Space
from luthier_py.isa.lds_banks import LdsAccess, bank_model
from luthier_py.report.columns import aligned

COUNTERS = ("accesses", "cycles", "conflict_free_cycles", "worst_way")  # on the device, for each instruction


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """One LDS instruction."""

    function: Function
    instr: Instr
    access: LdsAccess
    source: SourceLine | None


def report_of(
    program: Program, reached: Sequence[Function], counts: Mapping[Site, Sequence[int]], worst_first: bool
) -> dict[str, Any]:
    """JSON-ready. ``accesses``: executions of the instruction with an active lane; ``worst_way``: most cycles that one
    group of lanes took."""
    rows = [_row(program, site, dict(zip(COUNTERS, numbers, strict=True))) for site, numbers in counts.items()]
    if worst_first:
        rows.sort(key=lambda row: (-row["conflict_cycles"], row["pc"]))
    totals = ("accesses", "cycles", "conflict_free_cycles", "conflict_cycles")
    return {
        "target": program.obj.target.name,
        "bank_model": bank_model(program.obj.target).name,
        "total": {name: sum(row[name] for row in rows) for name in totals},
        "instructions": rows,
        "not_counted": _not_counted(program, reached, {site.instr for site in counts}),
    }


def _row(program: Program, site: Site, numbers: dict[str, int]) -> dict[str, Any]:
    return {
        "pc": site.instr.pc,
        "function": site.function.name,
        "instruction": program.isa.text(site.instr.inst),
        "source": str(site.source) if site.source else None,
        "accesses": numbers["accesses"],
        "cycles": numbers["cycles"],
        "conflict_free_cycles": numbers["conflict_free_cycles"],
        "conflict_cycles": numbers["cycles"] - numbers["conflict_free_cycles"],
        "worst_way": numbers["worst_way"],
    }


def _not_counted(program: Program, reached: Sequence[Function], counted: set[Instr]) -> list[dict[str, Any]]:
    """Instructions that may touch LDS and are none of those that are counted (flat, loads to LDS, appends)."""
    return [
        {"pc": instr.pc, "function": function.name, "instruction": program.isa.text(instr.inst)}
        for function in reached
        for instr in function.instrs
        if instr.inst.op.spaces & Space.LDS and instr not in counted
    ]


def text_of(launch: LaunchResult, report: Mapping[str, Any]) -> str:
    total = report["total"]
    lines = [
        f"kernel {launch.index} - {launch.kernel} - #workgroups {launch.workgroups}, LDS accesses {total['accesses']}, "
        f"cycles {total['cycles']}, without conflicts {total['conflict_free_cycles']} "
        f"({report['target']}: banks of {report['bank_model']})"
    ]
    header = ("accesses", "cycles", "conflict-free", "conflicts", "worst", "pc", "instruction", "source")
    rows = [
        (
            row["accesses"], row["cycles"], row["conflict_free_cycles"], row["conflict_cycles"],
            f"{row['worst_way']}-way", f"{row['pc']:#x}", row["instruction"], row["source"] or "",
        )
        for row in report["instructions"]
    ]  # fmt: skip
    lines.append(aligned(header, rows, left=2))
    if report["not_counted"]:
        lines.append(f"not counted: {', '.join(sorted({row['instruction'] for row in report['not_counted']}))}")
    return "\n".join(lines)
