"""Rows that a wave has to find cleared, and that others than these may hold anything."""

from __future__ import annotations

import struct

import pytest
from emulated import ISA, LANES, Bench, code_object

from luthier_py.emulator.reading.discover import discover
from luthier_py.emulator.reading.first_reads import rows_read_first
from luthier_py.emulator.reading.liveness import EVERYTHING
from luthier_py.isa import EXEC, VCC, sgpr, vgpr
from luthier_py.isa.encoding.instruction import Inst

END = ("s_endpgm",)
HALF = ("s_mov_b32", sgpr(EXEC + 1), 0)


def rows_of(*rows):
    """What is read first, as a list of registers."""
    found = rows_read_first(discover(_decoder(rows), 0), 0)
    return found if found == EVERYTHING else [row for row in range(512) if found >> row & 1]


def _decoder(rows):
    insts: dict[int, Inst] = {}
    pc = 0
    for row in rows:
        insts[pc] = row if isinstance(row, Inst) else ISA.make(*row)
        pc += insts[pc].size_bytes
    return insts.__getitem__


@pytest.mark.parametrize(("rows", "expected"), [
    ([("v_mov_b32", vgpr(1), vgpr(0)), ("v_add_u32", vgpr(2), vgpr(1), vgpr(3))], [0, 3]),
    ([("v_mov_b32", vgpr(1), 0), HALF, ("v_mov_b32", vgpr(2), vgpr(1))], []),
    ([HALF, ("v_mov_b32", vgpr(1), 0), ("v_mov_b32", vgpr(2), vgpr(1))], []),
    ([HALF, ("v_mov_b32", vgpr(1), 0), ("s_mov_b64", sgpr(EXEC, 2), -1), ("v_mov_b32", vgpr(2), vgpr(1))], [1]),
    ([("v_mov_b32", vgpr(1), 0), ("v_readlane_b32", sgpr(0), vgpr(1), 3)], [1]),
    ([("v_writelane_b32", vgpr(1), sgpr(0), 3), ("v_mov_b32", vgpr(2), vgpr(1))], [1]),
    ([("s_swappc_b64", sgpr(0, 2), sgpr(2, 2))], EVERYTHING),
])
def test_what_is_read_first(rows, expected):
    assert rows_of(*rows, END) == expected


def test_a_register_that_one_of_two_ways_writes():
    skip = ISA.make("s_cbranch_scc1", 1)
    assert rows_of(skip, ("v_mov_b32", vgpr(1), 0), ("v_mov_b32", vgpr(2), vgpr(1)), END) == [1]


def test_what_the_wave_before_left_is_not_seen():
    """Launch after launch in the same memory: v5 counts up from 0 in each work-group."""
    rows = [
        ("s_load_dwordx4", sgpr(0, 4), sgpr(4, 2), 0), ("s_waitcnt", 0), ("v_lshlrev_b32", vgpr(1), 2, vgpr(0)),
        ("v_cmp_gt_u32", sgpr(VCC, 2), 9, vgpr(0)), ("s_and_saveexec_b64", sgpr(8, 2), sgpr(VCC, 2)),
        ("v_add_u32", vgpr(5), 7, vgpr(5)), ("s_mov_b64", sgpr(EXEC, 2), sgpr(8, 2)),
        ISA.make("global_store_dword", vgpr(1), vgpr(5), sgpr(0, 2)).raw, ("s_endpgm",),
    ]
    bench = Bench(bytes(4 * LANES), bytes(4))
    data = code_object({"k": rows})
    module = bench.device.load(data, "k")
    kernel, kernarg = module.kernel("k"), struct.pack("<2Q", *(one.address for one in bench.buffers)).ljust(256, b"\0")
    for _ in range(3):
        bench.device.launch(kernel, (3, 1, 1), (LANES, 1, 1), kernarg)
        found = struct.unpack(f"<{LANES}I", bench.device.read(bench.buffers[0].address, 4 * LANES))
        assert found == (7,) * 9 + (0,) * (LANES - 9)
