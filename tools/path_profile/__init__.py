"""Counts the paths that waves take through functions (Ball and Larus, 1996)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx

from luthier_py import LaunchResult, Mutator, Option, Tool, Variable, WaveVariable, hook, ptr, u32, u64
from luthier_py.intrinsics import atomic_add, atomic_cas, atomic_load, read_first_lane
from luthier_py.program.analysis import source_lines
from luthier_py.program.ir import Function, Program
from luthier_py.rewrite.tool import (
    MOST,
    SAME,
    SUM,
    FunctionPaths,
    InstrPlaces,
    Omission,
    RowsBy,
    left_out_lines,
    left_out_rows,
    paths_of,
)

SUMS = tuple(WaveVariable(u32, f"PathProfile.sum{depth}") for depth in range(8))
PROBES = 16
SHOWN = 10


@dataclass(frozen=True, slots=True)
class Numbered:
    """Paths of one function: their counters follow each other from ``first`` on, or are in the table, where it is their
    first key."""

    found: FunctionPaths
    first: int
    tabled: bool


@dataclass(frozen=True, slots=True)
class Profile:
    """What the counters of one program mean."""

    functions: tuple[Numbered, ...]
    left_out: tuple[Omission, ...]
    """Functions."""
    lines: Mapping[int, Sequence[str]]
    """Source lines of runs, by their addresses."""
    counts: Variable | None
    table: Variable | None


@hook
def add(sum: u32, n: u32) -> u32:
    return sum + n


@hook(lanes="one")
def count_in_array(counts: ptr[u64], sum: u32, n: u32, begins: u32) -> u32:
    atomic_add(counts + (sum + n), u64(1))
    return begins


@hook(lanes="one")
def count_in_table(table: ptr[u64], last: u32, lost: ptr[u64], first: u64, sum: u32, n: u32, begins: u32) -> u32:
    key = first + u64(sum + n)
    place = u32(key * 0x9E3779B97F4A7C15 >> 32)
    found = u32(0)
    probe = u32(0)
    while found == 0 and probe < PROBES:
        slot = table + 2 * u64((place + probe) & last)
        seen = read_first_lane(atomic_load(slot))
        if seen == 0:
            seen = read_first_lane(atomic_cas(slot, u64(0), key))
        if seen == 0 or seen == key:
            atomic_add(slot + 1, u64(1))
            found = u32(1)
        probe += 1
    if found == 0:
        atomic_add(lost, u64(1))
    return begins


class PathProfile(Tool):
    """Executions of each acyclic path of each function, by wave."""

    name = "path_profile"
    cacheable = True
    amounts = {
        "paths": RowsBy(("function", "path"), {
            "executions": SUM.of("executions by waves"), "length": SAME.of("instructions"),
            "instructions": SUM.of("executed instructions")}),
        "functions": RowsBy(("function",), {"paths": SAME, "taken": MOST.of("paths of a launch that ran")}),
        "lost": SUM.of("executions of paths that have no room in the table"),
    }  # fmt: skip
    array = Option(4096, bounds=(0, 1 << 20),
                   help="functions with so many paths have a counter for each, others share the table")
    table = Option(1 << 16, choices=tuple(1 << bits for bits in range(6, 25)), help="paths that the table has room for")

    lost = Variable(u64)

    def instrument(self, m: Mutator) -> Profile:
        depths = dict(_depths(m.program, m.functions()))
        reasons, places = {f: self.why_not(m, f, depths) for f in m.functions()}, InstrPlaces(m.program)
        for function, why in reasons.items():
            if why:
                places.leave_out(function, why)
        found = [paths_of(m.program, function) for function, why in reasons.items() if not why]
        functions = tuple(self.numbered(found))
        small = sum(each.found.paths.total for each in functions if not each.tabled)
        counts = Variable(u64, max(small, 2), name="PathProfile.counts")
        table = Variable(u64, 2 * self.table, name="PathProfile.table")
        for each in functions:
            counting: tuple[Any, ...] = (count_in_array, counts[each.first]) if not each.tabled else (
                count_in_table, table, self.table - 1, self.lost, each.first)
            count_paths(m, each.found, counting, SUMS[depths[each.found.function]])
        lines = source_lines(m.program.obj)
        return Profile(functions, places.left_out,
                       {run.first.pc: lines.texts_at(instr.pc for instr in run.instrs)
                        for each in found for run in each.runs},
                       counts if small else None, table if any(each.tabled for each in functions) else None)

    def numbered(self, found: Iterable[FunctionPaths]) -> Iterator[Numbered]:
        counter, key = 0, 1
        for each in found:
            tabled = each.paths.total > self.array
            yield Numbered(each, key if tabled else counter, tabled)
            if tabled:
                key += each.paths.total
            else:
                counter += each.paths.total

    @staticmethod
    def why_not(m: Mutator, function: Function, depths: Mapping[Function, int]) -> str:
        """Why the function's paths are not counted; empty where they are."""
        if len(m.instrs(function)) < len(function.code):
            return "of its instructions not all are chosen"
        if function not in depths:
            return "it may be called again before it returns"
        if depths[function] >= len(SUMS):
            return f"it may be called {depths[function]} calls deep, and {len(SUMS) - 1} are followed"
        return ""

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: Profile = launch.notes
        counts = launch[notes.counts] if notes.counts else ()
        table = launch[notes.table] if notes.table else ()
        slots = dict(zip(table[::2], table[1::2], strict=True))
        functions, rows = [], list[dict[str, Any]]()
        for each in notes.functions:
            taken = dict(_taken(each, counts, slots))
            functions.append({"function": each.found.function.name, "paths": each.found.paths.total,
                              "taken": len(taken), "table": each.tabled})
            rows += [path_row(each.found, number, count, notes.lines) for number, count in taken.items()]
        rows.sort(key=lambda row: (-row["instructions"], row["function"], row["path"]))
        return {"paths": rows, "functions": functions, "lost": launch[self.lost],
                "left_out": left_out_rows(notes.left_out)}

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        rows, total = report["paths"], sum(row["instructions"] for row in report["paths"])
        shown = self.selection.shown
        lines = [self.headline(launch), *(f"  {shown(each['function'])}: {each['taken']} of {each['paths']} paths"
                                          for each in report["functions"])]
        for row in rows[:SHOWN]:
            lines.append(f"  {row['executions']:>10} x {row['length']} instructions, "
                         f"{row['instructions'] / total:6.1%}  {shown(row['function'])} path {row['path']}")
            lines.append(f"             {' '.join(map(hex, row['blocks']))} -> {row['then']}")
            lines += [f"             {' '.join(row['lines'])}"] if row["lines"] else []
        lines += [f"  {len(rows) - SHOWN} more paths"] if len(rows) > SHOWN else []
        lines += [f"  lost: {report['lost']} executions of paths; a larger table= keeps them"] if report["lost"] else []
        return "\n".join([*lines, *left_out_lines(report["left_out"])])

    def rows(self, report: dict[str, Any]) -> list[dict[str, Any]]:
        return [{**row, "blocks": " ".join(map(hex, row["blocks"])), "lines": " ".join(row["lines"])}
                for row in report["paths"]]


def count_paths(m: Mutator, found: FunctionPaths, counting: Sequence[Any], number: WaveVariable) -> None:
    """``number`` is zero whenever the function is entered."""
    for arc, (way, n, begins) in enumerate(zip(found.ways, found.adding.adds, found.adding.begins, strict=True)):
        call = (*counting, number, n, begins) if found.paths.ends(arc) else (add, number, n)
        if way.edge is None:
            m.before(way.run.instrs[-1], *call, into=number)
        elif n or found.paths.ends(arc):
            m.at_edge(way.edge, *call, into=number)


def path_row(found: FunctionPaths, number: int, count: int, lines: Mapping[int, Sequence[str]]) -> dict[str, Any]:
    runs, ways = found.along(number)
    last, length = ways[-1], sum(map(len, runs))
    then = f"{last.edge.target.address:#x}" if last.edge else last.run.instrs[-1].op.mnemonic
    return {
        "function": found.function.name, "path": number, "executions": count, "length": length,
        "instructions": count * length, "blocks": [run.first.pc for run in runs], "then": then,
        "lines": list(dict.fromkeys(line for run in runs for line in lines[run.first.pc])),
    }


def _taken(each: Numbered, counts: Sequence[int], table: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """Numbers of paths, and their executions."""
    first, total = each.first, each.found.paths.total
    if each.tabled:
        yield from ((key - first, count) for key, count in table.items() if first <= key < first + total)
    else:
        yield from ((number, count) for number, count in enumerate(counts[first : first + total]) if count)


def _depths(program: Program, functions: Sequence[Function]) -> Iterator[tuple[Function, int]]:
    """How many functions may be active around each, at most; of those that may be active twice nothing."""
    calls = nx.DiGraph((f, target) for f in functions for site in program.calls(f) for target in site.targets)
    calls.add_nodes_from(functions)
    groups = nx.condensation(calls)
    depths: dict[int, int] = {}
    for group in nx.topological_sort(groups):
        members = groups.nodes[group]["members"]
        depths[group] = max((depths[above] + 1 for above in groups.predecessors(group)), default=0)
        if len(members) == 1 and not any(calls.has_edge(member, member) for member in members):
            yield from ((member, depths[group]) for member in members)
