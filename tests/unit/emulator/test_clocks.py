"""s_memtime and s_memrealtime run at the rates that the device names."""

from __future__ import annotations

import struct
import time

import pytest
from emulated import ISA, Bench, code_object

from luthier_py.emulator.clocks import CLOCK_KHZ, WALL_CLOCK_KHZ
from luthier_py.isa import sgpr, vgpr


@pytest.mark.parametrize("name, khz", [("s_memtime", CLOCK_KHZ), ("s_memrealtime", WALL_CLOCK_KHZ)])
def test_a_clock_and_the_computers(name, khz):
    """Two launches, apart by a time that the host measures."""
    rows = [
        ("s_load_dwordx2", sgpr(0, 2), sgpr(4, 2), 0), (name, sgpr(8, 2)), ("s_waitcnt", 0),
        ("v_mov_b32", vgpr(1), 0), ("v_mov_b32", vgpr(2), sgpr(8)), ("v_mov_b32", vgpr(3), sgpr(9)),
        ISA.make("global_store_dwordx2", vgpr(1), vgpr(2, 2), sgpr(0, 2)).raw, ("s_endpgm",),
    ]
    bench, data, readings = Bench(bytes(8)), code_object({"k": rows}), []
    bench.run(data, "k")
    for pause in 0.05, 0:
        began = time.monotonic_ns()
        (cycles,) = struct.unpack("<Q", bench.run(data, "k").buffers[0])
        readings.append((began, cycles * 1_000_000 // khz, time.monotonic_ns()))
        time.sleep(pause)
    for began, shown, ended in readings:
        assert began - 1_000_000 // khz <= shown <= ended
