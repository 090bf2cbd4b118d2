"""Bits of what is stored: on sample kernels those of Python's Huffman codes of a trace of all stored values."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented, run_original
from luthier_py.intrinsics import active_mask, push
from luthier_py.rewrite.clang.search import CLANG
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import Channel, Lane, Mutator, Tool, channel, hook, load_tool, source, u32, u64
from luthier_py.samples import SAMPLES, Sample

TOOL = Path(__file__).resolve().parents[2] / "tools" / "compressibility"
ALWAYS = "device_call", "lds_widths", "reduce", "saxpy"  # calls, wide stores, few lanes, waves that are not full


@pytest.fixture(autouse=True)
def clang(require_tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CLANG, require_tool("clang++-22"))


class Stored:
    pc: u64
    lanes: u64
    dwords: u32
    a: Lane[u32]
    b: Lane[u32]
    c: Lane[u32]
    d: Lane[u32]


@hook(fold=())
def trace(
    out: channel[Stored], pc: u64, dwords: u32, a: Lane[u32], b: Lane[u32], c: Lane[u32], d: Lane[u32]
) -> None:
    push(out, pc, active_mask(), dwords, a, b, c, d)


class Trace(Tool):
    """What is stored, record by record."""

    stored = Channel(Stored)

    def __init__(self, sizes: dict[int, int]) -> None:
        super().__init__()
        self.sizes, self.records = sizes, []

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            for instr in m.instrs(function):
                if instr.pc in self.sizes:
                    data = "vdata" if instr.inst.find("vdata") is not None else "data"
                    dwords = [source(instr, data, k) for k in range(self.sizes[instr.pc])]
                    m.before(instr, trace, self.stored, instr.pc, len(dwords), *dwords, *[0] * (4 - len(dwords)))

    def received(self, channel, launch, records) -> None:
        self.records += list(records)


def code_of(data: bytes) -> tuple[int, int]:
    """Bits of the best code for each byte, and its longest word where of equal weights leaves are joined first."""
    numbers = count()
    heap = [(weight, 0, next(numbers), 0) for weight in Counter(data).values()]
    heapq.heapify(heap)
    bits = 0
    while len(heap) > 1:
        a, b = heapq.heappop(heap), heapq.heappop(heap)
        bits += a[0] + b[0]
        heapq.heappush(heap, (a[0] + b[0], 1, next(numbers), 1 + max(a[3], b[3])))
    return bits, heap[0][3]


def expected(records) -> dict[int, list[int]]:
    """Executions, bytes, bits and longest word, by instruction."""
    found: dict[int, list[int]] = defaultdict(lambda: [0] * 4)
    for record in records:
        lanes = [lane for lane in range(64) if int(record["lanes"]) >> lane & 1]
        data = b"".join(record[name][lanes].tobytes() for name in "abcd"[: record["dwords"]])
        bits, longest = code_of(data)
        row = found[int(record["pc"])]
        found[int(record["pc"])] = [row[0] + 1, row[1] + len(data), row[2] + bits, max(row[3], longest)]
    return found


@pytest.mark.parametrize("sample", [
    pytest.param(sample, id=sample.name, marks=() if sample.name in ALWAYS else pytest.mark.slow)
    for sample in SAMPLES
])  # fmt: skip
def test_bits_are_those_of_huffman_codes_and_outputs_stay(sample: Sample) -> None:
    code, launch = sample.path.read_bytes(), launch_of(sample)
    device, tool = EmulatorDevice(load(code, sample.name).target), load_tool(f"{TOOL}/")
    original = run_original(device, code, launch)
    counts, lanes = device.profile.counts, device.profile.lanes
    made = instrument(code, tool)
    ran = run_instrumented(device, made, tool, launch)
    assert {n: data.tobytes() for n, data in ran.outputs.items()} == {
        n: data.tobytes() for n, data in original.outputs.items()}  # fmt: skip
    rows = {row["pc"]: row for row in (ran.report or {"stores": ()})["stores"]}
    dwords = {pc: row["bytes"] // (4 * lanes[pc]) for pc, row in rows.items() if lanes.get(pc)}
    assert all(row["executions"] <= counts.get(pc, 0) for pc, row in rows.items())
    tracer = Trace(dwords)
    run_instrumented(device, instrument(code, tracer), tracer, launch)
    want = expected(tracer.records)
    assert {pc: [row[name] for name in ("executions", "bytes", "bits", "longest")] for pc, row in rows.items()
            if row["executions"]} == want


def test_the_code_of_a_trace_is_right() -> None:
    assert code_of(b"aaaaabbbccd") == (5 * 1 + 3 * 2 + 2 * 3 + 1 * 3, 3)
    assert code_of(b"aaaa") == (0, 0) and code_of(bytes(range(256))) == (8 * 256, 8)
