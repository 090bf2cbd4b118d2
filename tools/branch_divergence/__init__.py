"""Counts how often the lanes of a wave disagree: at each conditional branch, and wherever else EXEC is narrowed.

On AMD's GPUs a wave has one program counter. A branch takes all of it or none, and lanes that disagree are turned off:
EXEC is narrowed (s_and_saveexec, v_cmpx ...), and a branch leads past code for which no lane is left. So a divergent
execution is one behind which EXEC has some of the lanes that took part, and not all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from luthier_py import (
    EXEC,
    VCC,
    LaunchResult,
    Mutator,
    OpFlag,
    RegSet,
    Tool,
    Variable,
    WaveVariable,
    device,
    hook,
    ptr,
    sgpr,
    taken_lanes,
    u32,
    u64,
)
from luthier_py.intrinsics import atomic_add, popcount
from luthier_py.isa import Inst
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.control import Branch
from luthier_py.isa.semantics.readers.lane_bits import assignments, outcome
from luthier_py.program.analysis import line_order, source_lines
from luthier_py.program.ir import Block, Instr
from luthier_py.report.columns import align_columns, percent
from luthier_py.rewrite.tool import (
    SAME,
    SUM,
    InstrPlace,
    InstrPlaces,
    Omission,
    RowsBy,
    left_out_lines,
    left_out_rows,
    worked_out,
)

LANES = sgpr(EXEC, 2)
WAYS = ("none", "some", "all")  # of the lanes that take part go on: executions
NUMBERS = (*WAYS, "before", "after")  # lanes that take part, and those that go on: sums over executions
EXECUTED = ("executions", "lanes")


@dataclass(frozen=True, slots=True)
class Site:
    """Where lanes may part."""

    condition: str
    """Of a branch: exec, vcc or scc; "" of what only turns lanes off."""
    instr: Instr
    """The branch, or what turns lanes off."""
    narrows: Instr | None
    """What wrote EXEC last in the same block, where that decides."""


@dataclass(frozen=True, slots=True)
class Noted:
    """``places``: of sites, with their conditions. ``by_line``: of each range with the same lanes its instructions by
    source line."""

    places: tuple[tuple[InstrPlace, str], ...]
    parted: Variable
    by_line: tuple[tuple[tuple[str, int], ...], ...]
    executed: Variable
    left_out: tuple[Omission, ...]
    wave_size: int


@device
def count(row: ptr[u64], before: u64, after: u64) -> None:
    way = u32(1)
    if after == 0:
        way = 0
    elif after == before:
        way = 2
    atomic_add(row + way, u64(1))
    atomic_add(row + 3, u64(popcount(before)))
    atomic_add(row + 4, u64(popcount(after)))


@hook(fold=False)
def remember(exec: u64, nothing: u64) -> u64:
    return exec | nothing  # a copy alone would compile to no code


@hook(lanes="one")
def count_narrowed(row: ptr[u64], before: u64, exec: u64, lanes: u64) -> None:
    """Where those go on that were not active before (an `else`), both take part."""
    count(row, (before | exec) & lanes, exec & lanes)


@hook(lanes="one")
def count_chosen(row: ptr[u64], exec: u64, condition: u64, lanes: u64) -> None:
    count(row, exec & lanes, condition & exec & lanes)


@hook(lanes="one")
def execute(row: ptr[u64], exec: u64, lanes: u64) -> None:
    atomic_add(row, u64(1))
    atomic_add(row + 1, u64(popcount(exec & lanes)))


class BranchDivergence(Tool):
    """How often lanes of a wave disagree at each branch, and how many lanes take part by source line."""

    name = "branch_divergence"
    cacheable = True
    amounts = {
        "wave_size": SAME,
        "total": {"executions": SUM.of("branches by waves"), "divergent": SUM.of("of these, where lanes part"),
                  "instructions": SUM.of("executed instructions"), "lanes": SUM.of("lanes that execute"),
                  "activity": worked_out(lambda row, report: activity(row["instructions"], row["lanes"], report),
                                         "active part of all lanes", more_is_better=True)},
        "branches": RowsBy(("pc", "condition"), {name: SUM for name in (*NUMBERS, "executions", "divergent")}),
        "lines": RowsBy(("source",), {
            "executions": SUM.of("executed instructions"), "lanes": SUM.of("lanes that execute"),
            "activity": worked_out(lambda row, report: activity(row["executions"], row["lanes"], report),
                                   "active part of all lanes", more_is_better=True)}, ascending=True),
    }  # fmt: skip

    taking_part = WaveVariable(u64)  # EXEC before it was narrowed last

    def instrument(self, m: Mutator) -> Noted:
        isa, lines = m.program.isa, source_lines(m.program.obj)
        blocks = [(function, block) for function in m.functions() for block in m.blocks(function)]
        found = [site for _, block in blocks for site in sites_of(block, isa.wave_size)]
        sites = [site for site in found if site.condition != "exec" or site.narrows is not None]
        parted = Variable(u64, max(len(sites), 1) * len(NUMBERS), name="BranchDivergence.parted")
        everyone = (1 << isa.wave_size) - 1
        for number, site in enumerate(sites):
            self.observe(m, site, parted[number * len(NUMBERS)], everyone)
        stretches = [stretch for _, block in blocks for stretch in m.stretches(block)]
        executed = Variable(u64, max(len(stretches), 1) * len(EXECUTED), name="BranchDivergence.executed")
        for number, stretch in enumerate(stretches):
            m.at_stretch(stretch, execute, executed[number * len(EXECUTED)], LANES, everyone, anywhere=True)
        places = InstrPlaces(m.program)
        for site in found:
            if site.condition == "exec" and site.narrows is None:
                places.leave_out(site.instr, "nothing before it in its block writes EXEC")
        by_line = tuple(tuple(Counter(str(lines.at(instr.pc) or "") for instr in stretch.instrs).items())
                        for stretch in stretches)
        return Noted(tuple((places.of(site.instr), site.condition) for site in sites), parted, by_line, executed,
                     places.left_out, isa.wave_size)

    def observe(self, m: Mutator, site: Site, row: Any, lanes: int) -> None:
        if site.narrows is not None:
            m.before(site.narrows, remember, LANES, 0, into=self.taking_part)
            insert = m.before if site.condition else m.after
            insert(site.instr, count_narrowed, row, self.taking_part, LANES, lanes)
        else:
            vcc = site.condition == "vcc"
            m.before(site.instr, count_chosen, row, LANES, sgpr(VCC, 2) if vcc else taken_lanes(site.instr), lanes)

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: Noted = launch.notes
        parted = np.reshape(counted(launch, notes.parted), (-1, len(NUMBERS))).tolist()
        executed = np.reshape(counted(launch, notes.executed), (-1, len(EXECUTED))).tolist()
        rows = [{**place.row(), "condition": condition, **dict(zip(NUMBERS, numbers, strict=True))}
                for (place, condition), numbers in zip(notes.places, parted, strict=False)]
        lines: dict[str, Counter[str]] = {}
        for here, numbers in zip(notes.by_line, executed, strict=False):
            for source, count in here:
                found = lines.setdefault(source, Counter())
                found.update({name: count * number for name, number in zip(EXECUTED, numbers, strict=True)})
        return _report(rows, lines, notes.wave_size, left_out_rows(notes.left_out))

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        total = report["total"]
        head = (f"{self.headline(launch)}, {total['divergent']} of {total['executions']} branches divergent, "
                f"{percent(total['activity'])} of lanes active")
        columns = ("executions", "divergent", "lanes", "go on", "pc", "condition", "instruction", "source")
        rows = [(row["executions"], row["divergent"], row["before"], row["after"], f"{row['pc']:#x}", row["condition"],
                 row["instruction"], row["source"]) for row in report["branches"]]
        lines = [head, align_columns(columns, rows, left=3)]
        lines += [f"  {row['source'] or 'without a line'}: {row['executions']} instructions, "
                  f"{percent(row['activity'])} of lanes active" for row in report["lines"]]
        return "\n".join([*lines, *left_out_lines(report["left_out"])])


def sites_of(block: Block, wave_size: int) -> Iterator[Site]:
    """Those of a block: what wrote EXEC last before a branch on it is one with that branch."""
    narrows: Instr | None = None
    for instr in block.instrs:
        branch = find_meaning(instr.op)
        writes = bool(instr.inst.writes.overlaps(RegSet.of(LANES)))
        if isinstance(branch, Branch) and branch.register is not None:
            on_exec = branch.register == "exec"
            yield Site(branch.register, instr, narrows if on_exec else None)
            narrows = None if on_exec else narrows
        elif writes or instr.op.flags & OpFlag.CALL:  # called functions have separate sites
            if narrows is not None and turns_off(narrows.inst, wave_size):
                yield Site("", narrows, narrows)
            narrows = instr if writes else None
    if narrows is not None and turns_off(narrows.inst, wave_size):
        yield Site("", narrows, narrows)


def turns_off(inst: Inst, wave_size: int) -> bool:
    """Whether lanes that are active may not be behind it; what sets EXEC whatever it was brings back what was."""
    return any(EXEC in each.sources and outcome(each.table, tuple(1 if source == EXEC else None
               for source in each.sources)) != 1 for each in assignments(inst, wave_size) if each.mask == EXEC)


def counted(launch: LaunchResult, variable: Variable) -> Sequence[int]:
    """Its numbers; zeros where no instruction was chosen that would count in it."""
    found: Sequence[int] = launch[variable] if variable.name in launch.memory else (0,) * (variable.length or 1)
    return found


def _report(
    rows: Iterable[dict[str, Any]], lines: Mapping[str, Mapping[str, int]], wave_size: int,
    left_out: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    branches = [{**row, "executions": sum(row[way] for way in WAYS), "divergent": row["some"]} for row in rows]
    sums = {name: sum(row[name] for row in branches) for name in ("executions", "divergent")}
    executed = {name: sum(numbers[name] for numbers in lines.values()) for name in EXECUTED}
    size = {"wave_size": wave_size}
    return {
        **size,
        "total": {**sums, "instructions": executed["executions"], "lanes": executed["lanes"],
                  "activity": activity(executed["executions"], executed["lanes"], size)},
        "branches": branches,
        "lines": [{"source": source, **{name: lines[source][name] for name in EXECUTED},
                   "activity": activity(lines[source]["executions"], lines[source]["lanes"], size)}
                  for source in sorted(lines, key=line_order)],
        "left_out": list(left_out),
    }


def activity(executions: int, lanes: int, report: Mapping[str, Any]) -> float | None:
    """The part of all lanes that was active, over executed instructions."""
    return lanes / (executions * report["wave_size"]) if executions else None
