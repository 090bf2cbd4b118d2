"""docs/one-liners.md: each of its lines says what the emulator counts, or what NumPy finds in a record."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiled_samples import CompiledSamples
from recorded_scripts import (
    Access,
    Observed,
    average,
    blocks,
    commonest,
    found,
    frequent,
    low_of,
    observe,
    opcode,
    pc,
    powers,
    segments,
    total,
)

from luthier_py.base.names import demangle
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented
from luthier_py.program.analysis import source_lines
from luthier_py.program.ir import Instr
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample

PAGE = Path(__file__).resolve().parents[2] / "docs" / "one-liners.md"
LINES = [line for block in re.findall(r"```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
         for line in block.splitlines() if line and not line.startswith("#")]


def by_lines(o: Observed) -> Callable[[Instr], str]:
    lines = source_lines(o.program.obj)

    def line(instr: Instr) -> str:
        found = lines.at(instr.pc)
        return "?" if found is None or not found.line else f"{Path(found.file).name}:{found.line}"

    return line


def counted(where: str, key: Callable[[Instr], Any]) -> Callable[[Observed], Any]:
    return lambda o: total((key(instr), o.runs(instr)) for instr in o.instrs(where))


def in_lanes(where: str, key: Callable[[Instr], Any], weight: Callable[[Instr], int] = lambda instr: 1) -> Any:
    return lambda o: total((key(instr), weight(instr) * o.lanes(instr)) for instr in o.instrs(where))


def of_accesses(how: Callable[..., Any], where: str, key: Callable[[Instr], Any], of: Callable[[Access], Any]) -> Any:
    return lambda o: how((key(access.instr), of(access)) for access in o.accesses(where))


def size_of(instr: Instr) -> int:
    return int(instr.memory.total_bytes)


def of_group(o: Observed, numbers: Iterable[tuple[Any, int]]) -> dict[Any, int]:
    return total((o.group(row), count) for row, count in numbers)


def waves_of_groups(o: Observed) -> dict[int, int]:
    groups = int(np.prod(o.groups))
    return dict.fromkeys(range(groups), o.profile.waves // groups)


def other_tool(o: Observed, name: str, part: str) -> Iterator[Any]:
    """What another tool says of the same launch."""
    tool = load_tool(name)
    device = EmulatorDevice(o.program.obj.target)
    made = instrument(o.program.obj.data, tool)
    yield from run_instrumented(device, made, tool, launch_of(sample(o.profile.kernel))).report[part]


def elapsed(o: Observed, number: int) -> int:
    """Instructions of the copy from the clock that each wave reads first to the one that line ``number`` reads at its
    end, by the emulator's counters: its clock counts instructions, and here no wave waits, or goes another way."""
    instrs = list(o.copy.kernel(o.copied.kernel).function.instrs)
    begun, *ends = (instr.pc for instr in instrs if opcode(instr) == "s_memtime")
    executed = sum(o.copied.counts.get(instr.pc, 0) for instr in instrs if begun <= instr.pc < ends[number])
    assert executed % o.copied.waves == 0
    return executed // o.copied.waves


def floats(o: Observed, where: str, name: str, written: bool) -> Iterator[tuple[Instr, Any]]:
    for instr, _, values in o.values(where, name, written):
        yield instr, values.view(np.float32)


def mean(numbers: Any) -> float:
    return math.fsum(numbers) / len(numbers)


def stored(o: Observed, where: str) -> Iterator[tuple[Instr, Any]]:
    for name in ("vdata", "data", "data0"):
        yield from ((instr, values) for instr, _, values in o.values(where, name))


def uniform(o: Observed) -> dict[str, int]:
    return total((opcode(instr), len(np.unique(values)) == 1)
                 for instr, _, values in o.values("vector_alu", "vdst", written=True))


def few_active(o: Observed) -> dict[str, int]:
    """Executions with less than 32 lanes, those without any among them, which no record tells of."""
    nobody = ((pc(instr), o.runs(instr) - o.profile.active.get(instr.pc, 0)) for instr in o.instrs("vector_alu"))
    return total([*nobody, *((pc(instr), int(row["lanes"]).bit_count() < 32) for instr, row in o.executions())])


def branched(o: Observed) -> dict[Any, int]:
    """In a reduction by halves a branch is for no lane, or for one number of them."""
    some = [(instr, o.profile.active.get(instr.pc, 0)) for instr in o.instrs("conditional")]
    return total([*(((pc(instr), 0), o.runs(instr) - active) for instr, active in some),
                  *(((pc(instr), o.lanes(instr) // active), active) for instr, active in some)])


def traced(o: Observed) -> list[str]:
    stored = {(row["pc"], o.group(row), row["wave"]): values[0]
              for name in ("vdata", "data") for _, row, values in o.values("global & store", name)
              if int(row["lanes"]) & 1}
    return sorted(f"addr=0x{a.at[0]:x} group={a.group} f32(data)={float(stored[a.key].view(np.float32))}"
                  for a in o.accesses("global & store") if a.lanes[0] == 0)


HISTOGRAM, MATMUL, VECTOR_ADD, LINES_OF = "histogram", "matmul", "vector_add", "reduce gfx1100 32"
VALUES_OF = {VECTOR_ADD: "opcode = v_add_f32*", HISTOGRAM: "vector_alu | store", "reduce": "vector_alu",
             MATMUL: "opcode = v_*_f32* | global & store"}
FLOATS = "opcode = v_*_f32*"
ORACLES: dict[str, tuple[str, Callable[[Observed], Any]]] = {
    "block: sum(instructions)": (HISTOGRAM, lambda o: {(): o.profile.total}),
    "block: sum(instructions, by=function)": ("device_call", lambda o: total(
        (demangle(function.name), o.runs(instr)) for function in o.functions for instr in function.instrs)),
    "block: sum(instructions, by=line)": (LINES_OF, lambda o: counted("index >= 0", by_lines(o))(o)),
    'on("*"): count(by=opcode)': (HISTOGRAM, lambda o: dict(o.profile.opcodes())),
    'on("vector_alu"): count(by=line)': (LINES_OF, lambda o: counted("vector_alu", by_lines(o))(o)),
    'on("wait"): count(by=pc)': (HISTOGRAM, counted("wait", pc)),
    'on("barrier"): count(by=kernel)': (HISTOGRAM, counted("barrier", lambda instr: HISTOGRAM)),
    'on("transcendental"): sum(active, by=opcode)': ("nbody", in_lanes("transcendental", opcode)),
    "entry: count(by=kernel)": (HISTOGRAM, lambda o: {HISTOGRAM: o.profile.waves}),
    "entry: count(by=group)": (HISTOGRAM, waves_of_groups),
    "entry: hist(active)": (HISTOGRAM, lambda o: {(): {o.wave_size: o.profile.waves}}),
    "exit: hist(elapsed)": (VECTOR_ADD, lambda o: {(): {low_of(elapsed(o, 0)): o.profile.waves}}),
    "exit: max(elapsed, by=group)": (VECTOR_ADD, lambda o: dict.fromkeys(range(np.prod(o.groups)), elapsed(o, 1))),
    "branch: count(by=(pc, way))": (HISTOGRAM, lambda o: total(
        ((f"0x{row['branch']:x}", "taken" if row["taken"] else "falls through"), row["count"])
        for row in other_tool(o, "branch_edges", "edges"))),
    "branch: hist(active, by=pc)": (HISTOGRAM, lambda o: total(
        (f"0x{row['branch']:x}", row["count"]) for row in other_tool(o, "branch_edges", "edges"))),
    "loop: count(by=pc)": (MATMUL, lambda o: [row["turns"] for row in other_tool(o, "loop_counts", "loops")]),
    "loop: count(by=(pc, group))": (MATMUL, lambda o: [
        row["turns"] for row in other_tool(o, "loop_counts", "loops")]),
    'on("vector_alu"): avg(active, by=opcode)': ("reduce", lambda o: {
        name: o.profile.lane_opcodes()[name] / runs for name, runs in counted("vector_alu", opcode)(o).items()}),
    'on("vector_alu") if active < 32: count(by=pc)': ("reduce", few_active),
    'on("vector_alu") if active == 0: count(by=pc)': ("device_call", lambda o: total(
        (pc(instr), o.runs(instr) - o.profile.active.get(instr.pc, 0)) for instr in o.instrs("vector_alu"))),
    'on("vector_alu"): count(by=lane)': (HISTOGRAM, lambda o: total(
        (lane, int(row["lanes"]) >> lane & 1) for _, row in o.executions() for lane in range(64))),
    "block: sum(instructions * (64 - active), by=pc)": (HISTOGRAM, lambda o: total(
        (pc(block.instrs[0]), len(block.instrs) * (64 * o.runs(block.instrs[0]) - o.lanes(block.instrs[0])))
        for _, block in blocks(o))),
    'on("conditional"): count(by=(pc, active))': ("reduce", branched),
    'on("global_load_*"): hist(segments(addr, 64), by=line)': (LINES_OF, lambda o: of_accesses(
        powers, "opcode = global_load_*", by_lines(o), lambda access: segments(access, 64))(o)),
    'on("global & load"): avg(segments(addr, 128), by=pc)': (MATMUL, of_accesses(
        average, "global & load", pc, lambda access: segments(access, 128))),
    'on("global") if segments(addr, 64) > 8: count(by=pc)': ("nbody", of_accesses(
        total, "global", pc, lambda access: segments(access, 64) > 8)),
    'on("global"): sum(bytes * active, by=opcode)': (HISTOGRAM, in_lanes("global", opcode, size_of)),
    'on("global & load"): count(by=bytes)': ("nbody", counted("global & load", size_of)),
    'on("store"): count(by=bytes)': ("nbody", counted("store", size_of)),
    'on("memory"): sum(bytes * active, by=(line, opcode))': (LINES_OF, lambda o: in_lanes(
        "memory", lambda instr: (by_lines(o)(instr), opcode(instr)), size_of)(o)),
    'on("global"): top(10, addr // 64)': (MATMUL, lambda o: frequent(
        (at for access in o.accesses("global") for at in (access.at // 64).tolist()), 10)),
    'on("global"): top(10, addr // 4096)': (MATMUL, lambda o: frequent(
        (at for access in o.accesses("global") for at in (access.at // 4096).tolist()), 10)),
    'on("global"): min(addr)': (MATMUL, lambda o: {(): min(int(a.at.min()) for a in o.accesses("global"))}),
    'on("global"): max(addr + bytes)': (MATMUL, lambda o: {
        (): max(int(a.at.max()) + a.bytes for a in o.accesses("global"))}),
    'on("global"): count(where=addr % 16 != 0, by=pc)': (MATMUL, of_accesses(
        total, "global", pc, lambda access: (access.at % 16 != 0).sum())),
    'on("global & load") if distinct(addr) == 1: count(by=pc)': ("nbody", of_accesses(
        total, "global & load", pc, lambda access: len(np.unique(access.at)) == 1)),
    'on("global & load") if lane == 1: top(4, addr - first(addr))': (MATMUL, lambda o: frequent(
        (int(a.at[a.lanes == 1][0] - a.at[0]) for a in o.accesses("global & load") if 1 in a.lanes), 4)),
    'on("scalar_memory"): sum(bytes, by=opcode)': (MATMUL, lambda o: total(
        (opcode(instr), size_of(instr) * o.runs(instr)) for instr in o.instrs("scalar_memory"))),
    'on("scratch"): count(by=opcode)': ("device_call", counted("scratch", opcode)),
    'on("lds"): hist(most(addr // 4 % 32), by=opcode)': ("reduce_strided", of_accesses(
        powers, "lds", opcode, lambda access: commonest(access.at // 4 % 32))),
    'on("lds"): avg(distinct(addr // 4 % 32), by=pc)': ("reduce_strided", of_accesses(
        average, "lds", pc, lambda access: len(np.unique(access.at // 4 % 32)))),
    'on("lds"): quantize(addr, 256)': (MATMUL, lambda o: {(): dict(Counter(
        int(at) // 256 * 256 for access in o.accesses("lds") for at in access.at))}),
    'on("lds"): max(addr + bytes)': (MATMUL, lambda o: {
        (): max(int(a.at.max()) + a.bytes for a in o.accesses("lds"))}),
    'on("atomic"): hist(most(addr), by=opcode)': (HISTOGRAM, of_accesses(
        powers, "atomic", opcode, lambda access: commonest(access.at))),
    'on("atomic & global"): top(5, addr)': (HISTOGRAM, lambda o: frequent(
        (at for access in o.accesses("atomic & global") for at in access.at.tolist()), 5)),
    'on("v_*_f32*"): hist(f32(dst), by=opcode)': (MATMUL, lambda o: powers(
        (opcode(instr), values) for instr, values in floats(o, FLOATS, "vdst", True))),
    'on("v_*_f32*"): count(where=isnan(f32(dst)) or isinf(f32(dst)), by=opcode)': (MATMUL, lambda o: total(
        (opcode(instr), (~np.isfinite(values)).sum()) for instr, values in floats(o, FLOATS, "vdst", True))),
    'on("global_store_*"): sum(f32(data))': (MATMUL, lambda o: {
        (): math.fsum(n for _, values in stored(o, "opcode = global_store_*") for n in values.view(np.float32))}),
    'on("v_add_f32*"): avg(f32(dst))': (VECTOR_ADD, lambda o: {(): mean(np.concatenate(
        [values for _, values in floats(o, "opcode = v_add_f32*", "vdst", True)]))}),
    'on("global_store_*"): min(f32(data))': (MATMUL, lambda o: {
        (): min(float(values.view(np.float32).min()) for _, values in stored(o, "opcode = global_store_*"))}),
    'on("store"): count(where=u32(data) == 0, by=opcode)': (HISTOGRAM, lambda o: total(
        (opcode(instr), (values == 0).sum()) for instr, values in stored(o, "store"))),
    'on("vector_alu") if distinct(u32(dst)) == 1: count(by=opcode)': (HISTOGRAM, uniform),
    'on("global_store_*") if lane == 0: trace(addr, group, f32(data))': (MATMUL, traced),
}


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory, require_tool: Callable[[str], str]) -> Any:
    @cache
    def at(place: str) -> Observed:
        name, *target = place.split()
        lines = [line for line, (where, _) in ORACLES.items() if where == place]
        if not target:
            return observe(name, sample(name).path.read_bytes(), lines, VALUES_OF.get(place, ""))
        samples = CompiledSamples(require_tool("clang++-22"), tmp_path_factory.mktemp("compiled"))
        return observe(name, samples.code(name, target[0], int(target[1]), 2, "-gline-tables-only"), lines)

    return at


def test_each_line_of_the_page_is_here_and_there_are_more_than_fifty() -> None:
    assert sorted(LINES) == sorted(ORACLES) and len(LINES) > 50


@pytest.mark.parametrize("line", LINES)
def test_a_line_says_what_the_emulator_counts(line: str, observed: Callable[[str], Observed]) -> None:
    place, oracle = ORACLES[line]
    o = observed(place)
    expected, table = oracle(o), o.tables.get(line)
    if table is None:
        assert sorted(text.partition(": ")[2] for text in o.printed) == expected != []
    elif line.startswith("loop"):
        rows = total((row["pc"], row["count"]) for row in table["rows"]).values()
        assert sorted(rows) == sorted(expected) != []
    elif "branch: hist" in line:
        assert total((row["pc"], row["count"]) for row in table["rows"]) == expected != {}
    else:
        assert {key: n for key, n in found(table).items() if n or "min" in line} == expected
