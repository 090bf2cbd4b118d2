"""Global loads and stores in every width and pattern of addresses, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from memories import LANES, OFFSETS, PARTIAL, RNG, lanes_of, loaded, memory, pair
from waves import FULL, ISA, run

from luthier_py.emulator.records.layout import Status
from luthier_py.isa import sgpr, vgpr

LOADS = {
    "ubyte": (1, np.uint8), "sbyte": (1, np.int8), "ushort": (2, np.uint16), "sshort": (2, np.int16),
    "dword": (4, np.uint32), "dwordx2": (8, np.uint32), "dwordx3": (12, np.uint32), "dwordx4": (16, np.uint32),
}  # fmt: skip


@pytest.mark.parametrize("pattern", OFFSETS)
@pytest.mark.parametrize("mask", [FULL, PARTIAL])
def test_global_loads(pattern, mask):
    """With addresses in a register pair, and with a scalar base."""
    data = memory()
    active = lanes_of(mask)
    for name, (size, kind) in LOADS.items():
        offsets = OFFSETS[pattern](size)
        addresses = offsets + np.uint64(data.ctypes.data - 8)
        words = max(size // 4, 1)
        old = RNG.integers(0, 1 << 32, 64, dtype=np.uint64).astype(np.uint32)
        registers = {0: addresses, 2: offsets.astype(np.uint32), 8: old, 12: old}
        state = run([ISA.make(f"global_load_{name}", vgpr(4, words), vgpr(0, 2), "off", offset=8),
                     ISA.make(f"global_load_{name}", vgpr(8, words), vgpr(2), sgpr(0, 2), offset=4095)],
                    vgprs=registers, exec_mask=mask, memory=[data], sgprs=pair(data.ctypes.data - 4095))
        assert state.status is Status.JUMP, (name, state.fault())
        expected = loaded(data, offsets, size, kind)
        for word in range(words):
            np.testing.assert_array_equal(state.vgpr(4 + word)[active], expected[word][active], name)
            np.testing.assert_array_equal(state.vgpr(8 + word)[active], expected[word][active], name)
        assert (state.vgpr(4)[~active] == 0).all() and (state.vgpr(8)[~active] == old[~active]).all()


@pytest.mark.parametrize("pattern", ["consecutive", "strided", "backwards", "anywhere", "tiles"])
@pytest.mark.parametrize("mask", [FULL, PARTIAL])
def test_global_stores(pattern, mask):
    active = lanes_of(mask)
    values = RNG.integers(0, 1 << 32, (4, 64), dtype=np.uint64).astype(np.uint32)
    for name, size in (("byte", 1), ("short", 2), ("dword", 4), ("dwordx2", 8), ("dwordx3", 12), ("dwordx4", 16)):
        data = memory()
        expected = data.copy()
        offsets = OFFSETS[pattern](size)
        words = max(size // 4, 1)
        for lane in np.flatnonzero(active):
            raw = b"".join(int(values[w][lane]).to_bytes(4, "little") for w in range(words))[:size]
            expected[int(offsets[lane]) : int(offsets[lane]) + size] = np.frombuffer(raw, np.uint8)
        state = run(
            [ISA.make(f"global_store_{name}", vgpr(0, 2), vgpr(4, words), "off")],
            exec_mask=mask,
            memory=[data],
            vgprs={0: offsets + np.uint64(data.ctypes.data), **{4 + w: values[w] for w in range(4)}},
        )
        assert state.status is Status.JUMP, state.fault()
        np.testing.assert_array_equal(data, expected, name)


def test_halves_of_registers():
    """d16 loads clear the other half, on a target with SRAM-ECC; d16_hi stores take the high one."""
    data = memory()
    before = data.copy()
    old = RNG.integers(0, 1 << 32, 64, dtype=np.uint64).astype(np.uint32)
    address = LANES * 2 + np.uint64(data.ctypes.data)
    names = ["short_d16", "short_d16_hi", "ubyte_d16", "ubyte_d16_hi", "sbyte_d16", "sbyte_d16_hi"]
    code = [ISA.make(f"global_load_{name}", vgpr(4 + i), vgpr(0, 2), "off") for i, name in enumerate(names)]
    code += [ISA.make("global_store_short_d16_hi", vgpr(0, 2), vgpr(2), "off", offset=1024),
             ISA.make("global_store_byte_d16_hi", vgpr(0, 2), vgpr(2), "off", offset=2048)]
    state = run(code, vgprs={0: address, 2: old, **{4 + i: old for i in range(6)}}, memory=[data])
    shorts, bytes_ = before[:128].view(np.uint16), before[:128:2]
    signed = bytes_.astype(np.int8).astype(np.int16).view(np.uint16)
    for i, value in enumerate((shorts, shorts, bytes_, bytes_, signed, signed)):
        wide = value.astype(np.uint32)
        expected = wide << 16 if i % 2 else wide
        np.testing.assert_array_equal(state.vgpr(4 + i), expected, names[i])
    np.testing.assert_array_equal(data[1024:1152].view(np.uint16), (old >> 16).astype(np.uint16))
    np.testing.assert_array_equal(data[2048:2176:2], (old >> 16).astype(np.uint8))


def test_loads_over_their_own_addresses():
    data = memory()
    address = LANES[::-1] * 16 + np.uint64(data.ctypes.data)
    lds = data[:4096].copy()
    state = run(
        [
            ISA.make("global_load_dwordx4", vgpr(0, 4), vgpr(0, 2), "off"),
            ISA.make("ds_read2_b32", vgpr(6, 2), vgpr(6), offset0=1, offset1=0),
            ISA.make("ds_read_b64", vgpr(8, 2), vgpr(9)),
        ],
        vgprs={0: address, 6: (LANES[::-1] * 8).astype(np.uint32), 9: (LANES[::-1] * 8).astype(np.uint32)},
        memory=[data],
        lds=lds,
    )
    words = data.view(np.uint32).reshape(-1, 4)[:64][::-1]
    for word in range(4):
        np.testing.assert_array_equal(state.vgpr(word), words[:, word])
    pairs = lds.view(np.uint32).reshape(-1, 2)[:64][::-1]
    np.testing.assert_array_equal(state.vgpr(6), pairs[:, 1])
    np.testing.assert_array_equal(state.vgpr(7), pairs[:, 0])
    np.testing.assert_array_equal(state.vgpr(8), pairs[:, 0])
    np.testing.assert_array_equal(state.vgpr(9), pairs[:, 1])
