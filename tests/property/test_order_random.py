"""Tools that record entries, exits, blocks and instructions in any order: every count is the emulator's own.

A counter that starts at a number of its own shows calls that run before its start or after its flush.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from emulated import LANES, Bench, code_object
from every_case import check_all
from random_kernels import INPUT_BYTES, PROBES, SLOT_BYTES, kernel

from luthier_py import Mutator, Tool, Variable, WaveVariable, hook, ptr, u32, u64
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented, run_original
from luthier_py.intrinsics import atomic_add
from luthier_py.isa import OpFlag, target
from luthier_py.rewrite.pipeline import instrument
from luthier_py.samples import sample

GROUPS = 2
START = 1000


class Shuffled(Tool):
    """Counts by regions, blocks, instructions before and after; what begins and ends is recorded somewhere between."""

    regions, blocks, before, after = WaveVariable(u64), WaveVariable(u64), WaveVariable(u64), WaveVariable(u64)
    waves = WaveVariable(u32)
    totals = Variable(u64, 4)
    twice = Variable(u64)

    @hook
    def start(n: u64) -> u64:
        return n

    @hook
    def twofold(n: u64) -> u64:
        return n + n

    @hook
    def add(count: u64, n: u32) -> u64:
        return count + n

    @hook(lanes="one")
    def flush(total: ptr[u64], count: u64) -> None:
        atomic_add(total, count)

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self.rng = rng

    def instrument(self, m: Mutator) -> None:
        calls: list[Callable[[], None]] = []
        for slot, count in enumerate(self.wave_variables[:4]):
            calls += [lambda k=k, c=count: self.begin(m, k, c) for k in m.kernels]
            calls += [lambda k=k, s=slot, c=count: self.end(m, k, s, c) for k in m.kernels]
        for function in m.functions():
            for region in m.regions(function):
                calls.append(lambda r=region: m.at_region(r, self.add, self.regions, len(r.instrs), into=self.regions))
            for block in m.blocks(function):
                calls.append(lambda b=block: self.at_block(m, b))
            for instr in m.instrs(function):
                calls.append(lambda i=instr: self.at_instr(m, i))
        self.rng.shuffle(calls)
        for call in calls:
            call()

    def begin(self, m: Mutator, kernel, count: WaveVariable) -> None:
        """Two calls at the entry, in their order."""
        m.at_entry(kernel, self.start, START // 2, into=count)
        m.at_entry(kernel, self.twofold, count, into=count)

    def end(self, m: Mutator, kernel, slot: int, count: WaveVariable) -> None:
        m.at_exit(kernel, self.flush, self.totals[slot], count)

    def at_block(self, m: Mutator, block) -> None:
        anywhere = self.rng.random() < 0.5
        m.at_block(block, self.add, self.blocks, len(block.instrs), into=self.blocks, anywhere=anywhere)

    def at_instr(self, m: Mutator, instr) -> None:
        m.before(instr, self.add, self.before, 1, into=self.before)
        if not instr.inst.op.flags & OpFlag.TERMINATOR:
            m.after(instr, self.add, self.after, 1, into=self.after)


def expected(m_functions, counts, waves: int) -> list[int]:
    instrs = [i for f in m_functions for i in f.instrs]
    every = sum(counts.get(i.pc, 0) for i in instrs)
    ends = sum(counts.get(i.pc, 0) for i in instrs if i.inst.op.flags & OpFlag.TERMINATOR)
    return [n + START * waves for n in (every, every, every, every - ends)]


@pytest.fixture(scope="module")
def bench():
    lanes = GROUPS * LANES
    inputs = np.random.default_rng(5).integers(0, 1 << 32, lanes * INPUT_BYTES // 4, dtype=np.uint32).tobytes()
    return Bench(inputs, bytes(4 * PROBES), bytes(lanes * SLOT_BYTES))


def check(bench: Bench, seed: int) -> None:
    data = code_object({"k": kernel(seed, inline=False).rows})
    before, tool = bench.run(data, "k", GROUPS), Shuffled(random.Random(seed))
    made = instrument(data, tool, kernels=["k"])
    after = bench.run(made.data, "k.luthier", GROUPS)
    assert after.buffers == before.buffers
    assert list(after[tool.totals]) == expected(made.program.functions, before.profile.counts, GROUPS)


@pytest.mark.parametrize("seed", range(4000, 4002))
def test_the_order_of_recording_does_not_matter(bench, seed):
    check(bench, seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(5000, 5100, 10))
def test_many_orders_of_recording(bench, first):
    check_all(lambda seed: check(bench, seed), range(first, first + 10))


@pytest.mark.parametrize("name", ("saxpy", "device_call"))
def test_samples(name):
    """Kernels with an early end (saxpy's guard) and with calls."""
    each, rng = sample(name), random.Random(name)
    code, launch, device = each.path.read_bytes(), launch_of(each), EmulatorDevice(target("gfx90a"))
    plain = run_original(device, code, launch)
    counts = dict(device.profile.counts)
    waves = int(np.prod(launch.grid)) * -(-int(np.prod(launch.block)) // LANES)
    for _ in range(2):
        tool = Shuffled(rng)
        made = instrument(code, tool)
        ran = run_instrumented(device, made, tool, launch)
        assert all(ran.outputs[n].tobytes() == data.tobytes() for n, data in plain.outputs.items())
        assert list(ran.report["totals"]) == expected(made.program.functions, counts, waves)


class Calls(Tool):
    """Instructions of a function for each of its calls, flushed when it returns."""

    count = WaveVariable(u64)
    total, calls = Variable(u64), Variable(u64)
    start, add, flush = Shuffled.start, Shuffled.add, Shuffled.flush

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self.rng = rng

    def instrument(self, m: Mutator) -> list[int]:
        leaves = [f for f in m.functions() if not f.kernel and not m.program.calls(f)]
        calls: list[Callable[[], None]] = []
        for f in leaves:
            calls += [lambda f=f: m.at_entry(f, self.start, START, into=self.count),
                      lambda f=f: m.at_exit(f, self.flush, self.total, self.count),
                      lambda f=f: m.at_exit(f, self.flush, self.calls, 1)]
            calls += [lambda b=b: m.at_block(b, self.add, self.count, len(b.instrs), into=self.count, anywhere=True)
                      for b in m.blocks(f)]
        self.rng.shuffle(calls)
        for call in calls:
            call()
        return leaves


@pytest.mark.parametrize("name", ("device_call", "function_pointers"))
def test_functions_begin_and_return(name):
    each = sample(name)
    code, launch, device = each.path.read_bytes(), launch_of(each), EmulatorDevice(target("gfx90a"))
    run_original(device, code, launch)
    counts = dict(device.profile.counts)
    tool = Calls(random.Random(name))
    made = instrument(code, tool)
    ran = run_instrumented(device, made, tool, launch)
    leaves = made.edits.notes
    entered = sum(counts.get(f.address, 0) for f in leaves)
    assert entered
    executed = sum(counts.get(i.pc, 0) for f in leaves for i in f.instrs)
    assert ran.report == {"total": executed + START * entered, "calls": entered}
