"""Finds waves of one work-group that come to other barriers than the rest, or end before these do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from luthier_py import (
    LaunchResult,
    LaunchVariable,
    Mutator,
    Tool,
    Variable,
    WaveVariable,
    active_lanes,
    hook,
    ptr,
    u32,
    u64,
)
from luthier_py.base.errors import how_many
from luthier_py.intrinsics import atomic_add
from luthier_py.isa.properties.barriers import BarrierPart, barrier_part, meets_elsewhere
from luthier_py.rewrite.tool import (
    FIRST,
    SUM,
    InstrPlace,
    InstrPlaces,
    Omission,
    RowsBy,
    left_out_lines,
    left_out_rows,
    place_text,
)


@hook(lanes="one")
def begin(lanes: u64) -> u64:
    return lanes


@hook(lanes="one")
def come(came: u32, path: u32, launched: u64, active: u64, counts: ptr[u64], number: u32) -> tuple[u32, u32]:
    atomic_add(counts, u64(1))
    if active != launched:
        atomic_add(counts + 1, u64(1))
    return came + 1, path * u32(0x9E3779B1) + number


@hook(lanes="one")
def leave(own: ptr[u32], came: u32, path: u32) -> None:
    own[0] = 1
    own[1] = came
    own[2] = path


@dataclass(frozen=True, slots=True)
class Barriers:
    """The work-group's own, of one program. ``counts``: of each how many waves came, and how many with lanes off."""

    barriers: tuple[InstrPlace, ...]
    left_out: tuple[Omission, ...]
    counts: Variable


class SyncCheck(Tool):
    """Barriers to which not all waves of a work-group come, or not all lanes of a wave."""

    name = "synccheck"
    cacheable = True
    finds = True
    amounts = {
        "barriers": RowsBy(("pc",), {"waves": SUM.of("that came"), "with_lanes_off": SUM.of("that came so")}),
        "workgroups": SUM.of("work-groups of which not all waves come to the same"), "first": FIRST,
    }  # fmt: skip
    ends = LaunchVariable(u32, "wave", 3)
    came = WaveVariable(u32)
    path = WaveVariable(u32)
    launched = WaveVariable(u64)

    def instrument(self, m: Mutator) -> Barriers:
        places = InstrPlaces(m.program, inlined=True)
        instrs = [instr for function in m.functions() for instr in function.instrs]
        found = [instr for instr in instrs if barrier_part(instr.inst) & BarrierPart.COMES]
        for instr in filter(lambda instr: meets_elsewhere(instr.inst), instrs):
            places.leave_out(instr, "it meets at a barrier with a name")
        counts = Variable(u64, 2 * len(found) + 2, name="SyncCheck.counts")
        for kernel in m.kernels if found else ():
            first = kernel.function.blocks[0].instrs[0]
            m.at_entry(kernel, begin, active_lanes(first), into=self.launched)
            m.at_exit(kernel, leave, self.ends.own, self.came, self.path)
        for number, instr in enumerate(found):
            m.before(instr, come, self.came, self.path, self.launched, active_lanes(instr), counts[2 * number],
                     number + 1, into=(self.came, self.path))
        return Barriers(tuple(map(places.of, found)), places.left_out, counts)

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: Barriers = launch.notes
        ends = launch[self.ends].reshape(launch.workgroups, -1, 3)
        differing = [found for group, rows in enumerate(ends) if (found := parted(group, rows)) is not None]
        counts = np.array(launch[notes.counts], np.uint64).reshape(-1, 2)
        barriers = [{**each.facts(), "waves": int(waves), "with_lanes_off": int(off)}
                    for each, (waves, off) in zip(notes.barriers, counts, strict=False)]
        return {"barriers": barriers, "workgroups": len(differing), "first": differing[0] if differing else None,
                "left_out": left_out_rows(notes.left_out)}

    def findings(self, report: dict[str, Any]) -> int:
        return sum(map(bool, [report["workgroups"], *(row["with_lanes_off"] for row in report["barriers"])]))

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        lines = [f"{self.headline(launch)}: {how_many(len(report['barriers']), 'barrier')}; in "
                 f"{how_many(report['workgroups'], 'work-group')} not all waves come to the same"]
        if (first := report["first"]) is not None:
            lines += [f"  work-group {first['workgroup']}: {how_many(ways['barriers'], 'barrier')} by wave "
                      f"{', '.join(map(str, ways['waves']))}" for ways in first["ways"]]
        for row in report["barriers"]:
            off = f", {row['with_lanes_off']} of them with lanes off" if row["with_lanes_off"] else ""
            lines.append(f"  {place_text(row)}: {how_many(row['waves'], 'wave')}{off}")
        return "\n".join([*lines, *left_out_lines(report["left_out"])])


def parted(group: int, ends: Any) -> dict[str, Any] | None:
    """How waves of a work-group went, where not all went alike. Waves that are not there, at the edge, have zeros."""
    ways: dict[tuple[int, int], list[int]] = {}
    for wave, (ended, came, path) in enumerate(ends.tolist()):
        if ended:
            ways.setdefault((came, path), []).append(wave)
    if len(ways) < 2:
        return None
    return {"workgroup": group, "ways": [{"barriers": came, "waves": waves} for (came, _), waves in ways.items()]}
