"""Counts of executions and lanes, against counts by hand."""

from __future__ import annotations

import numpy as np
from launching import compile_hip, device, launch, run_sample

from luthier_py.isa import instruction_set, target
from luthier_py.samples import sample


def test_straight_line():
    """8 work-groups of 4 full waves, each instruction once."""
    dev = device()
    assert run_sample(dev, sample("vector_add"))
    profile = dev.profile
    assert (profile.groups, profile.waves) == (8, 32)
    assert set(profile.counts.values()) == {32} and set(profile.lanes.values()) == {32 * 64}
    assert profile.total == 32 * len(profile.counts) and profile.total_lanes == 64 * profile.total
    histogram = profile.opcodes()
    assert histogram["global_load_dword"] == 64 and histogram["s_endpgm"] == 32
    assert sum(histogram.values()) == profile.total


def test_a_tail():
    """1000 of 1024 work-items: the last wave runs the body with 40 lanes; lanes are exact."""
    dev = device()
    assert run_sample(dev, sample("saxpy"))
    profile = dev.profile
    isa = instruction_set(target("gfx90a"))
    stores = [pc for pc, inst in profile.insts.items() if inst.op.base == "GLOBAL_STORE_DWORD"]
    assert [profile.counts[pc] for pc in stores] == [16] and [profile.lanes[pc] for pc in stores] == [1000]
    first = min(profile.counts)
    assert profile.lanes[first] == 1024 and isa.text(profile.insts[first]).startswith("s_load")


def test_loops_calls_and_divergence(require_tool, tmp_path):
    source = """
    DEVICE __attribute__((noinline)) u32 twice(u32 x) { asm volatile("v_nop"); return x * 2; }
    KERNEL void k(u32 *p, u32 n) {
      u32 x = p[X];
      for (u32 i = 0; i < n; ++i) asm volatile("s_nop 3");
      if (X < 10) asm volatile("s_nop 5");
      for (u32 i = 0; i < X; ++i) asm volatile("s_nop 7");
      p[X] = twice(x);
    }
    """
    data = compile_hip(require_tool("clang-22"), tmp_path, source)
    dev = device()
    values = np.arange(128, dtype=np.uint32)
    launch(dev, data, "k", [values, 23], (1, 1, 1), (128, 1, 1))
    np.testing.assert_array_equal(values, np.arange(128) * 2)
    profile = dev.profile

    def count(text):
        pcs = [pc for pc, inst in profile.insts.items() if dev_text(inst) == text]
        return sum(profile.counts.get(pc, 0) for pc in pcs), sum(profile.lanes.get(pc, 0) for pc in pcs)

    dev_text = instruction_set(target("gfx90a")).text
    assert count("s_nop 3") == (46, 46 * 64)
    assert count("s_nop 5")[1] == 10
    assert count("s_nop 7") == (63 + 127, sum(range(128)))
    assert count("v_nop") == (2, 128)


def test_executions_without_a_lane():
    """reduce: waves whose lanes all drop out run the branch that skips the work, and what leads to it."""
    dev = device()
    assert run_sample(dev, sample("reduce"))
    profile = dev.profile
    idle = {pc: n - profile.active.get(pc, 0) for pc, n in profile.counts.items()}
    assert sum(idle.values()) == profile.total - profile.total_active > 0
    assert all(0 <= n <= profile.counts[pc] for pc, n in idle.items())
    assert all((profile.lanes.get(pc, 0) > 0) == (n > 0) for pc, n in profile.active.items())
    skips = [pc for pc, inst in profile.insts.items() if inst.op.base == "S_CBRANCH_EXECZ" and idle.get(pc)]
    assert skips and all(profile.lanes[pc] <= 64 * profile.active.get(pc, 0) for pc in skips)


def test_counts_do_not_depend_on_threads():
    results = []
    for threads in 1, 2:
        dev = device(threads=threads)
        assert run_sample(dev, sample("mandelbrot"))
        results.append((dict(dev.profile.counts), dict(dev.profile.lanes), dict(dev.profile.active)))
    assert results[0] == results[1]


def test_counts_start_again_at_each_launch():
    dev = device()
    module = dev.load(sample("vector_add").path.read_bytes())
    kernel = module.kernel("vector_add")
    buffers = [dev.alloc(8192) for _ in range(3)]
    kernarg = b"".join(b.address.to_bytes(8, "little") for b in buffers) + bytes(256)
    kernarg = kernarg[:24 + 12] + (256).to_bytes(2, "little") + kernarg[38:280]
    for groups in (1, 3, 2):
        dev.launch(kernel, (groups, 1, 1), (256, 1, 1), kernarg)
        assert dev.profile.total == groups * 4 * len(dev.profile.counts)
