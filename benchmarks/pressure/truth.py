"""What a tool must have counted: beside the emulator's own record of the same launch without the tool.

In: a tool's name and options, its report, the profile of the original. Out: what is wrong, or nothing. Invariant:
nothing here looks at a number that the tool or the engine made, but the report itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from luthier_py.emulator import LaunchProfile
from luthier_py.isa import Inst, Space, Target, memory_access
from luthier_py.isa.quiet import tends_caches
from luthier_py.session.run import Ran

Counted = Callable[[Any, LaunchProfile, Target], bool]


def _instructions(figure: Callable[[LaunchProfile], int]) -> Counted:
    return lambda report, profile, target: report["instructions"] == figure(profile)


def _opcodes(figure: Callable[[LaunchProfile], Mapping[str, int]]) -> Counted:
    return lambda report, profile, target: report["opcodes"] == dict(figure(profile))


def _edges(report: Any, profile: LaunchProfile, target: Target) -> bool:
    """Both ways of a branch together are its executions."""
    counts: dict[int, int] = {}
    for row in report["edges"]:
        counts[row["branch"]] = counts.get(row["branch"], 0) + row["count"]
    return all(profile.counts.get(pc, 0) == count for pc, count in counts.items())


def _loops(report: Any, profile: LaunchProfile, target: Target) -> bool:
    """A loop's header runs once for each entry and each turn."""
    return all(profile.counts.get(row["header"], 0) == row["entries"] + row["turns"] for row in report["loops"])


def _sites(rows: str, key: str) -> Counted:
    """Executions with an active lane."""
    return lambda report, profile, target: all(
        row[key] == profile.active.get(row["pc"], 0) for row in report[rows])


def _trace(report: Any, profile: LaunchProfile, target: Target) -> bool:
    """A record for each address that an instruction has."""
    def expected(pc: int) -> int:
        found = memory_access(target, profile.insts[pc]) if pc in profile.insts else None
        return profile.active.get(pc, 0) * (len(found.offsets) if found is not None else 1)

    return all(row["accesses"] == expected(row["pc"]) for row in report["sites"])


TRUTHS: dict[str, Counted] = {
    "instr_count": _instructions(lambda profile: profile.total),
    "instr_count mode=instruction": _instructions(lambda profile: profile.total),
    "instr_count COUNT_WARP_LEVEL=0 EXCLUDE_PRED_OFF=1": _instructions(lambda profile: profile.total_lanes),
    "opcode_histogram": _opcodes(lambda profile: profile.opcodes()),
    "opcode_histogram COUNT_WARP_LEVEL=0 EXCLUDE_PRED_OFF=1": _opcodes(lambda profile: profile.lane_opcodes()),
    "branch_edges": _edges,
    "loop_counts": _loops,
    "lds_bank_conflicts": _sites("instructions", "accesses"),
    "memory_divergence": _sites("instructions", "executions"),
    "mem_trace": _trace,
    "mem_printf": lambda report, profile, target: True,  # its lines are counted, below
    "mov_replace": lambda report, profile, target: True,  # it counts nothing: the buffers say whether it is right
}


def wrong(tool: str, ran: Ran, profile: LaunchProfile, target: Target) -> str:
    """What the tool got wrong."""
    if not TRUTHS[tool](ran.report, profile, target):
        return "its counts are not the emulator's"
    if tool == "mem_printf":
        lanes = sum(count for pc, count in profile.lanes.items() if _shown(profile.insts[pc]))
        lines = sum(count.received for count in ran.records.values())
        if lines != lanes:
            return f"it printed {lines} lines, and {lanes} lanes accessed memory"
    return ""


def _shown(inst: Inst) -> bool:
    return bool(inst.op.spaces & Space.GLOBAL) and not tends_caches(inst.op)
