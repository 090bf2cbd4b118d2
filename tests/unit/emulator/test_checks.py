"""Each check on kernels of a few instructions: what is wrong is found, with its place, and what is right is not."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from emulated import ISA, KERNARG_BYTES, LANES, code_object
from launching import compile_hip

from luthier_py.base.errors import DeviceError, Invalid
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.options.checks import ALL, Checks, FindingKind, join_checks, parse_checks
from luthier_py.emulator.options.launch_options import LaunchOptions
from luthier_py.emulator.options.schedule import Schedule
from luthier_py.emulator.watching.findings import Finding
from luthier_py.isa import target
from luthier_py.isa.model.registers import EXEC, VCC, sgpr, vgpr

PLACE, WAVE = sgpr(8, 2), sgpr(12)
START = [("s_load_dwordx2", PLACE, sgpr(4, 2), 0), ("s_waitcnt", 0),
         ("v_and_b32", vgpr(1), 0x3FF, vgpr(0)), ("v_lshlrev_b32", vgpr(2), 2, vgpr(1)),
         ("v_readfirstlane_b32", WAVE, vgpr(1)), ("s_lshr_b32", WAVE, WAVE, 6), ("v_mov_b32", vgpr(3), 7)]
END, BARRIER, WAIT = ("s_endpgm",), ("s_barrier",), ("s_waitcnt", 0)
ONE_LANE = ("s_mov_b64", sgpr(EXEC, 2), 1)
ACQUIRE = ISA.parse("buffer_wbinvl1_vol").raw


def made(name: str, *operands: Any, **modifiers: int) -> bytes:
    return ISA.make(name, *operands, **modifiers).raw


def load_at(offset: int = 0, target: int = 4, **modifiers: int) -> bytes:
    return made("global_load_dword", vgpr(target), vgpr(2), PLACE, offset=offset, **modifiers)


def store_at(offset: int = 0, **modifiers: int) -> bytes:
    return made("global_store_dword", vgpr(2), vgpr(3), PLACE, offset=offset, **modifiers)


LDS_WRITE, LDS_READ = made("ds_write_b32", vgpr(2), vgpr(3)), made("ds_read_b32", vgpr(4), vgpr(5))
NEXT_WAVES = ("v_xor_b32", vgpr(5), 0x100, vgpr(2))  # 4 * the work-item of the other of two waves


@dataclass(frozen=True, slots=True)
class Outcome:
    findings: list[Finding]
    data: tuple[int, ...]

    @property
    def kinds(self) -> list[FindingKind]:
        return [finding.kind for finding in self.findings]


def run(rows: Sequence[Any], checks: Checks = ALL, groups: int = 1, waves: int = 1, words: int = 256, lds: int = 1024,
        scratch: int = 0, seed: int | None = None, written: bool = True, kernel: str = "k") -> Outcome:
    """A buffer of ``words``, each its number if ``written``."""
    schedule = None if seed is None else Schedule(seed)
    device = EmulatorDevice(ISA.target, options=LaunchOptions(schedule=schedule, checks=checks))
    buffer = device.alloc(4 * words)
    if written:
        device.write(buffer.address, struct.pack(f"<{words}I", *range(words)))
    module = device.load(code_object({kernel: [*START, *rows]}, (kernel,), lds_bytes=lds, scratch_bytes=scratch))
    kernarg = struct.pack("<Q", buffer.address).ljust(KERNARG_BYTES, b"\0")
    device.launch(module.kernel(kernel), (groups, 1, 1), (LANES * waves, 1, 1), kernarg)
    return Outcome(device.findings, struct.unpack(f"<{words}I", device.read(buffer.address, 4 * words)))


# Bounds

def test_one_past_the_end_is_told_once_and_left_out():
    done = run([load_at(4), WAIT, made("global_store_dword", vgpr(2), vgpr(4), PLACE), END], words=64)
    (found,) = done.findings
    assert found.kind is FindingKind.BOUNDS and found.who.lane == 63 and found.count == 1
    assert "just past the end" in found.what and found.where.text.startswith("global_load_dword v4")
    assert done.data == (*range(1, 64), 0)  # what is not there reads 0


def test_stores_past_the_end_write_nothing():
    done = run([store_at(128), END], words=64)
    (found,) = done.findings
    assert (found.kind, found.who.lane, found.count) == (FindingKind.BOUNDS, 32, 32)
    assert done.data == (*range(32), *[7] * 32)


def test_without_the_check_the_launch_ends():
    with pytest.raises(DeviceError, match="bad address"):
        run([load_at(4), WAIT, END], Checks.RACES, words=64)


def test_lds_scratch_and_scalar_loads_have_bounds():
    beyond = [("v_add_u32", vgpr(5), 4, vgpr(2)), LDS_READ, ("s_waitcnt", 0), END]
    (found,) = run(beyond, Checks.BOUNDS, lds=256).findings
    assert found.who.lane == 63 and "in LDS, out of bounds of the work-group's 256 bytes" in found.what
    (found,) = run([("s_load_dword", sgpr(10), PLACE, 256), WAIT, END], Checks.BOUNDS, words=64).findings
    assert "just past the end" in found.what


def test_unaligned_addresses():
    (found,) = run([load_at(1), WAIT, END], Checks.ALIGNMENT, words=65).findings
    assert not run([load_at(1), WAIT, END], words=65).findings
    assert found.kind is FindingKind.ALIGNMENT and found.what.endswith("is no multiple of 4")
    assert not run([made("global_load_ubyte", vgpr(4), vgpr(2), PLACE, offset=1), WAIT, END]).findings


# Waits

def test_a_register_used_before_its_load():
    done = run([load_at(), ("v_add_u32", vgpr(4), 1, vgpr(4)), WAIT, END])
    (found,) = done.findings
    assert found.kind is FindingKind.WAIT and found.what.startswith("v4 is used before")
    assert found.where.text.startswith("v_add_u32") and found.other is not None
    assert found.other.text.startswith("global_load_dword v4")


@pytest.mark.parametrize("count, found", [(0, False), (1, False), (2, True)])
def test_loads_come_in_order(count, found):
    """Of two, a wait for all but one is enough for the first."""
    vm = 0x0F70 | count
    rows = [load_at(0, 4), load_at(4, 5), ("s_waitcnt", vm), ("v_add_u32", vgpr(6), 1, vgpr(4)), WAIT, END]
    assert bool(run(rows).findings) is found


def test_scalar_loads_come_in_any_order():
    loads = [("s_load_dword", sgpr(10), PLACE, 0), ("s_load_dword", sgpr(11), PLACE, 4)]
    use = ("s_add_u32", sgpr(10), sgpr(10), 1)
    assert run([*loads, ("s_waitcnt", 0xC17F), use, WAIT, END]).kinds == [FindingKind.WAIT]
    assert not run([*loads, ("s_waitcnt", 0xC07F), use, END]).findings


def test_a_write_before_the_load_has_come():
    assert run([load_at(), ("v_mov_b32", vgpr(4), 1), WAIT, END]).kinds == [FindingKind.WAIT]
    assert not run([load_at(), load_at(4), WAIT, END]).findings  # which come in order


# Races

EXCHANGE = [NEXT_WAVES, LDS_WRITE, WAIT, BARRIER, LDS_READ, WAIT, END]


def test_a_barrier_orders_what_was_waited_for():
    assert not run(EXCHANGE, waves=2).findings
    found = run([row for row in EXCHANGE if row is not BARRIER], Checks.RACES, waves=2).findings
    assert {finding.kind for finding in found} == {FindingKind.RACE}
    assert "a write and a read of" in found[0].what and "in LDS" in found[0].what
    assert {found[0].who.wave, found[0].other_who.wave} == {0, 1} and found[0].other is not None
    (unwaited,) = run([NEXT_WAVES, LDS_WRITE, BARRIER, LDS_READ, WAIT, END], waves=2).findings
    assert "the write was not waited for before the barrier" in unwaited.what


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_races_show_by_every_schedule(seed):
    rows = [row for row in EXCHANGE if row is not BARRIER]
    assert FindingKind.RACE in run(rows, Checks.RACES, waves=2, seed=seed).kinds
    assert not run(EXCHANGE, waves=2, seed=seed).findings


def test_work_groups_race_in_memory():
    (found,) = run([("v_mov_b32", vgpr(3), sgpr(6)), store_at(), END], groups=2).findings
    assert found.kind is FindingKind.RACE and "two writes" in found.what
    assert (found.other_who.group, found.who.group) == (0, 1)
    assert not run([store_at(), END], groups=2).findings  # of the same value


def test_atomics_do_not_race():
    add = made("global_atomic_add", vgpr(2), vgpr(3), PLACE)
    assert not run([add, END], groups=3, waves=2, words=128).findings
    assert FindingKind.RACE in run([add, WAIT, load_at(), WAIT, END], groups=2).kinds


SWAP = made("global_atomic_cmpswap", vgpr(8), vgpr(2), vgpr(6, 2), PLACE, glc=1)
SWAP_ELSEWHERE = made("global_atomic_cmpswap", vgpr(8), vgpr(2), vgpr(6, 2), PLACE, glc=1, offset=512)
GUESS = load_at(0, 7)
SWAP_IN_LDS = made("ds_cmpst_rtn_b32", vgpr(6), vgpr(2), vgpr(4), vgpr(3))
GUESS_IN_LDS = made("ds_read_b32", vgpr(4), vgpr(2))


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_a_load_that_a_compare_and_swap_confirms_is_no_race(seed):
    """What compilers make of atomics that a GPU has not begins with a plain load."""
    new = ("v_mov_b32", vgpr(6), 9)
    for attempt in ([GUESS, WAIT, SWAP, WAIT], [GUESS, WAIT, SWAP, WAIT, GUESS, WAIT, SWAP, WAIT]):
        assert not run([new, *attempt, END], groups=3, waves=2, words=128, seed=seed).findings
    assert not run([new, GUESS, WAIT, SWAP, WAIT, END], Checks.RACES, groups=12, waves=4, seed=seed).findings  # many
    one_address = ("v_mov_b32", vgpr(2), 0)
    in_lds = [one_address, made("ds_add_u32", vgpr(2), vgpr(3)), WAIT, BARRIER, GUESS_IN_LDS, WAIT, SWAP_IN_LDS, WAIT]
    assert not run([*in_lds, END], Checks.RACES, waves=4, seed=seed).findings


@pytest.mark.parametrize("rows", [
    [GUESS, WAIT, SWAP_ELSEWHERE, WAIT, made("global_atomic_add", vgpr(2), vgpr(3), PLACE)],
    [GUESS, WAIT, SWAP, WAIT, GUESS, WAIT], [GUESS, WAIT, load_at(), WAIT, SWAP, WAIT],
    [load_at(), WAIT, made("global_atomic_add", vgpr(6), vgpr(2), vgpr(3), PLACE, glc=1)],
])
def test_other_loads_beside_atomics_are_races(rows):
    assert run([("v_mov_b32", vgpr(6), 9), *rows, WAIT, END], Checks.RACES, groups=3).kinds.count(FindingKind.RACE)


def passing(waits: bool, acquires: bool = True) -> list[Any]:
    """Work-group 0 writes a word, then a flag; work-group 1 looks at the flag until it is set, then reads the word."""
    flag_set, look = store_at(128), load_at(128, 5, glc=1)
    producer = [store_at(), *([WAIT] * waits), flag_set, END]
    return [ONE_LANE, ("s_cmp_eq_u32", sgpr(6), 0), ("s_cbranch_scc0", "consumer"), *producer,
            "consumer:", look, WAIT, ("v_cmp_ne_u32", sgpr(VCC, 2), 7, vgpr(5)), ("s_cbranch_vccnz", "consumer"),
            *([ACQUIRE] * acquires), load_at(), WAIT, END]


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_flags_order_what_was_waited_for(seed):
    assert not run(passing(True), groups=2, seed=seed).findings
    for rows in (passing(False), passing(True, False)):
        assert run(rows, Checks.RACES, groups=2, seed=seed).kinds == [FindingKind.RACE]


def byte_of_wave(wave: int, *rows: Any) -> list[Any]:
    """One lane of this wave does something with byte 0, and wave 1 writes byte 1."""
    return [ONE_LANE, ("v_mov_b32", vgpr(5), 0), ("s_cmp_eq_u32", WAVE, wave), ("s_cbranch_scc1", "does"),
            ("s_cmp_lg_u32", WAVE, 1), ("s_cbranch_scc1", "end"), made("ds_write_b8", vgpr(5), vgpr(3), offset=1),
            ("s_branch", "end"), "does:", *rows, "end:"]


@pytest.mark.parametrize("first, then", [
    (made("ds_write_b8", vgpr(5), vgpr(3)), made("ds_read_u8", vgpr(4), vgpr(5))),
    (made("ds_read_u8", vgpr(4), vgpr(5)), made("ds_write_b8", vgpr(5), vgpr(2))),
    (made("ds_write_b8", vgpr(5), vgpr(3)), made("ds_read_b32", vgpr(4), vgpr(5))),
])
def test_bytes_race_each_for_itself(first: bytes, then: bytes):
    rows = [*byte_of_wave(0, first), ("s_cmp_lg_u32", WAVE, 2), ("s_cbranch_scc1", "out"), then, WAIT, "out:", END]
    found = run(rows, Checks.RACES, waves=3).findings
    wide = "read_b32" in str(ISA.decode(then).op.mnemonic)
    assert [(each.kind, each.other_who.wave, each.count) for each in found] == [
        (FindingKind.RACE, wave, 1) for wave in ((0, 1) if wide else (0,))]
    assert not run([*byte_of_wave(0, first), END], Checks.RACES, waves=2).findings  # two bytes


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_flags_that_are_handed_on(seed):
    """A ticket lock: who has seen the flag that another set sets it next."""
    look, add = load_at(0, 5, glc=1), made("global_load_dword", vgpr(6), vgpr(2), PLACE, offset=128)
    waiting = ["again:", look, WAIT, ("v_readfirstlane_b32", sgpr(10), vgpr(5)),
               ("s_cmp_lg_u32", sgpr(10), sgpr(6)), ("s_cbranch_scc1", "again")]
    rows = [ACQUIRE, add, WAIT, ("v_add_u32", vgpr(6), 1, vgpr(6)),
            made("global_store_dword", vgpr(2), vgpr(6), PLACE, offset=128), WAIT,
            ("s_add_u32", sgpr(10), sgpr(6), 1), ("v_mov_b32", vgpr(5), sgpr(10)),
            made("global_store_dword", vgpr(2), vgpr(5), PLACE), END]
    done = run([ONE_LANE, *waiting, *rows], groups=4, seed=seed)
    assert not done.findings and (done.data[0], done.data[32]) == (4, 32 + 4)
    found = run([ONE_LANE, *rows], Checks.RACES, groups=4, seed=seed).findings
    assert sum("two writes" in each.what for each in found) == 2  # of the number, and of the flag


def test_where_checks_stop_is_told():
    told = []
    device = EmulatorDevice(ISA.target, options=LaunchOptions(checks=Checks.RACES), report=told.append)
    for size, left_out in ((31 << 20, False), (33 << 20, True)):
        buffer = device.alloc(size)
        rows = [*START, ("s_mov_b32", sgpr(10), 0), ("v_mov_b32", vgpr(2), 0), "again:", store_at(),
                ("v_add_u32", vgpr(2), 4096, vgpr(2)), ("s_add_u32", sgpr(10), sgpr(10), 4096),
                ("s_cmp_lt_u32", sgpr(10), size), ("s_cbranch_scc1", "again"), END]
        module = device.load(code_object({"k": rows}))
        kernarg = struct.pack("<Q", buffer.address).ljust(KERNARG_BYTES, b"\0")
        device.launch(module.kernel("k"), (1, 1, 1), (1, 1, 1), kernarg)
        assert any("in the first 32 MiB" in words for words in told[-1].left_out) == left_out


# What was never written

def test_memory_that_nobody_wrote():
    (found,) = run([load_at(), WAIT, END], written=False).findings
    assert found.kind is FindingKind.MEMORY and found.count == 64 and "in memory" in found.what
    (found,) = run([("v_mov_b32", vgpr(5), vgpr(2)), LDS_READ, WAIT, END]).findings
    assert found.kind is FindingKind.MEMORY and "in LDS" in found.what
    assert not run([store_at(), WAIT, load_at(), WAIT, END], written=False).findings


@pytest.mark.parametrize("rows, decides", [
    ([("v_mov_b32", vgpr(2), vgpr(9)), load_at()], "is an address"),
    ([("s_cmp_eq_u32", sgpr(20), 0), ("s_cbranch_scc1", "end")], "decides a branch"),
    ([("v_cmp_eq_u32", sgpr(VCC, 2), 0, vgpr(9)), ("s_and_saveexec_b64", sgpr(14, 2), sgpr(VCC, 2))],
     "decides which lanes"),
    ([made("global_store_dword", vgpr(2), vgpr(9), PLACE)], "is stored"),
])
def test_registers_that_nobody_wrote(rows, decides):
    found = run([*rows, WAIT, "end:", END], Checks.INIT).findings
    assert found and found[0].kind is FindingKind.REGISTER and decides in found[0].what


@pytest.mark.parametrize("rows", [
    [("v_mov_b32", vgpr(9), vgpr(8)), ("v_add_u32", vgpr(9), 1, vgpr(9))],          # nobody looks at it
    [("s_and_b64", sgpr(14, 2), sgpr(20, 2), 0), ("s_and_saveexec_b64", sgpr(16, 2), sgpr(14, 2))],
    [("v_cndmask_b32", vgpr(9), vgpr(8), vgpr(2), sgpr(EXEC, 2)), made("global_store_dword", vgpr(2), vgpr(9), PLACE)],
])
def test_copies_and_bits_that_do_not_matter(rows):
    assert not run([*rows, WAIT, END], Checks.INIT).findings


PAIRS = [("v_mov_b32", vgpr(number), vgpr(2)) for number in (12, 14, 15, 16, 17)]  # v13 and v18 to v31: nobody's
STORE_LOW, STORE_HIGH = (made("global_store_dword", vgpr(2), vgpr(register), PLACE) for register in (8, 9))


@pytest.mark.parametrize("text, low, high", [
    ("v_pk_fma_f32 v[8:9], v[14:15], v[12:13], v[16:17] op_sel_hi:[1,0,1]", True, True),
    ("v_pk_fma_f32 v[8:9], v[14:15], v[12:13], v[16:17]", True, False),
    ("v_pk_mul_f32 v[8:9], v[14:15], v[12:13] op_sel:[0,1] op_sel_hi:[1,0]", False, True),
    ("v_pk_add_f32 v[8:9], v[12:13], v[14:15] op_sel_hi:[0,1]", True, True),
    ("v_pk_mov_b32 v[8:9], v[14:15], v[12:13] op_sel:[0,0]", True, True),
    ("v_pk_mov_b32 v[8:9], v[12:13], v[14:15] op_sel:[1,0]", False, True),
    ("v_mad_u64_u32 v[8:9], vcc, v14, v15, v[12:13]", True, False),
    ("v_lshlrev_b64 v[8:9], 3, v[12:13]", True, False),
    ("v_lshrrev_b64 v[8:9], 3, v[12:13]", True, False),  # what comes down of v13 may be cut off
    ("v_swap_b32 v8, v9", False, True),
])
def test_dwords_of_pairs_that_nobody_wrote(text, low, high):
    """Which dwords are read is what op_sel, op_sel_hi and the operation say."""
    rows = [*PAIRS, ("v_mov_b32", vgpr(8), vgpr(2)), ISA.parse(text).raw]
    for store, defined in ((STORE_LOW, low), (STORE_HIGH, high)):
        assert bool(run([*rows, store, END], Checks.INIT).findings) != defined, store


HALVES = """
KERNEL void halves(_Float16 *out, const _Float16 *in) {
  int i = X;
  _Float16 x = in[i], y = x * (_Float16)2 + (_Float16)1;
  if (y > (_Float16)3) y = y - x;
  out[i] = (_Float16)((float)y * (float)x + (float)x);
}
KERNEL void turned(volatile int *out, const int *in) {
  SHARED static volatile int s[128];
  s[X] = in[X];
  out[X] = s[127 - X];
}
"""


@pytest.fixture(scope="module")
def compiled(require_tool, tmp_path_factory) -> Any:
    clang, folder = require_tool("clang-22"), tmp_path_factory.mktemp("checks")
    return lambda gpu: compile_hip(clang, folder, HALVES, "--no-offload-arch=all", f"--offload-arch={gpu}")


@pytest.mark.parametrize("gpu", ["gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"])
def test_halves_of_registers_and_volatile_memory_of_the_group(gpu: str, compiled: Any) -> None:
    device = EmulatorDevice(target(gpu), options=LaunchOptions(checks=ALL))
    module, buffers = device.load(compiled(gpu)), [device.alloc(512) for _ in range(2)]
    device.write(buffers[1].address, bytes(range(256)) * 2)
    arguments = struct.pack("<QQ", *(each.address for each in buffers)).ljust(KERNARG_BYTES, b"\0")
    device.launch(module.kernel("halves"), (1, 1, 1), (128, 1, 1), arguments)
    assert not device.findings
    device.launch(module.kernel("turned"), (1, 1, 1), (128, 1, 1), arguments)
    assert FindingKind.RACE in {each.kind for each in device.findings}


# Barriers

def test_barriers_to_which_not_all_come():
    enter = ("s_and_saveexec_b64", sgpr(14, 2), sgpr(VCC, 2))
    some = [("v_cmp_gt_u32", sgpr(VCC, 2), 10, vgpr(1)), enter, BARRIER, END]
    (found,) = run(some).findings
    assert found.kind is FindingKind.BARRIER and found.what.startswith("54 lanes")
    alone = [("s_cmp_eq_u32", WAVE, 1), ("s_cbranch_scc1", "end"), BARRIER, "end:", END]
    assert "wave 1 of the work-group ended" in run(alone, waves=2).findings[0].what
    apart = [("s_cmp_eq_u32", WAVE, 1), ("s_cbranch_scc1", "other"), BARRIER, END, "other:", BARRIER, END]
    (found,) = run(apart, waves=2).findings
    assert "came to another barrier" in found.what and found.other is not None
    assert not run([BARRIER, BARRIER, END], waves=4).findings


def test_waves_of_openmp_may_part() -> None:
    """Its runtime counts waves at barriers: one lane comes for all, and workers end before the others."""
    region = "__omp_offloading_fe00_2b_main_l14"
    parting = [("s_cmp_eq_u32", WAVE, 1), ("s_cbranch_scc1", "end"), ONE_LANE, BARRIER, "end:", END]
    assert not run(parting, waves=2, kernel=region).findings and len(run(parting, waves=2).findings) == 2


def test_each_way_to_miss_a_barrier_is_told():
    """A bound inside of a wave: some lanes of it do not come, and later waves not at all."""
    bounded = [("v_cmp_gt_u32", sgpr(VCC, 2), 80, vgpr(1)), ("s_and_saveexec_b64", sgpr(14, 2), sgpr(VCC, 2)),
               ("s_cbranch_execz", "end"), BARRIER, "end:", END]
    found = {each.what: each for each in run(bounded, Checks.BARRIERS, waves=4).findings}
    some, alone = sorted(found, reverse=True)
    assert alone.startswith("48 lanes of the wave") and some.startswith("wave ") and "ended" in some
    assert (found[alone].who.wave, found[alone].who.lane, found[alone].count) == (1, 16, 1)


def test_checks_as_text():
    assert parse_checks("all") == ALL and parse_checks("") is Checks.NONE
    assert parse_checks("races, waits") == Checks.RACES | Checks.WAITS
    assert join_checks(Checks.RACES | Checks.WAITS | Checks.TOUCHED) == "waits,races"
    with pytest.raises(Invalid, match="there are bounds, alignment"):
        parse_checks("everything")


def test_findings_as_data():
    (found,) = run([load_at(4), WAIT, END], words=64).findings
    facts = found.facts()
    assert facts["kind"] == "bounds" and facts["by"] == {"work_group": 0, "wave": 0, "lane": 63}
    assert facts["other_at"] is None and facts["count"] == 1
