"""Lines and segments that memory instructions touch: those that NumPy finds in a trace of all addresses, made in the
same run, on every sample kernel and on other targets."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from compiled_samples import CompiledSamples

from luthier_py import OpFlag
from luthier_py.base.errors import Invalid
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented, run_original
from luthier_py.intrinsics import active_mask, atomic_add, is_first_lane, lane_id, read_first_lane
from luthier_py.isa import Space
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import (
    Lane,
    Mutator,
    Several,
    Tool,
    Variable,
    access_bytes,
    address,
    hook,
    load_tool,
    ptr,
    u32,
    u64,
)  # fmt: skip
from luthier_py.samples import sample as sample_called

TOOL = Path(__file__).resolve().parents[2] / "tools" / "memory_divergence"
ACCESSES = 1 << 15
WORDS = 68  # of an access: instruction, bytes, active lanes, nothing, an address for each lane


class Trace(Tool):
    """The addresses of all lanes, access by access."""

    used = Variable(u32)
    rows = Variable(u64, ACCESSES * WORDS)

    @hook
    def trace(used: ptr[u32], rows: ptr[u64], where: Lane[u64], pc: u32, size: u32) -> None:
        first = u32(0)
        if is_first_lane():
            first = atomic_add(used, 1)
        row = rows + read_first_lane(first) * 68
        row[0] = u64(pc)
        row[1] = u64(size)
        row[2] = active_mask()
        row[4 + lane_id()] = where

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            for instr in m.instrs(function):
                if instr.op.flags & OpFlag.VMEM and instr.op.spaces & Space.GLOBAL and instr.memory is not None:
                    m.before(instr, self.trace, self.used, self.rows, address(instr), instr.pc, access_bytes(instr))

    def report(self, launch):
        used = launch[self.used]
        assert used <= ACCESSES
        return np.array(launch[self.rows], dtype=np.uint64)[: used * WORDS].reshape(used, WORDS)

    def text(self, launch, report):
        return ""


def touched(rows, size: int) -> Iterator[tuple[int, int]]:
    """Of each access the instruction, and how many blocks of ``size`` bytes it touches."""
    for row in rows:
        first = row[4:][[lane for lane in range(64) if int(row[2]) >> lane & 1]]
        yield int(row[0]), len(np.union1d(first // size, (first + row[1] - 1) // size))


def histograms(rows, line: int) -> dict[int, dict[int, int]]:
    """By instruction: how often it touched how many lines."""
    found: dict[int, Counter[int]] = defaultdict(Counter)
    for pc, lines in touched(rows, line):
        found[pc][lines] += 1
    return {pc: dict(counts) for pc, counts in found.items()}


def efficiency(rows) -> dict[str, object]:
    """Of accesses together: bytes that lanes asked for in comparison with whole segments."""
    lanes, asked = (sum(int(row[2]).bit_count() * int(size) for row, size in zip(rows, sizes, strict=True))
                    for sizes in (np.ones(len(rows)), rows[:, 1]))
    segments = {size: sum(count for _, count in touched(rows, size)) for size in (32, 64, 128)}
    return {"lanes": lanes, "bytes": asked, "segments": segments,
            "efficiency": {size: asked / (size * count) if count else None for size, count in segments.items()}}


def run(code, launch, tool):
    return run_instrumented(EmulatorDevice(load(code).target), instrument(code, tool), tool, launch)


def check(code: bytes, launch, line: int) -> list[dict]:
    """The tool against the trace of the same run, and outputs against those without; gives the report's rows."""
    device = EmulatorDevice(load(code).target)
    original = run_original(device, code, launch)
    counts = device.profile.counts
    ran = run(code, launch, Several(load_tool(f"{TOOL}/", {"line_bytes": line}), Trace()))
    assert {n: data.tobytes() for n, data in ran.outputs.items()} == {
        n: data.tobytes() for n, data in original.outputs.items()}  # fmt: skip
    report, trace = ran.report["memory_divergence"], ran.report["Trace"]
    trace = trace[trace[:, 2] != 0]
    rows = {row["pc"]: row for row in report["instructions"] if row["executions"]}
    assert {pc: row["histogram"] for pc, row in rows.items()} == histograms(trace, line)
    for pc, row in rows.items():
        found = efficiency(trace[trace[:, 0] == pc])
        assert {name: row[name] for name in found} == found
        assert row["executions"] <= counts[pc]  # waves with no lane left touch nothing
        assert row["lines"] == sum(lines * count for lines, count in row["histogram"].items())
    assert report["total"] == efficiency(trace)
    assert {row["instruction"].split()[0] for row in report["left_out"]} <= {"global_inv"}  # which moves no data
    for sums in report["lines"]:
        pcs = [pc for pc, row in rows.items() if row["source"] == sums["source"]]
        assert sums == {"source": sums["source"], **efficiency(trace[np.isin(trace[:, 0], pcs)])}
    return report["instructions"]


def test_lines_and_segments_are_those_of_the_addresses(sample) -> None:
    check(sample.path.read_bytes(), launch_of(sample), 128)


def test_lines_of_another_size() -> None:
    found = sample_called("transpose")
    check(found.path.read_bytes(), launch_of(found), 16)


OTHERS = [("gfx942", 64), ("gfx1030", 32), ("gfx1100", 32), ("gfx1100", 64), ("gfx1201", 32)]


@pytest.mark.parametrize(("target", "wave_size"), [
    pytest.param(*other, marks=() if other == ("gfx1201", 32) else pytest.mark.slow) for other in OTHERS])
def test_on_other_targets(target: str, wave_size: int, require_tool, tmp_path: Path) -> None:
    found = sample_called("transpose")
    compiled = CompiledSamples(require_tool("clang-22"), tmp_path).code(found.name, target, wave_size)
    rows = check(compiled, launch_of(found), 64)
    assert {row["lanes"] / row["executions"] for row in rows} == {wave_size}


@pytest.mark.parametrize("line", [100, -5, 1, 0, 8, "long"])
def test_a_line_is_a_power_of_two(line: object) -> None:
    with pytest.raises(Invalid, match=f"option line_bytes={line}: (choose|give) 16 or 32 or 64 or 128 or "):
        load_tool(f"{TOOL}/", {"line_bytes": line})


def test_neighbours_share_lines() -> None:
    found = sample_called("vector_add")
    report = run(found.path.read_bytes(), launch_of(found), load_tool(f"{TOOL}/")).report
    assert [set(row["histogram"]) for row in report["instructions"]] == [{2}] * 3
    assert report["total"]["efficiency"] == {32: 1, 64: 1, 128: 1}


def test_launches_of_a_kernel_are_added_up() -> None:
    found = sample_called("histogram")
    tool = load_tool(f"{TOOL}/")
    report = run(found.path.read_bytes(), launch_of(found), tool).report
    both = tool.combined([report, report])
    assert both["total"]["efficiency"] == report["total"]["efficiency"]
    assert both["total"]["bytes"] == 2 * report["total"]["bytes"] > 0
    for one, two in zip(report["instructions"], both["instructions"], strict=True):
        assert two["histogram"] == {lines: 2 * count for lines, count in one["histogram"].items()}
