"""Lines that memory instructions touch: on every sample kernel those that NumPy finds in a trace of all addresses."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from luthier_py import OpFlag
from luthier_py.clang.search import CLANG
from luthier_py.emulator import EmulatorDevice
from luthier_py.errors import Invalid
from luthier_py.intrinsics import active_mask, atomic_add, is_first_lane, lane_id, read_first_lane
from luthier_py.isa import Space
from luthier_py.loader import load
from luthier_py.pipeline import instrument
from luthier_py.session.demo import launch_of
from luthier_py.session.run import run_instrumented, run_original
from luthier_py.tool import (
    Lane,
    Mutator,
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

TOOL = Path(__file__).resolve().parents[2] / "tools" / "memory_divergence"
ACCESSES = 1 << 15
WORDS = 68  # of an access: instruction, bytes, active lanes, nothing, an address for each lane


@pytest.fixture(autouse=True)
def clang(require_tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CLANG, require_tool("clang++-22"))


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
                if instr.op.flags & OpFlag.VMEM and instr.op.spaces & Space.GLOBAL:
                    m.before(instr, self.trace, self.used, self.rows, address(instr), instr.pc, access_bytes(instr))

    def report(self, launch):
        used = launch[self.used]
        assert used <= ACCESSES
        return np.array(launch[self.rows], dtype=np.uint64)[: used * WORDS].reshape(used, WORDS)

    def text(self, launch, report):
        return ""


def histograms(rows, line: int) -> dict[int, dict[int, int]]:
    """By instruction: how often it touched how many lines."""
    found: dict[int, Counter[int]] = defaultdict(Counter)
    for row in rows:
        lanes = [lane for lane in range(64) if int(row[2]) >> lane & 1]
        first = row[4:][lanes]
        touched = np.union1d(first // line, (first + row[1] - 1) // line)
        found[int(row[0])][len(touched)] += 1
    return {pc: dict(counts) for pc, counts in found.items()}


def run(sample, tool):
    code = sample.path.read_bytes()
    made = instrument(code, tool)
    return run_instrumented(EmulatorDevice(load(code, sample.name).target), made, tool, launch_of(sample))


@pytest.mark.parametrize("line", [128, 32])
def test_lines_are_those_of_the_addresses_and_outputs_stay(sample, line: int) -> None:
    code = sample.path.read_bytes()
    device = EmulatorDevice(load(code, sample.name).target)
    original = run_original(device, code, launch_of(sample))
    counts = device.profile.counts
    ran = run(sample, load_tool(f"{TOOL}/", {"line": line}))
    assert {n: data.tobytes() for n, data in ran.outputs.items()} == {
        n: data.tobytes() for n, data in original.outputs.items()}  # fmt: skip
    reported = {row["pc"]: row["histogram"] for row in ran.report["instructions"] if row["executions"]}
    trace = run(sample, Trace()).report
    assert reported == histograms(trace[trace[:, 2] != 0], line)
    assert not ran.report["not_counted"]
    for row in ran.report["instructions"]:
        assert row["executions"] <= counts.get(row["pc"], 0)  # waves with no lane left touch nothing
        assert row["lines"] == sum(lines * count for lines, count in row["histogram"].items())


@pytest.mark.parametrize("line", [100, -5, 1, 0, 8, "long"])
def test_a_line_is_a_power_of_two(line: object) -> None:
    with pytest.raises(Invalid, match=f"option line={line}: (choose|give) 16 or 32 or 64 or 128 or "):
        load_tool(f"{TOOL}/", {"line": line})


def test_neighbours_share_lines() -> None:
    from luthier_py.samples import sample

    rows = run(sample("vector_add"), load_tool(f"{TOOL}/")).report["instructions"]
    assert [set(row["histogram"]) for row in rows] == [{2}] * 3
