"""Addresses that wrap: where the hardware's sums have 32 bits they come back, at the end of the 64 there is nothing."""

from __future__ import annotations

import struct

import pytest
from emulated import ISA, LANES, Bench, code_object

from luthier_py.base.errors import DeviceError
from luthier_py.isa import sgpr, vgpr

START = [("s_load_dwordx4", sgpr(8, 4), sgpr(4, 2), 0), ("s_waitcnt", 0), ("v_lshlrev_b32", vgpr(4), 2, vgpr(0))]
END = [("s_waitcnt", 0), ISA.make("global_store_dword", vgpr(4), vgpr(2), sgpr(10, 2)).raw, ("s_endpgm",)]


def shown(rows, scratch_bytes=16):
    """What every lane stored."""
    data = code_object({"k": [*START, *rows, *END]}, scratch_bytes=scratch_bytes)
    ran = Bench(bytes(4 * LANES), bytes(4 * LANES)).run(data, "k")
    return struct.unpack(f"<{LANES}I", ran.buffers[1])


@pytest.mark.parametrize("stored", ["scratch", "buffer"])
@pytest.mark.parametrize("loaded", ["scratch", "buffer"])
@pytest.mark.parametrize("uniform", [True, False])
def test_a_negative_register_and_an_immediate_in_private_memory(stored, loaded, uniform):
    """As clang writes it for arrays of three bytes; the address is 8 in all lanes, or 8 and 12."""
    lane = ("v_mov_b32", vgpr(5), 0) if uniform else ("v_and_b32", vgpr(5), 4, vgpr(4))
    rows = [lane, ("v_add_u32", vgpr(3), -12, vgpr(5)),
            access(stored, "store", vgpr(0)), access(loaded, "load", vgpr(2))]
    assert shown(rows) == tuple(range(LANES))


def access(kind, verb, data):
    """At v3 + 20."""
    if kind == "buffer":
        return ISA.make(f"buffer_{verb}_dword", data, vgpr(3), sgpr(0, 4), 0, offen=1, offset=20).raw
    operands = (vgpr(3), data) if verb == "store" else (data, vgpr(3))
    return ISA.make(f"scratch_{verb}_dword", *operands, "off", offset=20).raw


LAST = {
    "global_load_dword": (vgpr(2), vgpr(6, 2), "off"), "global_load_dwordx4": (vgpr(12, 4), vgpr(6, 2), "off"),
    "global_store_dword": (vgpr(6, 2), vgpr(2), "off"), "global_store_byte": (vgpr(6, 2), vgpr(2), "off"),
    "flat_load_ushort": (vgpr(2), vgpr(6, 2)), "flat_store_dwordx2": (vgpr(6, 2), vgpr(12, 2)),
    "global_atomic_add": (vgpr(6, 2), vgpr(2), "off"), "flat_atomic_add_x2": (vgpr(6, 2), vgpr(12, 2)),
    "s_load_dword": (sgpr(20), sgpr(12, 2), 0), "s_load_dwordx8": (sgpr(20, 8), sgpr(12, 2), 0),
}


@pytest.mark.parametrize("name", LAST)
@pytest.mark.parametrize("high, low", [(-1, -4), (-1, -1), (1 - (1 << 31) - 1, 0), (0x7FFFFFFF, -4)])
def test_the_last_addresses_and_those_with_the_highest_bit(name, high, low):
    """Null minus one is the usual way there; the sum of address and size must not come out small."""
    rows = [("v_mov_b32", vgpr(6), low), ("v_mov_b32", vgpr(7), high), ("s_mov_b32", sgpr(12), low),
            ("s_mov_b32", sgpr(13), high), ISA.make(name, *LAST[name]).raw]
    with pytest.raises(DeviceError) as caught:
        shown(rows)
    where = caught.value.where
    assert where.kernel == "k" and where.text.startswith(name)
    address = (high & 0xFFFFFFFF) << 32 | low & 0xFFFFFFFF & (-4 if name.startswith("s_") else -1)
    assert f" 0x{address:x}; " in str(caught.value) and "lane 0 of wave 0" in str(caught.value)
