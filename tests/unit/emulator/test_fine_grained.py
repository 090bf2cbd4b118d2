"""Float atomics in fine-grained memory do nothing and give 0, integer ones work (AMD, "Hardware atomics operation
support": MI200); and bytes behind an allocation that kernels may touch."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from emulated import ISA, LANES, Bench, code_object

from luthier_py.base.errors import DeviceError
from luthier_py.emulator.memory.device_memory import Allocation, Memory
from luthier_py.emulator.options.checks import Checks, FindingKind
from luthier_py.isa import sgpr, target, vgpr

OLD = struct.pack("<d", 3.0)
ONE = {"f32": (0x3F800000,), "pk": (0x3C003C00,), "f64": (0, 0x3FF00000), "u32": (1,), "u64": (1, 0)}
ATOMICS = {
    "global_atomic_add_f32": "f32", "global_atomic_pk_add_f16": "pk", "global_atomic_add_f64": "f64",
    "global_atomic_min_f64": "f64", "global_atomic_max_f64": "f64", "global_atomic_add": "u32",
    "global_atomic_umax_x2": "u64", "global_atomic_swap": "u32", "global_atomic_cmpswap": "u32",
}  # fmt: skip
FLOATS = ("f32", "pk", "f64")


def atomic(kind, name, returns):
    """In the first buffer; what it gives back, or 7, in the second."""
    words = ONE[kind] * (2 if "cmpswap" in name else 1)
    data = [("v_mov_b32", vgpr(2 + i), word) for i, word in enumerate(words)]
    size = 2 if "64" in kind else 1
    operands = (vgpr(1), vgpr(2, len(words)), sgpr(0, 2))
    inst = ISA.make(name, vgpr(8, size), *operands, glc=1) if returns else ISA.make(name, *operands)
    return code_object({"k": [
        ("s_load_dwordx4", sgpr(0, 4), sgpr(4, 2), 0), ("s_waitcnt", 0), ("v_mov_b32", vgpr(1), 0),
        ("v_mov_b32", vgpr(8), 7), ("v_mov_b32", vgpr(9), 7), *data, inst.raw, ("s_waitcnt", 0),
        ISA.make("global_store_dwordx2", vgpr(1), vgpr(8, 2), sgpr(2, 2)).raw, ("s_endpgm",),
    ]})  # fmt: skip


def run(name, returns, fine):
    bench = Bench(OLD, bytes(8))
    memory, address = bench.device.memory, bench.buffers[0].address
    memory.register(replace(memory.find(address), fine=fine))
    ran = bench.run(atomic(ATOMICS[name], name, returns), "k")
    return ran.buffers


@pytest.mark.parametrize("returns", [False, True])
@pytest.mark.parametrize("name", ATOMICS)
def test_what_is_dropped(name, returns):
    kind, size = ATOMICS[name], 8 if "64" in ATOMICS[name] else 4
    coarse, fine = run(name, returns, fine=False), run(name, returns, fine=True)
    if kind in FLOATS:
        given = bytes(size) if returns else b""
        assert fine == (OLD, given + struct.pack("<2I", 7, 7)[len(given) :])
        assert coarse[0] != OLD or name == "global_atomic_max_f64"
    else:
        assert fine == coarse


@pytest.mark.parametrize("name", ATOMICS)
def test_what_is_dropped_is_told(name):
    for fine in (False, True):
        bench = Bench(OLD, bytes(8))
        bench.device.options = replace(bench.device.options, checks=Checks.HARDWARE)
        memory, address = bench.device.memory, bench.buffers[0].address
        memory.register(replace(memory.find(address), fine=fine))
        bench.run(atomic(ATOMICS[name], name, True), "k")
        found = [(each.kind, each.address) for each in bench.device.findings]
        assert found == [(FindingKind.HARDWARE, address)] * (fine and ATOMICS[name] in FLOATS)


def test_one_instruction_in_memory_of_both_kinds():
    """Every second lane's is fine-grained: what an instruction remembers of its last access is of no other kind."""
    rows = [
        ("s_load_dwordx4", sgpr(0, 4), sgpr(4, 2), 0), ("s_waitcnt", 0), ("v_and_b32", vgpr(1), 1, vgpr(0)),
        ("v_cmp_eq_u32", sgpr(106, 2), 1, vgpr(1)), ("v_mov_b32", vgpr(2), sgpr(0)), ("v_mov_b32", vgpr(3), sgpr(2)),
        ("v_cndmask_b32", vgpr(4), vgpr(2), vgpr(3), sgpr(106, 2)), ("v_mov_b32", vgpr(2), sgpr(1)),
        ("v_mov_b32", vgpr(3), sgpr(3)), ("v_cndmask_b32", vgpr(5), vgpr(2), vgpr(3), sgpr(106, 2)),
        ("v_mov_b32", vgpr(6), 0x3F800000),
        ISA.make("global_atomic_add_f32", vgpr(4, 2), vgpr(6), "off").raw,
        ("s_endpgm",),
    ]
    bench = Bench(bytes(4), bytes(4))
    memory = bench.device.memory
    memory.register(replace(memory.find(bench.buffers[1].address), fine=True))
    ran = bench.run(code_object({"k": rows}), "k")
    assert ran.buffers == (struct.pack("<f", LANES / 2), bytes(4))


def test_targets():
    assert not target("gfx90a").fabric_float_atomics and not target("gfx908").fabric_float_atomics
    assert target("gfx942").fabric_float_atomics and target("gfx950").fabric_float_atomics


def test_bytes_behind_the_end():
    rows = [
        ("s_load_dwordx4", sgpr(0, 4), sgpr(4, 2), 0), ("s_waitcnt", 0), ("v_mov_b32", vgpr(1), 0),
        ISA.make("global_load_dwordx4", vgpr(4, 4), vgpr(1), sgpr(0, 2)).raw, ("s_waitcnt", 0),
        ISA.make("global_store_dwordx4", vgpr(1), vgpr(4, 4), sgpr(2, 2)).raw, ("s_endpgm",),
    ]
    data = code_object({"k": rows})
    bench = Bench(struct.pack("<3I", 1, 2, 3), bytes(16))
    with pytest.raises(DeviceError, match="bad address"):
        bench.run(data, "k")
    memory = bench.device.memory
    memory.register(replace(memory.find(bench.buffers[0].address), spare=4))
    assert bench.run(data, "k").buffers[1] == struct.pack("<4I", 1, 2, 3, 0)


def test_rows_of_the_table():
    memory = Memory()
    place = memory.reserve(4096)
    assert memory.register(Allocation(place, 100, "a", writable=False)).row == (place, place + 100, 0)
    assert memory.register(Allocation(place, 100, "a", fine=True, spare=28)).row == (place, place + 128, 3)
