"""Reuse distances, working sets, sharing and caches: those that lists and sets in Python make, step by step, of a trace
of all addresses of the same run, on samples and targets; and properties of the algorithm on streams of numbers."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from compiled_samples import CompiledSamples

from luthier_py.base.errors import Invalid
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented, run_original
from luthier_py.isa import AccessKind
from luthier_py.program.ir import lift
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import InstrPlace, LaunchResult, Several
from luthier_py.samples import sample as sample_called
from luthier_py.tools.mem_trace import MemTrace
from luthier_py.tools.memory_locality import MemoryLocality
from luthier_py.tools.memory_locality.caches import CacheShape, cache_shape
from luthier_py.tools.memory_locality.distances import COLD, ReuseDistances, earlier_not_greater, sampled
from luthier_py.tools.memory_locality.results import Site, Sites

OPTIONS = {"l1": "1K:2:64", "l2": "4k:4:128"}  # small, so that lines are evicted
L1, L2 = (1 << 10, 2, 64), (1 << 12, 4, 128)
LINE = 128


class Kept(MemTrace):
    """Keeps the records."""

    def received(self, channel: Any, launch: Any, records: Any) -> None:
        super().received(channel, launch, records)
        self.gathered.setdefault("kept", []).append(records)


class Execution(NamedTuple):
    pc: int
    kind: AccessKind
    wave: tuple[int, ...]
    bytes: set[int]

    def lines(self, size: int) -> Iterator[tuple[int, set[int]]]:
        """By address, with the bytes of each that are touched."""
        for line in sorted({at // size for at in self.bytes}):
            yield line, {at for at in self.bytes if at // size == line}


@dataclass
class NaiveCache:
    """A list for each set, the line that was used last at its end: its number, who fetched it, and its used bytes."""

    size: int
    ways: int
    line: int
    sets: dict[int, list[tuple[int, int, set[int]]]] = field(default_factory=lambda: defaultdict(list))
    counts: dict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def touch(self, pc: int, line: int, used: set[int]) -> bool:
        lines = self.sets[line % (self.size // self.ways // self.line)]
        found = next((each for each in lines if each[0] == line), None)
        self.counts[pc]["misses" if found is None else "hits"] += 1
        if found is not None:
            lines.remove(found)
        elif len(lines) == self.ways:
            lines.pop(0)
            self.counts[pc]["evictions"] += 1
        lines.append(found or (line, pc, set()))
        self.counts[lines[-1][1]]["used_bytes"] += len(used - lines[-1][2])
        lines[-1][2].update(used)
        return found is not None


def naive_distances(lines: list[int]) -> list[int]:
    stack, found = [], []
    for line in lines:
        found.append(stack[::-1].index(line) if line in stack else COLD)
        stack = [*(other for other in stack if other != line), line]
    return found


def executions(code: bytes, trace: Any) -> list[Execution]:
    memory = {instr.pc: instr.memory for function in lift(load(code)).functions for instr in function.instrs}
    found = []
    for record in trace:
        access = memory[int(record["pc"])]
        assert access is not None and access.bytes is not None
        on = [lane for lane in range(64) if int(record["lanes"]) >> lane & 1]
        touched = {at + each for at in record["address"][on].tolist() for each in range(access.bytes)}
        wave = tuple(int(record[name]) for name in ("workgroup_x", "workgroup_y", "workgroup_z", "wave"))
        found.append(Execution(int(record["pc"]), access.kind, wave, touched))
    return found


def by_distance(distances: list[int]) -> dict[int, int]:
    """Buckets from 0, 1, 2, 4, 8 ... on."""
    return dict(sorted(Counter(0 if each == 0 else 1 << each.bit_length() - 1 for each in distances).items()))


def expected(all: list[Execution]) -> dict[int, dict[str, Any]]:
    """What each instruction's row has."""
    touches = [(each.pc, line) for each in all for line, _ in each.lines(LINE)]
    distances = naive_distances([line for _, line in touches])
    l1, l2 = NaiveCache(*L1), NaiveCache(*L2)
    for each in all:
        if each.kind is not AccessKind.LOAD:
            for line, used in each.lines(l2.line):
                l2.touch(each.pc, line, used)
        for line, used in each.lines(l1.line) if each.kind is AccessKind.LOAD else ():
            if not l1.touch(each.pc, line, used):
                l2.touch(each.pc, line * l1.line // l2.line, set(range(line * l1.line, (line + 1) * l1.line)))
    rows = {}
    for pc in {each.pc for each in all}:
        own = [distance for (at, _), distance in zip(touches, distances, strict=True) if at == pc]
        rows[pc] = {
            "executions": sum(each.pc == pc for each in all), "touches": len(own),
            "lines": len({line for at, line in touches if at == pc}), "cold": own.count(COLD),
            "reuse": by_distance([each for each in own if each != COLD]),
            **{name: {what: cache.counts[pc][what] for what in ("hits", "misses", "evictions", "used_bytes")}
               for name, cache in (("l1", l1), ("l2", l2))},
        }  # fmt: skip
    return rows


def shared_by(all: list[Execution], who: Callable[[Execution], Any]) -> dict[int, int]:
    users = defaultdict(set)
    for each in all:
        for line, _ in each.lines(LINE):
            users[line].add(who(each))
    return dict(sorted(Counter(map(len, users.values())).items()))


def run(code: bytes, launch: Any, **options: Any) -> tuple[dict[str, Any], list[Execution]]:
    """The tool's report, and what a trace of the same run says; the application's memory is what it was."""
    device, trace = EmulatorDevice(load(code).target), Kept(print_records=False, spaces="global")
    tool = Several(MemoryLocality(**options), trace)
    original = run_original(device, code, launch)
    ran = run_instrumented(device, instrument(code, tool), tool, launch)
    assert {n: data.tobytes() for n, data in ran.outputs.items()} == {
        n: data.tobytes() for n, data in original.outputs.items()}  # fmt: skip
    return ran.report["memory_locality"], executions(code, np.concatenate(trace.gathered["kept"]))


def check(code: bytes, launch: Any) -> dict[str, Any]:
    report, all = run(code, launch, **OPTIONS)
    wanted = expected(all)
    rows = {row["pc"]: row for row in report["instructions"] if row["executions"]}
    assert {pc: {name: row[name] for name in wanted[pc]} for pc, row in rows.items()} == wanted
    assert report["total"]["lines"] == len({line for each in all for line, _ in each.lines(LINE)})
    assert report["sharing"] == {"waves": shared_by(all, lambda each: each.wave),
                                 "workgroups": shared_by(all, lambda each: each.wave[:3])}
    for name, sums in report["sources"].items():
        pcs = {row["pc"] for row in rows.values() if row["source"] == name}
        assert sums["lines"] == len({line for each in all if each.pc in pcs for line, _ in each.lines(LINE)})
    for sums in (report["total"], *report["sources"].values()):
        assert sums["touches"] == sums["cold"] + sum(sums["reuse"].values())
        assert sums["l2"]["evictions"] <= sums["l2"]["misses"]
    return report


@pytest.mark.parametrize("name", ["transpose", "matmul", "histogram", "reduce", "nbody", "saxpy"])
def test_all_numbers_are_those_of_the_addresses(name: str) -> None:
    found = sample_called(name)
    check(found.path.read_bytes(), launch_of(found))


SLOW = [("gfx90a", 64), ("gfx942", 64), ("gfx1030", 32), ("gfx1100", 64), ("gfx1201", 32)]


@pytest.mark.parametrize(("target", "wave_size"), [
    *[pytest.param(*other, marks=pytest.mark.slow) for other in SLOW], ("gfx1100", 32)])
def test_on_other_targets(target: str, wave_size: int, require_tool: Callable[[str], str], tmp_path: Path) -> None:
    samples = CompiledSamples(require_tool("clang-22"), tmp_path)
    for name in ("transpose", "matmul"):
        found = sample_called(name)
        report = check(samples.code(name, target, wave_size), launch_of(found))
        assert report["total"]["l1"]["evictions"] and report["total"]["l2"]["evictions"]


def test_distances_are_those_of_a_list_whatever_pieces_come() -> None:
    chance = random.Random(7)
    for most in (1, 3, 40, 1 << 40):
        lines = [chance.randrange(most) for _ in range(600)]
        distances, found = ReuseDistances(), list[int]()
        while len(found) < len(lines):
            piece = lines[len(found) : len(found) + chance.choice((1, 2, 31, 200))]
            found += distances.of(np.array(piece, np.int64)).tolist()
        assert found == naive_distances(lines) and len(distances) == len(set(lines))
    assert earlier_not_greater(np.array([3, 1, 3, 2, 5, 0])).tolist() == [0, 0, 2, 1, 4, 0]
    assert ReuseDistances().of(np.empty(0, np.int64)).tolist() == []


def test_a_sample_of_lines_estimates_what_caches_of_any_size_hit() -> None:
    """A mixture of a scan and of lines that are used the more often the lower they are; errors as in SHARDS."""
    chance = np.random.default_rng(11)
    lines = np.where(chance.random(200_000) < 0.3, np.arange(200_000) % 30_000, chance.zipf(1.2, 200_000) % 50_000)
    exact = ReuseDistances().of(lines)
    chosen = lines[sampled(lines, 8)]
    estimated = ReuseDistances().of(chosen) * 8
    for cache in (64, 1024, 8192, 32768):
        ratio = ((exact >= 0) & (exact < cache)).mean()
        assert abs(((estimated >= 0) & (estimated < cache)).mean() - ratio) < 0.04, cache
    assert abs(8 * len(np.unique(chosen)) / len(np.unique(lines)) - 1) < 0.03


def test_a_sample_stands_for_all_lines() -> None:
    found = sample_called("matmul")
    report, all = run(found.path.read_bytes(), launch_of(found), sample=4, l2="4K:4:128")
    touches = [line for each in all for line, _ in each.lines(LINE)]
    chosen = [line for line in touches if sampled(np.array([line]), 4)[0]]
    assert report["total"]["touches"] == 4 * len(chosen) and report["total"]["lines"] == 4 * len(set(chosen))
    distances = [4 * each for each in naive_distances(chosen) if each != COLD]
    assert report["total"]["reuse"] == {at: 4 * count for at, count in by_distance(distances).items()}
    assert sum(report["total"]["l2"][what] for what in ("hits", "misses")) == len(touches)  # of all lines


def test_a_window_of_launches_remembers_what_was_used() -> None:
    """By hand: each launch loads lines 0 to 9 once; a cache of 8 lines never has the one that comes next."""
    records = np.zeros(10, MemoryLocality.uses.record.records)
    records["lanes"], records["address"][:, 0] = 1, LINE * np.arange(10)
    site = Site(InstrPlace(0, "load", "k", None), AccessKind.LOAD, 4)
    found = []
    for window in (1, 2):
        tool = MemoryLocality(window=window, l2="1K:8:128", l1="4K:64:64")
        for index in range(3):
            launch = LaunchResult(index, "k", (1, 1, 1), (64, 1, 1), {}, notes=Sites((site,), (), 64))
            for part in (records[:4], records[4:]):
                tool.received(tool.uses, launch, part)
            report = tool.report(launch)
            total = report["total"]
            found.append((window, index, total["cold"], total["reuse"], total["l1"]["hits"], total["l2"]["misses"]))
            assert total["lines"] == report["window"]["lines"] == 10
            assert f"window of {window} launches, so far: 10 lines" in tool.text(launch, report) or window == 1
        assert list(tool.gathered) == [1] * (window == 2)  # which is not over
    again = {8: 10}  # at distance 9
    assert found == [(1, 0, 10, {}, 0, 10), (1, 1, 10, {}, 0, 10), (1, 2, 10, {}, 0, 10),
                     (2, 0, 10, {}, 0, 10), (2, 1, 0, again, 10, 0), (2, 2, 10, {}, 0, 10)]


def test_launches_of_a_kernel_are_added_up() -> None:
    found = sample_called("matmul")
    report, _ = run(found.path.read_bytes(), launch_of(found), **OPTIONS)
    tool = MemoryLocality(**OPTIONS)
    both = tool.combined([report, report])
    assert both["total"]["lines"] == report["total"]["lines"] and both["total"]["cold"] == 2 * report["total"]["cold"]
    for one, two in zip(report["instructions"], both["instructions"], strict=True):
        assert two["l2"] == {what: 2 * count for what, count in one["l2"].items()}
        assert two["reuse"] == {at: 2 * count for at, count in one["reuse"].items()} and two["lines"] == one["lines"]


@pytest.mark.parametrize(("options", "says"), [
    ({"l2": "4M:16"}, "option l2=4M:16: give size:ways:line, as in 4M:16:128"),
    ({"l2": "4KM:16:128"}, "option l2=4KM:16:128: give size:ways:line"),
    *(({"l2": f"4M:16:{line}"}, "lines have 16 to 512 bytes, a power of two") for line in (8, 100, 1024)),
    ({"l1": "1000:4:64"}, "the size is a multiple of ways x line"),
    ({"l1": "16K:4:128", "l2": "4M:16:64"}, "lines of l1 have 128 bytes and are longer than those of l2, 64"),
])
def test_what_no_cache_is_like_is_refused(options: dict[str, str], says: str) -> None:
    with pytest.raises(Invalid, match=says):
        MemoryLocality(**options)


def test_shapes_of_caches() -> None:
    for line in (16, 32, 64, 128, 256, 512):
        assert cache_shape("l2", f"1m:4:{line}").sets == (1 << 20) // (4 * line)
    assert cache_shape("l1", "16K:4:64") == CacheShape("l1", 16 << 10, 4, 64)


def test_files_have_a_table_and_a_picture() -> None:
    found = sample_called("matmul")
    code, launch, tool = found.path.read_bytes(), launch_of(found), MemoryLocality(**OPTIONS)
    ran = run_instrumented(EmulatorDevice(load(code).target), instrument(code, tool), tool, launch)
    files = tool.files(LaunchResult(0, "matmul", launch.grid, launch.block, {}), ran.report)
    assert files["memory_locality.png"].startswith(b"\x89PNG")
    assert len(files["memory_locality.csv"].splitlines()) == 1 + len(ran.report["instructions"])
