"""The clock of the core counts executed instructions; s_memrealtime runs at the rate that the device names."""

from __future__ import annotations

import struct
import time
from itertools import accumulate

from emulated import ISA, LANES, Bench, code_object

from luthier_py.emulator.native.clocks import WALL_CLOCK_KHZ
from luthier_py.emulator.options.settings import Settings
from luthier_py.emulator.reading.discover import discover
from luthier_py.emulator.translation.host_functions import translate
from luthier_py.isa import Inst, sgpr, vgpr

BUFFER = ("s_load_dwordx2", sgpr(0, 2), sgpr(4, 2), 0)
END = ("s_endpgm",)
SETTINGS = Settings(LANES, 0xF0, ISA.target)


def decoded(rows: list[tuple[object, ...]]) -> dict[int, Inst]:
    """By address."""
    insts = [ISA.make(*row) for row in rows]
    return dict(zip(accumulate((inst.size_bytes for inst in insts), initial=0), insts, strict=False))


def stored(*pairs: int, at: int = 0) -> list[object]:
    """The 64-bit values in these scalar registers, one after the other, from ``at`` on."""
    rows: list[object] = [("s_waitcnt", 0), ("v_mov_b32", vgpr(1), at)]
    for number, pair in enumerate(pairs):
        rows += [("v_mov_b32", vgpr(2), sgpr(pair)), ("v_mov_b32", vgpr(3), sgpr(pair + 1)),
                 ISA.make("global_store_dwordx2", vgpr(1), vgpr(2, 2), sgpr(0, 2), offset=8 * number).raw]
    return rows


def readings(bench: Bench, data: bytes, groups: int = 1) -> tuple[int, ...]:
    content = bench.run(data, "k", groups).buffers[0]
    return struct.unpack(f"<{len(content) // 8}Q", content)


def test_the_wall_clock_and_the_computers():
    """Two launches, apart by a time that the host measures."""
    rows = [BUFFER, ("s_memrealtime", sgpr(8, 2)), *stored(8), END]
    bench, data, shown = Bench(bytes(8)), code_object({"k": rows}), []
    bench.run(data, "k")
    for pause in 0.05, 0:
        began = time.monotonic_ns()
        (cycles,) = readings(bench, data)
        shown.append((began, cycles * 1_000_000 // WALL_CLOCK_KHZ, time.monotonic_ns()))
        time.sleep(pause)
    for began, at, ended in shown:
        assert began - 1_000_000 // WALL_CLOCK_KHZ <= at <= ended


def test_differences_are_instructions_in_between():
    """In one block, and over 5 turns of a loop of 3; each reading counts itself."""
    rows = [BUFFER, ("s_memtime", sgpr(8, 2)), ("s_nop", 0), ("s_nop", 0), ("s_memtime", sgpr(10, 2)),
            ("s_mov_b32", sgpr(7), 5), "again:", ("s_sub_u32", sgpr(7), sgpr(7), 1), ("s_cmp_lg_u32", sgpr(7), 0),
            ("s_cbranch_scc1", "again"), ("s_memtime", sgpr(12, 2)), *stored(8, 10, 12), END]
    first, second, third = readings(Bench(bytes(24)), code_object({"k": rows}))
    assert (second - first, third - second) == (3, 1 + 5 * 3 + 1)


def test_the_clock_goes_on_from_launch_to_launch():
    """By what the launch before executed behind its reading, and this one in front of its own."""
    rows = [BUFFER, ("s_memtime", sgpr(8, 2)), *stored(8), END]
    bench, data = Bench(bytes(8)), code_object({"k": rows})
    first, second, third = (readings(bench, data)[0] for _ in range(3))
    instructions = bench.run(data, "k").profile.total
    assert second - first == third - second == instructions == len(rows)


def test_the_same_on_each_run_with_one_worker():
    """On a device of its own each time, work-groups and their waves in turn."""
    rows = [BUFFER, ("s_memtime", sgpr(8, 2)), ("s_lshl_b32", sgpr(7), sgpr(6), 3), ("s_barrier",),
            *stored(8, at=sgpr(7)), END]
    once, again = (readings(Bench(bytes(8 * 9)), code_object({"k": rows}), groups=9) for _ in range(2))
    assert once == again and len(set(once)) == 9


def test_who_reads_no_clock_pays_nothing():
    """No call and no counting in the code; and launches in which nobody looks are not summed up."""
    look, rest = ("s_memtime", sgpr(8, 2)), [("v_mov_b32", vgpr(4), 1)] * 40
    texts = [translate(discover(lambda pc, rows=rows: decoded(rows)[pc], 0), 0, SETTINGS)[0].ir
             for rows in ([*rest, END], [look, *rest, END])]
    assert ["@luthier_own_executed" in text for text in texts] == [False, True]
    bench, reads = Bench(bytes(8)), code_object({"k": [BUFFER, look, *stored(8), END]})
    first = readings(bench, reads)[0]
    bench.run(code_object({"k": [*rest, END]}), "k")
    assert readings(bench, reads)[0] - first == len([BUFFER, look, *stored(8), END])


def test_each_device_has_a_clock_of_its_own():
    """Whatever others of this process execute meanwhile; a new one begins at nothing."""
    rows = [BUFFER, ("s_memtime", sgpr(8, 2)), *stored(8), END]
    data, first, second = code_object({"k": rows}), Bench(bytes(8)), Bench(bytes(8))
    read = [readings(bench, data)[0] for bench in (first, second, second, first)]
    assert read == [2, 2, 2 + len(rows), 2 + len(rows)]


def test_waves_of_a_worker_count_together():
    """Work-group by work-group, as they are dispatched."""
    rows = [BUFFER, ("s_memtime", sgpr(8, 2)), ("s_lshl_b32", sgpr(7), sgpr(6), 3), *stored(8, at=sgpr(7)), END]
    times = readings(Bench(bytes(8 * 4)), code_object({"k": rows}), groups=4)
    assert {later - earlier for earlier, later in zip(times, times[1:], strict=False)} == {len(rows)}


def test_a_launch_that_spins_until_the_clock_has_advanced_ends():
    rows = [BUFFER, ("s_memtime", sgpr(8, 2)), ("s_waitcnt", 0), ("s_add_u32", sgpr(8), sgpr(8), 100_000),
            ("s_addc_u32", sgpr(9), sgpr(9), 0), "again:", ("s_memtime", sgpr(10, 2)), ("s_waitcnt", 0),
            ("s_sub_u32", sgpr(12), sgpr(10), sgpr(8)), ("s_subb_u32", sgpr(13), sgpr(11), sgpr(9)),
            ("s_cmp_lt_i32", sgpr(13), 0), ("s_cbranch_scc1", "again"), *stored(8, 10), END]
    until, read = readings(Bench(bytes(16)), code_object({"k": rows}))
    assert until <= read < until + 6 and LANES == 64
