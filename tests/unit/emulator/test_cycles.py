"""The cycle model against cycles worked out by hand from isa/timing/cycles' numbers: chains, waits, banks, lines,
barriers, compute units, launches. Then what must hold whatever the numbers: determinism, and that more is never faster.

On gfx90a an instruction issues every 4 cycles; LDS answers 48 cycles after its banks are through, memory 320 after its
lines.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from emulated import ISA, KERNARG_BYTES, LANES, code_object
from launching import compile_hip, launch, run_sample
from packets import Host
from synthetic import assemble

from luthier_py.base.errors import Invalid
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice, LaunchCycles, LaunchOptions
from luthier_py.emulator.options.clock_kind import ClockKind, parse_clock
from luthier_py.emulator.options.settings import Weights
from luthier_py.emulator.waves.residency import COMPUTE_UNITS
from luthier_py.features.run.specs import parse_argument
from luthier_py.isa import agpr, sgpr, target, vgpr
from luthier_py.samples import sample

BUFFER = [("s_load_dwordx2", sgpr(0, 2), sgpr(4, 2), 0), ("s_waitcnt", 0)]
END = ("s_endpgm",)
WAIT = ("s_waitcnt", 0)
LDS_BYTES = 32768
STEP, BRANCH, LDS_LATENCY, MEMORY_LATENCY = 4, 32, 48, 320


def modelled(name: str = "gfx90a", **options: Any) -> EmulatorDevice:
    return EmulatorDevice(target(name), options=LaunchOptions(clock=ClockKind.MODEL), **options)


def run(rows: Sequence[Any], groups: int = 1, waves: int = 1, words: int = 1, device: EmulatorDevice | None = None,
        **resources: Any) -> tuple[tuple[int, ...], LaunchCycles]:
    """What the buffer of 64-bit words holds afterwards, and the launch's cycles."""
    device = device or modelled()
    buffer = device.alloc(1 << 16)
    device.write(buffer.address, bytes(1 << 16))
    kernarg = struct.pack("<Q", buffer.address).ljust(KERNARG_BYTES, b"\0")
    data = code_object({"k": rows}, **{"lds_bytes": LDS_BYTES, **resources})
    device.launch(device.load(data).kernel("k"), (groups, 1, 1), (LANES * waves, 1, 1), kernarg)
    assert device.profile is not None and device.profile.cycles is not None
    return struct.unpack(f"<{words}Q", device.read(buffer.address, 8 * words)), device.profile.cycles


def cycles_of(*body: Any) -> int:
    """By the wave's own clock, from the reading before ``body`` to that behind it."""
    rows = [*BUFFER, ("s_memtime", sgpr(8, 2)), *body, ("s_memtime", sgpr(10, 2)), WAIT,
            ("s_sub_u32", sgpr(8), sgpr(10), sgpr(8)), ("v_mov_b32", vgpr(1), 0), ("v_mov_b32", vgpr(2), sgpr(8)),
            ("v_mov_b32", vgpr(3), 0), ISA.make("global_store_dwordx2", vgpr(1), vgpr(2, 2), sgpr(0, 2)).raw, END]
    return run(rows, agprs=32)[0][0]


def store_wave_clock() -> list[Any]:
    """s[10:11] to the word of the work-group."""
    return [WAIT, ("s_lshl_b32", sgpr(7), sgpr(6), 3), ("v_mov_b32", vgpr(1), sgpr(7)),
            ("v_mov_b32", vgpr(2), sgpr(10)), ("v_mov_b32", vgpr(3), sgpr(11)),
            ISA.make("global_store_dwordx2", vgpr(1), vgpr(2, 2), sgpr(0, 2)).raw, END]


ADD = ("v_add_f32", vgpr(4), vgpr(4), vgpr(5))
OTHER_ADD = ("v_add_f32", vgpr(6), vgpr(5), vgpr(5))


@pytest.mark.parametrize(("body", "cycles"), [
    ([], 0),
    ([ADD] * 10, 40),                                                  # each reads the one before: the same on GCN
    ([OTHER_ADD] * 10, 40),
    ([("v_exp_f32", vgpr(4), vgpr(4))] * 3, 3 * 16),                   # quarter rate
    ([("v_fma_f64", vgpr(4, 2), vgpr(4, 2), vgpr(4, 2), vgpr(4, 2))] * 3, 12),  # full rate on CDNA 2
    ([("v_rcp_f64", vgpr(4, 2), vgpr(4, 2))] * 2, 32),
    ([("s_add_u32", sgpr(7), sgpr(7), 1)] * 5, 20),
    ([("s_nop", 0), ("s_nop", 3)], 4 + 16),
    ([("s_nop", 15), ("s_nop", 0xFFF0), ("s_nop", 0x12)], 16 * 4 + 4 + 3 * 4),  # four bits count
    ([("s_sleep", 2)], 128),
])
def test_one_wave_issues(body, cycles):
    """The first reading issues for a step, too."""
    assert cycles_of(*body) == STEP + cycles


MATRIX = ISA.make("v_mfma_f32_32x32x1f32", agpr(0, 32), vgpr(4), vgpr(5), agpr(0, 32)).raw
SMALL = ISA.make("v_mfma_f32_4x4x1f32", agpr(0, 4), vgpr(4), vgpr(5), agpr(0, 4)).raw
READ = ISA.make("v_accvgpr_read_b32", vgpr(6), agpr(0)).raw


@pytest.mark.parametrize(("body", "cycles"), [
    ([MATRIX, MATRIX], 2 * 64),      # 16 passes of four cycles; accumulating goes on at once
    ([SMALL, SMALL, SMALL], 3 * 8),
    ([SMALL, READ], 8 + 12 + 4),     # 3 wait states behind the last pass
    ([SMALL, ADD, READ], 8 + 12 + 4),
])
def test_matrices(body, cycles):
    assert cycles_of(*body) == STEP + cycles


LOAD = ISA.make("global_load_dword", vgpr(6), vgpr(7), sgpr(0, 2)).raw
OTHER_LOAD = ISA.make("global_load_dword", vgpr(8), vgpr(7), sgpr(0, 2)).raw


def lanes_apart(step: int) -> list[Any]:
    return [("v_mul_u32_u24", vgpr(7), step, vgpr(0))]


@pytest.mark.parametrize(("step", "held"), [(0, 4), (4, 4), (16, 16), (64, 64), (128, 64)])
def test_a_load_takes_as_long_as_it_has_lines(step, held):
    """64 lanes ask for 256 bytes, 64 in a cycle; a line of 64 bytes is looked up in each."""
    assert cycles_of(*lanes_apart(step), LOAD, WAIT) == STEP + 4 + held + MEMORY_LATENCY


def test_loads_overlap_and_come_back_in_order():
    """The second waits 4 cycles for the lines of the first, and no more."""
    assert cycles_of(*lanes_apart(4), LOAD, OTHER_LOAD, WAIT) == STEP + 4 + 4 + 4 + MEMORY_LATENCY
    one_left = ("s_waitcnt", 0x0F71)  # vmcnt(1)
    assert cycles_of(*lanes_apart(4), LOAD, OTHER_LOAD, one_left) == STEP + 4 + 4 + MEMORY_LATENCY
    work = [ADD] * 90
    assert cycles_of(*lanes_apart(4), LOAD, *work, WAIT) == STEP + 4 + 4 + 4 * 90 + 4


@pytest.mark.parametrize(("step", "lanes", "banks"), [
    (4, 63, 2), (8, 63, 4), (16, 63, 8), (128, 63, 63), (0, 63, 2), (128, 1, 2), (128, 20, 21), (128, 33, 33)])
def test_bank_conflicts(step, lanes, banks):
    """Degrees 1, 2, 4, 32, and one word for all: halves of the wave take that many cycles each, one at least if none of
    its lanes is on, and a wave at least 4."""
    some, read = ("s_bfm_b64", sgpr(126, 2), lanes, 0), ISA.make("ds_read_b32", vgpr(6), vgpr(7)).raw
    assert cycles_of(*lanes_apart(step), some, read, WAIT) == STEP + 4 + 4 + max(banks, 4) + LDS_LATENCY


def test_a_pair_is_two_accesses_and_a_wide_one_takes_its_bytes():
    pair = ISA.make("ds_read2_b32", vgpr(10, 2), vgpr(7), offset0=0, offset1=32).raw
    assert cycles_of(*lanes_apart(128), pair, WAIT) == STEP + 4 + 2 * 64 + LDS_LATENCY
    wide = ISA.make("ds_read_b128", vgpr(8, 4), vgpr(7)).raw
    assert cycles_of(*lanes_apart(16), wide, WAIT) == STEP + 4 + 16 + LDS_LATENCY  # 1 KiB, 64 bytes a cycle


def test_lanes_that_are_off_ask_for_nothing():
    few = ("s_mov_b64", sgpr(126, 2), 3)
    assert cycles_of(*lanes_apart(128), few, LOAD, WAIT) == STEP + 4 + 4 + 4 + MEMORY_LATENCY


@pytest.mark.parametrize("branch", ["s_cbranch_scc0", "s_cbranch_scc1"])
def test_branches_cost_the_same_taken_or_not(branch):
    assert cycles_of(("s_cmp_eq_u32", 1, 1), (branch, "on"), "on:") == STEP + STEP + BRANCH


def test_what_leaves_hardware_a_choice_is_an_issue():
    assert cycles_of(("s_setprio", 3), ADD, ("s_setprio", 0)) == STEP + 3 * STEP
    assert cycles_of(("s_sendmsg", 0)) == STEP + STEP


def test_loops_cost_their_turns():
    def loop(turns: int) -> int:
        return cycles_of(("s_mov_b32", sgpr(7), turns), "again:", ADD, ("s_sub_u32", sgpr(7), sgpr(7), 1),
                         ("s_cmp_lg_u32", sgpr(7), 0), ("s_cbranch_scc1", "again"))

    assert loop(1) == STEP + 4 + 12 + BRANCH and loop(10) - loop(1) == 9 * (12 + BRANCH)


def late_wave(extra: int) -> list[Any]:
    """Of two waves the second issues ``extra`` more instructions before the barrier; each stores when it goes on."""
    return [*BUFFER, ("v_readfirstlane_b32", sgpr(12), vgpr(0)), ("s_lshr_b32", sgpr(12), sgpr(12), 6),
            ("s_cmp_eq_u32", sgpr(12), 0), ("s_cbranch_scc1", "meet"), *[ADD] * extra, "meet:", ("s_barrier",),
            ("s_memtime", sgpr(10, 2)), WAIT, ("s_lshl_b32", sgpr(7), sgpr(12), 3), ("v_mov_b32", vgpr(1), sgpr(7)),
            ("v_mov_b32", vgpr(2), sgpr(10)), ("v_mov_b32", vgpr(3), sgpr(11)),
            ISA.make("global_store_dwordx2", vgpr(1), vgpr(2, 2), sgpr(0, 2)).raw, END]


def test_a_barrier_is_left_when_the_last_wave_has_come():
    (first, second), few = run(late_wave(10), waves=2, words=2)
    (later, last), many = run(late_wave(110), waves=2, words=2)
    assert first == second and later == last == first + 400
    assert many.total - few.total == 400


def test_a_group_is_no_faster_than_its_pipes():
    """Eight waves on four SIMDs: two share one, whose vector instructions take twice a wave's own time."""
    body = [*[ADD] * 1000, END]
    assert run(body, waves=4)[1].total == 4000 + STEP
    assert run(body, waves=8)[1].total == 8000


def test_instructions_per_cycle_of_a_full_compute_unit():
    """On MI250 ROCm Compute Profiler measured 1.0 moves or 6.79 s_nop in a cycle. What no unit computes each of 32
    waves issues every 4 cycles: 8, as launching waves and fetching their code are not modelled."""
    full = {"groups": 2 * COMPUTE_UNITS, "waves": 16, "lds_bytes": 0}
    assert run([*[ADD] * 500, END], **full)[1].total == 32 * 500
    assert run([*[("s_nop", 0)] * 500, END], **full)[1].total == 32 * 500 // 8 + STEP


def test_groups_share_their_compute_unit():
    """More groups than compute units: the second on one finds its SIMDs busy, if there is only one wave for each."""
    body = [*[ADD] * 1000, END]
    alone = run(body, groups=COMPUTE_UNITS, waves=4, lds_bytes=256)[1]
    both = run(body, groups=COMPUTE_UNITS + 1, waves=4, lds_bytes=256)[1]
    assert alone.total == 4004 and both.total == 8000
    assert sorted(both.of_units()) == [4004] * 15 + [8000]
    assert both.imbalance == pytest.approx(8000 * 16 / (8000 + 15 * 4004)) and alone.imbalance == 1


def test_groups_wait_for_a_slot():
    """40 KiB of LDS: one group on each compute unit. The last begins when one has ended, and its clock shows it."""
    rows = [*BUFFER, ("s_memtime", sgpr(10, 2)), *[("s_nop", 15)] * 50, *store_wave_clock()]
    times, cycles = run(rows, groups=COMPUTE_UNITS + 1, words=COMPUTE_UNITS + 1, lds_bytes=40960)
    assert set(times[:COMPUTE_UNITS]) == {times[0]} and cycles.begins[-1] == cycles.ends[0] == cycles.ends.min()
    assert times[-1] - times[0] == cycles.begins[-1] and cycles.units[-1] == 0


def test_launches_come_one_after_the_other():
    rows = [*BUFFER, ("s_memtime", sgpr(10, 2)), *store_wave_clock()]
    device = modelled()
    (first,), one = run(rows, device=device)
    (second,), two = run(rows, device=device)
    assert two.begin == one.end and second - first == one.total == two.total


def test_waves_that_differ_are_told():
    _, cycles = run(late_wave(100), waves=2, words=2)
    unequal = [*late_wave(100)[:-1], *late_wave(0)[2:5], ("s_cbranch_scc1", "end"), *[ADD] * 500, "end:", END]
    _, worse = run(unequal, waves=2, words=2)
    assert cycles.wave_imbalance < 1.1 < worse.wave_imbalance
    assert worse.waves[0, 1] - worse.waves[0, 0] == 2000


@pytest.mark.parametrize("name", ["transpose", "reduce", "histogram", "matmul", "device_call", "bitonic_sort"])
def test_the_same_on_each_run_and_for_any_number_of_workers(name):
    """And right: the model changes nothing that a kernel computes."""
    found = []
    for threads in (1, 1, 3):
        device = modelled(threads=threads)
        assert run_sample(device, sample(name)) and device.profile is not None
        cycles = device.profile.cycles
        assert cycles is not None
        found.append((cycles.total, cycles.units.tolist(), cycles.begins.tolist(), cycles.waves.tolist()))
    assert found[0] == found[1] == found[2]


def test_packets_take_the_same_cycles_as_launches():
    """Two after each other, on one clock."""
    one, host, device = sample("vector_add"), Host(options=LaunchOptions(clock=ClockKind.MODEL), threads=3), modelled()
    data = one.path.read_bytes()
    base, record = host.place(data), load(data).kernel(one.kernel)
    values = [value.data.copy() if hasattr(value, "data") else value.value for value in map(parse_argument, one.args)]
    items = tuple(groups * size for groups, size in zip(one.grid, one.block, strict=True))
    first, second = (host.dispatch(base, record, values, items, one.block).cycles for _ in range(2))
    launch(device, data, one.kernel, values, one.grid, one.block)
    assert first is not None and second is not None and device.profile is not None
    assert device.profile.cycles is not None
    assert first.total == second.total == device.profile.cycles.total and second.begin == first.end


def test_samples_are_in_the_order_that_one_expects():
    def cycles(name: str) -> int:
        device = modelled()
        assert run_sample(device, sample(name))
        assert device.profile is not None and device.profile.cycles is not None
        return device.profile.cycles.total

    assert cycles("transpose_padded") < cycles("transpose")


@pytest.mark.parametrize("name", ["transpose", "mandelbrot", "bitonic_sort"])
def test_three_times_the_cost_takes_three_times_as_long(name):
    """Of everything; and nothing takes as long where all of it is free."""
    def total(weights: Weights | None) -> int:
        device = modelled()
        device.weights = weights
        assert run_sample(device, sample(name))
        assert device.profile is not None and device.profile.cycles is not None
        return device.profile.cycles.total

    assert total(Weights((), 0, 3)) == 3 * total(None) > total(Weights((), 1, 0)) == 0


def test_the_weight_of_one_instruction():
    """Two reciprocals on another's result, 16 cycles each; the second one's are tripled. Then a load's: an issue of 4,
    16 cycles of lines and a latency of 320; the wait's own issue stays."""
    body = [("v_rcp_f32", vgpr(1), vgpr(1)), ("v_rcp_f32", vgpr(1), vgpr(1)), END]
    access = [("v_mov_b32", vgpr(1), 0), ("v_mov_b32", vgpr(2), 0), *BUFFER,
            ISA.make("global_load_dword", vgpr(3), vgpr(1), sgpr(0, 2)).raw, WAIT, END]

    def total(rows: Sequence[Any], at: int, weight: int) -> int:
        device, entry = modelled(), load(code_object({"k": rows}, lds_bytes=LDS_BYTES)).kernel("k").entry
        device.weights = Weights((entry + len(assemble(ISA, rows[:at], 0, {})),), weight, 1)
        return run(rows, device=device)[1].total

    assert [total(body, 1, weight) - total(body, 1, 1) for weight in (0, 3)] == [-16, 32]
    assert total(access, 4, 3) - total(access, 4, 1) == 2 * (LANES // 16 + MEMORY_LATENCY)


STRIDED = """
KERNEL void k(const u32* in, u32* out, u32 stride, u32 turns) {
  u32 sum = 0;
  for (u32 i = 0; i < turns; ++i) sum += in[(X * stride + i) & 0xFFFF];
  out[X] = sum;
}
"""
CHAIN = """
KERNEL void k(u32* out, float x) {
  u32 a, b; float y = x, z = x;
  asm volatile("s_nop 15\\n s_getreg_b32 %0, hwreg(HW_REG_SHADER_CYCLES, 0, 20)\\n v_add_f32 %2, %2, %2\\n"
               "v_add_f32 %2, %2, %2\\n v_add_f32 %2, %2, %2\\n v_add_f32 %3, %3, %3\\n"
               "s_getreg_b32 %1, hwreg(HW_REG_SHADER_CYCLES, 0, 20)" : "=&s"(a), "=&s"(b), "+v"(y), "+v"(z));
  out[0] = a; out[1] = b; out[2] = y + z;
}
"""
CYCLES = """
KERNEL void k(u64* out) {
  u64 a = __builtin_readcyclecounter(); __builtin_amdgcn_s_sleep(2); u64 b = __builtin_readcyclecounter();
  out[0] = b - a;
}
"""


MEET = """
KERNEL void k(u64* out, u32 turns) {
  u32 wave = __builtin_amdgcn_readfirstlane(X / __builtin_amdgcn_wavefrontsize());
  u64 before = __builtin_readcyclecounter();
  if (wave == 1) for (u32 i = 0; i < turns; ++i) __builtin_amdgcn_s_sleep(4);
  __builtin_amdgcn_s_barrier();
  u64 after = __builtin_readcyclecounter();
  out[2 * wave] = before; out[2 * wave + 1] = after;
}
"""


def compiled(clang: str, folder: Any, source: str, name: str, *flags: str) -> bytes:
    other = () if name == "gfx90a" else ("--no-offload-arch=gfx90a", f"--offload-arch={name}")
    return compile_hip(clang, folder, source, *other, *flags)


@pytest.mark.parametrize("name", ["gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201", "gfx1250"])
def test_more_work_is_never_faster(name, require_tool, tmp_path):
    """More turns, and a larger stride up to a line for each lane, take more cycles; and coalesced ones the least."""
    code = compiled(require_tool("clang-22"), tmp_path, STRIDED, name)
    numbers = np.arange(1 << 16, dtype=np.uint32)

    def cycles(stride: int, turns: int) -> int:
        device, out = modelled(name), np.zeros(64, np.uint32)
        launch(device, code, "k", [numbers, out, np.uint32(stride), np.uint32(turns)])
        index = (np.arange(64)[:, None] * stride + np.arange(turns)) & 0xFFFF
        assert (out == numbers[index].sum(axis=1, dtype=np.uint32)).all()
        assert device.profile is not None and device.profile.cycles is not None
        return device.profile.cycles.total

    by_turns = [cycles(1, turns) for turns in range(1, 40, 3)]
    assert by_turns == sorted(by_turns) and by_turns[-1] > by_turns[0]
    by_stride = [cycles(stride, 16) for stride in (1, 2, 4, 8, 16, 32)]
    assert by_stride == sorted(by_stride) and by_stride[-1] > by_stride[0]


@pytest.mark.parametrize("name", ["gfx942", "gfx1030", "gfx1201", "gfx1250"])
def test_barriers_of_each_generation(name, require_tool, tmp_path):
    """In one part, and in two: the wave that came first goes on with the one that slept 100 times 256 cycles."""
    out, size = np.zeros(4, np.uint64), target(name).wave_sizes[0]
    launch(modelled(name), compiled(require_tool("clang-22"), tmp_path, MEET, name), "k", [out, np.uint32(100)],
           block=(2 * size, 1, 1))
    first, early, second, late = map(int, out)
    assert late - second >= 100 * 256 and abs(late - early) <= 64 and early - first >= 100 * 256


@pytest.mark.parametrize(("name", "cycles"), [("gfx1030", 13), ("gfx1100", 13)])
def test_results_of_rdna_are_there_after_five_cycles(name, cycles, require_tool, tmp_path):
    """Readings 1; three adds that wait for each other at 1, 6 and 11; one that does not at 12."""
    out = np.zeros(4, np.uint32)
    launch(modelled(name), compiled(require_tool("clang-22"), tmp_path, CHAIN, name), "k", [out, np.float32(1)],
           block=(32, 1, 1))
    assert out[1] - out[0] == cycles and out[2] == 10


@pytest.mark.parametrize("name", ["gfx90a", "gfx1030", "gfx1100", "gfx1201", "gfx1250"])
@pytest.mark.parametrize("kind", list(ClockKind))
def test_each_generations_clock(name, kind, require_tool, tmp_path):
    """s_memtime, SHADER_CYCLES, its halves, s_get_shader_cycles_u64; sleeping takes 128 cycles, or an instruction."""
    out = np.zeros(1, np.uint64)
    device = EmulatorDevice(target(name), options=LaunchOptions(clock=kind))
    launch(device, compiled(require_tool("clang-22"), tmp_path, CYCLES, name), "k", [out])
    low, high = (128, 220) if kind is ClockKind.MODEL else (2, 20)
    assert low <= out[0] <= high


def test_without_the_model_there_are_no_cycles():
    device = EmulatorDevice(target("gfx90a"))
    assert run_sample(device, sample("saxpy")) and device.profile is not None and device.profile.cycles is None


def test_the_words_of_the_option():
    assert [parse_clock(text) for text in ("", "instructions", "model")] == [
        ClockKind.INSTRUCTIONS, ClockKind.INSTRUCTIONS, ClockKind.MODEL]
    with pytest.raises(Invalid, match="clock `cycles`: give instructions or model"):
        parse_clock("cycles")
