"""What a tool must have counted: beside the emulator's own record of the same launch without the tool.

In: a tool's name and options, its report, the profile of the original. Out: what is wrong, or nothing. Invariant:
nothing here looks at a number that the tool or the engine made, but the report itself; and what was executed, and is
what the tool counts, is in the report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from luthier_py.emulator import LaunchProfile
from luthier_py.features.run.launch import Ran
from luthier_py.isa import Inst, OpFlag, Space, Target, memory_access
from luthier_py.isa.properties.side_effects import tends_caches

_TRACED = Space.GLOBAL | Space.LDS | Space.SCRATCH
Counted = Callable[[Any, LaunchProfile, Target], bool]


def _instructions(figure: Callable[[LaunchProfile], int]) -> Counted:
    return lambda report, profile, target: report["instructions"] == figure(profile)


def _total(figure: Callable[[Any], int]) -> Counted:
    """All wave instructions, wherever a report has them."""
    return lambda report, profile, target: figure(report) == profile.total


def _opcodes(figure: Callable[[LaunchProfile], Mapping[str, int]]) -> Counted:
    return lambda report, profile, target: report["opcodes"] == dict(figure(profile))


def _exact(report: Any, profile: LaunchProfile, target: Target) -> bool:
    """Exact or not, each is one; those that are not are told one by one."""
    free = report["free_instructions"]
    return (sum(report[kind] for kind in ("exact", "exact_but_nan", "free")) == profile.total
            and sum(row["executions"] for row in free) == report["free"]
            and all(row["executions"] == profile.counts.get(row["pc"], 0) for row in (*free, *report["decided"])))


def _executed(profile: LaunchProfile, asked: Callable[[int, Inst], bool]) -> Iterator[int]:
    """Where instructions of a kind were executed with an active lane."""
    return (pc for pc, inst in profile.insts.items() if profile.active.get(pc, 0) and asked(pc, inst))


def _splits(pc: int, inst: Inst) -> bool:
    """Whether control may go two ways from it."""
    return OpFlag.CONDITIONAL in inst.op.flags and inst.branch_target(pc) not in (None, pc + inst.size_bytes)


def _edges(report: Any, profile: LaunchProfile, target: Target) -> bool:
    """Both ways of a branch are there, and together are its executions."""
    ways = {(row["branch"], row["target"], row["taken"]) for row in report["edges"]}
    for pc in _executed(profile, _splits):
        inst = profile.insts[pc]
        if not ways >= {(pc, inst.branch_target(pc), True), (pc, pc + inst.size_bytes, False)}:
            return False
    counts: dict[int, int] = {}
    for row in report["edges"]:
        counts[row["branch"]] = counts.get(row["branch"], 0) + row["count"]
    return all(profile.counts.get(pc, 0) == count for pc, count in counts.items())


def _loops(report: Any, profile: LaunchProfile, target: Target) -> bool:
    """A loop's header runs once for each entry and each turn; each cycle has one."""
    headers = {row["header"] for row in report["loops"]}
    if any(headers.isdisjoint(cycle) for cycle in _cycles(profile)):
        return False
    return all(profile.counts.get(row["header"], 0) == row["entries"] + row["turns"] for row in report["loops"])


def _cycles(profile: LaunchProfile) -> Iterator[set[int]]:
    """Instructions around each branch that leads back to what leads to it, but for cycles that nothing leads into:
    functions begin with these, and nobody counts them."""
    after: dict[int, set[int]] = {pc: set() for pc in _executed(profile, lambda pc, inst: True)}
    before: dict[int, set[int]] = {pc: set() for pc in after}
    for pc, inst in ((pc, profile.insts[pc]) for pc in after):
        flags = inst.op.flags
        to = None if flags & OpFlag.CALL else inst.branch_target(pc)
        ends = flags & (OpFlag.END | OpFlag.INDIRECT) and not flags & OpFlag.CALL
        goes_on = to is None and not ends or flags & (OpFlag.CONDITIONAL | OpFlag.CALL)
        after[pc] = {way for way in (to, pc + inst.size_bytes if goes_on else None) if way in after}
        for way in after[pc]:
            before[way].add(pc)
    for pc in after:
        for to in (way for way in after[pc] if way <= pc):
            cycle = _reached(to, after) & _reached(pc, before)
            if cycle and any(before[each] - cycle for each in cycle):
                yield cycle


def _reached(start: int, ways: Mapping[int, set[int]]) -> set[int]:
    found, left = {start}, [start]
    while left:
        new = ways[left.pop()] - found
        found |= new
        left += new
    return found


def _sites(key: str, asked: Callable[[int, Inst], bool], rows: str = "instructions") -> Counted:
    """Executions with an active lane; an instruction that is not counted is named."""
    def right(report: Any, profile: LaunchProfile, target: Target) -> bool:
        found = {row["pc"] for row in (*report[rows], *report["left_out"])}
        named = found.issuperset(_executed(profile, asked))
        return named and all(row[key] == profile.active.get(row["pc"], 0) for row in report[rows])

    return right


def _trace(report: Any, profile: LaunchProfile, target: Target) -> bool:
    """A record for each address that an instruction has."""
    def expected(pc: int) -> int:
        found = memory_access(profile.insts[pc]) if pc in profile.insts else None
        return profile.active.get(pc, 0) * (len(found.offsets) if found is not None else 1)

    known = {row["pc"] for row in (*report["sites"], *report["left_out"])}
    if not known >= set(_executed(profile, lambda pc, inst: _touches(inst, _TRACED))):
        return False
    return all(row["accesses"] == expected(row["pc"]) for row in report["sites"])


def _fused(report: Any, profile: LaunchProfile, target: Target) -> bool:
    """A result for each lane, of all that are fused."""
    found = {row["pc"] for row in (*report["instructions"], *report["left_out"])}
    asked = _executed(profile, lambda pc, inst: inst.op.base in ("V_FMA_F32", "V_FMAC_F32", "V_PK_FMA_F32"))
    return found.issuperset(asked) and all(
        row["results"] == profile.lanes.get(row["pc"], 0) * (1 + ("v_pk_" in row["instruction"]))
        for row in report["instructions"])


def _stores(pc: int, inst: Inst) -> bool:
    return _touches(inst, Space.GLOBAL) and "_STORE_" in inst.op.base


TRUTHS: dict[str, Counted] = {
    "instr_count": _instructions(lambda profile: profile.total),
    "instr_count mode=instruction": _instructions(lambda profile: profile.total),
    "instr_count COUNT_WARP_LEVEL=0 EXCLUDE_PRED_OFF=1": _instructions(lambda profile: profile.total_lanes),
    "opcode_histogram": _opcodes(lambda profile: profile.opcodes()),
    "opcode_histogram COUNT_WARP_LEVEL=0 EXCLUDE_PRED_OFF=1": _opcodes(lambda profile: profile.lane_opcodes()),
    "exactness": _exact,
    "branch_edges": _edges,
    "loop_counts": _loops,
    "lds_bank_conflicts": _sites("accesses", lambda pc, inst: _touches(inst, Space.LDS)),
    "memory_divergence": _sites("executions", lambda pc, inst: _touches(inst, Space.GLOBAL)),
    "memory_locality": _sites("executions", lambda pc, inst: _touches(inst, Space.GLOBAL)),
    "mem_trace": _trace,
    "mem_printf": lambda report, profile, target: True,  # its lines are counted, below
    "compressibility": _sites("executions", _stores, "stores"),
    "fma_in_double": _fused,
    "record_reg_vals print_records=0 INSTR_END=64": lambda report, profile, target: report["records"] > 0,
    "wave_metrics": _total(lambda report: report["instructions"]),
    "hot_blocks": _total(lambda report: report["instructions"]),
    "branch_divergence": _total(lambda report: report["total"]["instructions"]),
    "roofline": _total(lambda report: report["total"]["instructions"]),
    "call_graph": _total(lambda report: sum(row["exclusive"] for row in report["functions"])),
    "path_profile": _total(lambda report: sum(row["instructions"] for row in report["paths"])),
    "mov_replace": lambda report, profile, target: True,  # it counts nothing: the buffers say whether it is right
}


def wrong(tool: str, ran: Ran, profile: LaunchProfile, target: Target) -> str:
    """What the tool got wrong, as far as it is known what it must count."""
    if tool in TRUTHS and not TRUTHS[tool](ran.report, profile, target):
        return "its counts are not the emulator's"
    if tool == "mem_printf":
        left = {row["pc"] for row in ran.report["left_out"]}
        lanes = sum(count for pc, count in profile.lanes.items()
                    if pc not in left and _touches(profile.insts[pc], Space.GLOBAL))
        lines = sum(count.received for count in ran.records.values())
        if lines != lanes:
            return f"it printed {lines} lines, and {lanes} lanes accessed memory"
    return ""


def _touches(inst: Inst, space: Space) -> bool:
    return bool(inst.op.spaces & space) and not tends_caches(inst.op)
