"""Fused multiply-adds by emulation: results are the instruction's, and counts those that NumPy finds in a trace."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Launch, run_instrumented, run_original
from luthier_py.features.run.specs import parse_argument
from luthier_py.intrinsics import push
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import Channel, Lane, Mutator, Tool, channel, f32, hook, load_tool, u64
from luthier_py.samples import sample as named

TOOL = Path(__file__).resolve().parents[2] / "tools" / "fma_in_double"


class Operands:
    pc: u64
    a: f32
    b: f32
    c: f32


@hook(fold=())
def trace(out: channel[Operands], pc: u64, a: Lane[f32], b: Lane[f32], c: Lane[f32]) -> None:
    push(out, pc, a, b, c)


class Trace(Tool):
    """What is multiplied and added, lane by lane."""

    operands = Channel(Operands)

    def __init__(self) -> None:
        super().__init__()
        self.records: list[np.ndarray] = []

    def instrument(self, m: Mutator) -> None:
        for function in dict.fromkeys(m.functions()):
            for instr in m.instrs(function):
                if instr.op.mnemonic == "v_fmac_f32_e32":
                    names = "src0", "src1", "vdst"
                    m.before(instr, trace, self.operands, instr.pc, *(instr.inst[name] for name in names))

    def received(self, channel, launch, records) -> None:
        self.records.append(records.copy())


def exact(a: np.float32, b: np.float32, c: np.float32) -> np.float32:
    """Rounded once: the nearest of three floats, the even one of two that are."""
    value = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    near = np.float32(float(value))
    tried = [near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))]
    return min(tried, key=lambda x: (abs(Fraction(float(x)) - value), int(x.view(np.uint32)) & 1))


def expected(records: np.ndarray) -> tuple[int, int, int]:
    """Results, those in which separate rounding differs, and those in which rounding in double first does."""
    a, b, c = (records[name] for name in "abc")
    separate, wide = a * b + c, a.astype(np.float64) * b + c
    once = wide.astype(np.float32)
    tie = (wide.view(np.uint64) & 0x1FFFFFFF == 0x10000000) | (np.abs(wide) < 2.0**-125)
    right = once.copy()
    right[tie] = [exact(*each) for each in zip(a[tie], b[tie], c[tie], strict=True)]
    return len(a), int((separate.view(np.uint32) != right.view(np.uint32)).sum()), int(
        (once.view(np.uint32) != right.view(np.uint32)).sum())


def ran(code: bytes, launch: Launch):
    device, tool, tracer = EmulatorDevice(load(code).target), load_tool(f"{TOOL}/"), Trace()
    before = run_original(device, code, launch).outputs
    lanes = device.profile.lanes
    made = instrument(code, tool)
    after = run_instrumented(device, made, tool, launch)
    assert {n: data.tobytes() for n, data in after.outputs.items()} == {n: data.tobytes() for n, data in before.items()}
    run_instrumented(device, instrument(code, tracer), tracer, launch)
    return (after.report or {"instructions": ()})["instructions"], lanes, tracer.records


def test_results_and_counts_on_every_sample(sample) -> None:
    rows, lanes, records = ran(sample.path.read_bytes(), launch_of(sample))
    packed = {row["pc"] for row in rows if row["instruction"].startswith("v_pk")}
    by_pc = defaultdict(list)
    for part in records:
        for pc in np.unique(part["pc"]):
            by_pc[int(pc)].append(part[part["pc"] == pc])
    for row in rows:
        assert row["results"] == (1 + (row["pc"] in packed)) * lanes.get(row["pc"], 0)
        if row["pc"] not in packed and row["results"]:
            found = row["results"], row["differ_separately"], row["differ_twice"]
            assert found == expected(np.concatenate(by_pc[row["pc"]]))


def test_sums_between_floats_are_rounded_once(tmp_path: Path) -> None:
    """a * x lies halfway between two floats, and y is far below the last bit of a double: rounded to a double first,
    the sum would be that halfway."""
    factor, count = np.float32(1 + 2.0**-12), 256
    x = np.full(count, factor, np.float32)
    y = np.resize(np.float32([2.0**-60, -(2.0**-60), 0, 2.0**-149, -(2.0**-149), 2.0**-40, -3, np.inf]), count)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    texts = (f"u32={count}", f"f32={float(factor)!r}", f"in:f32[{count}]=file:{tmp_path}/x.npy",
             f"inout:f32[{count}]=file:{tmp_path}/y.npy")
    one = named("saxpy")
    launch = Launch(one.kernel, (1, 1, 1), (count, 1, 1), tuple(map(parse_argument, texts)))
    rows, _, records = ran(one.path.read_bytes(), launch)
    (row,) = (row for row in rows if row["results"])
    assert (row["results"], row["differ_separately"], row["differ_twice"]) == expected(np.concatenate(records))
    assert row["differ_twice"] == count // 4  # the positive ones: halfway goes to the even float, which is below


@pytest.mark.parametrize("a, b, c", [(1.5, 3, -4.5), (1 + 2.0**-23, 1 + 2.0**-23, -1), (2.0**-80, 2.0**-69, 0)])
def test_the_truth_is_right(a: float, b: float, c: float) -> None:
    value = Fraction(a) * Fraction(b) + Fraction(c)
    assert abs(Fraction(float(exact(*np.float32([a, b, c])))) - value) <= Fraction(2) ** -24 * abs(value) or not value
