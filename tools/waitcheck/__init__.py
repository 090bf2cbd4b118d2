"""Finds waits that a program lacks, by its code alone, and counts how often the places were come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from luthier_py import LaunchResult, Mutator, Tool, Variable, hook, ptr, u64
from luthier_py.base.errors import how_many
from luthier_py.intrinsics import atomic_add
from luthier_py.program.analysis import MissingWait, missing_waits
from luthier_py.rewrite.tool import (
    SUM,
    InstrPlace,
    InstrPlaces,
    Omission,
    RowsBy,
    left_out_lines,
    left_out_rows,
    place_text,
)


@dataclass(frozen=True, slots=True)
class Places:
    """Of one program, with what each lacks in words. ``counts``: executions by waves, of each; first all waves of the
    launch."""

    places: tuple[tuple[InstrPlace, str], ...]
    left_out: tuple[Omission, ...]
    counts: Variable


@hook(lanes="one")
def count(times: ptr[u64]) -> None:
    atomic_add(times, u64(1))


class WaitCheck(Tool):
    """Registers that are used before a wait for their load, and barriers before a wait for LDS, found in the code."""

    name = "waitcheck"
    cacheable = True
    finds = True
    amounts = {"waves": SUM, "missing": RowsBy(("pc", "what"), {"executions": SUM.of("executions by waves")})}

    def instrument(self, m: Mutator) -> Places:
        places = InstrPlaces(m.program, inlined=True)
        chosen = {instr for function in m.functions() for instr in m.instrs(function)}
        found = [each for each in missing_waits(m.program) if each.instr in chosen]
        counts = Variable(u64, len(found) + 1, name="WaitCheck.counts")
        for kernel in m.kernels:
            m.at_entry(kernel, count, counts[0])
        for number, each in enumerate(found):
            m.before(each.instr, count, counts[1 + number])
        for function in (function for function in m.functions() if function.incomplete):
            places.leave_out(function, "it cannot be read")
        return Places(tuple((places.of(each.instr), lacking(each)) for each in found), places.left_out, counts)

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: Places = launch.notes
        waves, *times = launch[notes.counts]
        rows = [{**place.facts(), "what": what, "executions": executions}
                for (place, what), executions in zip(notes.places, times, strict=True)]
        return {"waves": waves, "missing": rows, "left_out": left_out_rows(notes.left_out)}

    def findings(self, report: dict[str, Any]) -> int:
        return len(report["missing"])

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        lines = [f"{self.headline(launch)}: {how_many(len(report['missing']), 'wait')} missing"]
        for row in report["missing"]:
            lines.append(f"  {place_text(row)}")
            lines.append(f"    {row['what']}; {how_many(row['executions'], 'execution')} by waves")
        return "\n".join([*lines, *left_out_lines(report["left_out"])])


def lacking(missing: MissingWait) -> str:
    verbs = [f"{verb} {registers}" for verb, registers in (("reads", missing.reads), ("overwrites", missing.writes))
             if registers]
    parts = [f"{' and '.join(verbs)}, which a load is still to write"] if verbs else []
    parts += ["comes to a barrier while accesses to LDS are on their way"] if missing.lds else []
    return " and ".join(parts)
