"""Finds waits that a program lacks, by its code alone, and counts how often the places were come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from luthier_py import LaunchResult, Mutator, Tool, Variable, hook, ptr, u64
from luthier_py.analysis import MissingWait, missing_waits, source_frames
from luthier_py.errors import how_many
from luthier_py.intrinsics import atomic_add


@dataclass(frozen=True, slots=True)
class Place:
    """An instruction with what it lacks, in words."""

    pc: int
    text: str
    line: str | None
    what: str


@dataclass(frozen=True, slots=True)
class Places:
    """Of one program. ``counts``: executions by waves, of each; first all waves of the launch."""

    places: tuple[Place, ...]
    unread: tuple[str, ...]
    counts: Variable


@hook(lanes="one")
def count(times: ptr[u64]) -> None:
    atomic_add(times, u64(1))


class WaitCheck(Tool):
    """Registers that are used before a wait for their load, and barriers before a wait for LDS, found in the code."""

    name = "waitcheck"
    finds = True

    def instrument(self, m: Mutator) -> Places:
        lines, isa = source_frames(m.program.obj), m.program.isa
        chosen = {instr for function in m.functions() for instr in m.instrs(function)}
        found = [each for each in missing_waits(m.program) if each.instr in chosen]
        counts = Variable(u64, len(found) + 1, name="WaitCheck.counts")
        for kernel in m.kernels:
            m.at_entry(kernel, count, counts[0])
        for number, each in enumerate(found):
            m.before(each.instr, count, counts[1 + number])
        places = []
        for each in found:
            places.append(Place(each.instr.pc, isa.text(each.instr.inst), lines.text_at(each.instr.pc),
                                lacking(each)))
        unread = tuple(function.name for function in m.functions() if function.incomplete)
        return Places(tuple(places), unread, counts)

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: Places = launch.notes
        waves, *times = launch[notes.counts]
        rows = [{"pc": place.pc, "instruction": place.text, "line": place.line, "what": place.what,
                 "executions": executions} for place, executions in zip(notes.places, times, strict=True)]
        return {"waves": waves, "missing": rows, "not_read": list(notes.unread)}

    def combined(self, reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
        same = zip(*(report["missing"] for report in reports), strict=True)
        rows = [{**each[0], "executions": sum(row["executions"] for row in each)} for each in same]
        return {**reports[0], "waves": sum(each["waves"] for each in reports), "missing": rows}

    def findings(self, report: dict[str, Any]) -> int:
        return len(report["missing"])

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        lines = [f"{self.headline(launch)}: {how_many(len(report['missing']), 'wait')} missing"]
        for row in report["missing"]:
            lines.append(f"  {row['pc']:#x} {row['instruction']}" + (f" [{row['line']}]" if row["line"] else ""))
            lines.append(f"    {row['what']}; {how_many(row['executions'], 'execution')} by waves")
        if report["not_read"]:
            lines.append(f"  not looked at, as they cannot be read: {', '.join(report['not_read'])}")
        return "\n".join(lines)

    def rows(self, report: dict[str, Any]) -> list[dict[str, Any]]:
        return list(report["missing"])


def lacking(missing: MissingWait) -> str:
    verbs = [f"{verb} {registers}" for verb, registers in (("reads", missing.reads), ("overwrites", missing.writes))
             if registers]
    parts = [f"{' and '.join(verbs)}, which a load is still to write"] if verbs else []
    parts += ["comes to a barrier while accesses to LDS are on their way"] if missing.lds else []
    return " and ".join(parts)
