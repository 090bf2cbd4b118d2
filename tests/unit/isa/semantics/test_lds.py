"""LDS loads and stores, single and in pairs, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from memories import LANES, OFFSETS, PARTIAL, RNG, lanes_of, loaded, memory
from waves import FULL, ISA, run

from luthier_py.emulator.records.layout import Status
from luthier_py.isa import M0, instruction_set, target, vgpr

DS_READS = {"u8": (1, np.uint8), "i8": (1, np.int8), "u16": (2, np.uint16), "i16": (2, np.int16), "b32": (4, np.uint32),
            "b64": (8, np.uint32), "b96": (12, np.uint32), "b128": (16, np.uint32)}


@pytest.mark.parametrize("pattern", OFFSETS)
def test_lds_loads_and_stores(pattern):
    for name, (size, kind) in DS_READS.items():
        lds = memory(8192)
        offsets = OFFSETS[pattern](size)
        words = max(size // 4, 1)
        state = run(
            [ISA.make(f"ds_read_{name}", vgpr(4, words), vgpr(0), offset=16)],
            vgprs={0: offsets.astype(np.uint32)},
            lds=lds,
            exec_mask=PARTIAL,
        )
        assert state.status is Status.JUMP, state.fault()
        expected = loaded(lds, offsets + np.uint64(16), size, kind)
        active = lanes_of(PARTIAL)
        for word in range(words):
            np.testing.assert_array_equal(state.vgpr(4 + word)[active], expected[word][active], name)
    if pattern in ("same", "rows", "mixed"):
        return
    for name, size in (("b8", 1), ("b16", 2), ("b32", 4), ("b64", 8), ("b96", 12), ("b128", 16)):
        lds, offsets, words = memory(8192), OFFSETS[pattern](size), max(size // 4, 1)
        values = RNG.integers(0, 1 << 32, (4, 64), dtype=np.uint64).astype(np.uint32)
        expected = lds.copy()
        for lane in range(64):
            raw = b"".join(int(values[w][lane]).to_bytes(4, "little") for w in range(words))[:size]
            expected[int(offsets[lane]) : int(offsets[lane]) + size] = np.frombuffer(raw, np.uint8)
        run([ISA.make(f"ds_write_{name}", vgpr(0), vgpr(4, words))], lds=lds,
            vgprs={0: offsets.astype(np.uint32), **{4 + w: values[w] for w in range(4)}})
        np.testing.assert_array_equal(lds, expected, name)


@pytest.mark.parametrize(
    "name,width,stride", [("b32", 4, 4), ("b64", 8, 8), ("st64_b32", 4, 256), ("st64_b64", 8, 512)]
)
def test_lds_pairs(name, width, stride):
    words = width // 4
    for first, second in ((0, 3), (5, 1), (2, 2)):
        lds = memory(16384)
        offsets = LANES * width
        read = f"ds_read2{name if name.startswith('st64') else '_' + name}"
        state = run(
            [ISA.make(read, vgpr(4, 2 * words), vgpr(0), offset0=first, offset1=second)],
            lds=lds,
            vgprs={0: offsets.astype(np.uint32)},
        )
        for i, place in enumerate((first, second)):
            expected = loaded(lds, offsets + np.uint64(place * stride), width, np.uint32)
            for word in range(words):
                np.testing.assert_array_equal(state.vgpr(4 + i * words + word), expected[word])
        values = RNG.integers(0, 1 << 32, (4, 64), dtype=np.uint64).astype(np.uint32)
        expected = lds.copy()
        for i, place in enumerate((first, second)):
            for lane in range(64):
                at = int(offsets[lane]) + place * stride
                expected[at : at + width] = np.ascontiguousarray(values[i * words : (i + 1) * words, lane]).view(
                    np.uint8
                )
        if first != second:
            run(
                [
                    ISA.make(
                        read.replace("read", "write"),
                        vgpr(0),
                        vgpr(4, words),
                        vgpr(4 + words, words),
                        offset0=first,
                        offset1=second,
                    )
                ],
                lds=lds,
                vgprs={
                    0: (offsets if stride > 8 else offsets * np.uint64(8)).astype(np.uint32),
                    **{4 + w: values[w] for w in range(4)},
                },
            )
            if stride > 8:
                np.testing.assert_array_equal(lds, expected)


@pytest.mark.parametrize("gpu,suffix,words", [("gfx942", "", 1), ("gfx950", "x3", 3), ("gfx950", "x4", 4)])
@pytest.mark.parametrize("mask", [FULL, PARTIAL])
def test_from_memory_to_lds(gpu, suffix, words, mask):
    """To M0 + offset + the lane's number times the size; what M0 holds above an address in LDS does not count."""
    isa, size = instruction_set(target(gpu)), 4 * words
    data, lds = memory(4096), memory(2048)
    expected = lds.copy()
    offsets = RNG.permutation(128)[:64].astype(np.uint64) * size
    for lane in np.flatnonzero(lanes_of(mask)):
        at, start = int(offsets[lane]) + 8, 96 + 8 + int(lane) * size
        expected[start : start + size] = data[at : at + size]
    base = data.ctypes.data
    setup = {"exec_mask": mask, "isa": isa, "memory": [data], "vgprs": {1: offsets.astype(np.uint32)}}
    sgprs = {2: base & 0xFFFFFFFF, 3: base >> 32, M0: 0xABC0000 | 96}
    found = lds.copy()
    run([isa.parse(f"global_load_lds_dword{suffix} v1, s[2:3] offset:8")], sgprs=sgprs, lds=found, **setup)
    np.testing.assert_array_equal(found, expected)
    sgprs |= {4: base & 0xFFFFFFFF, 5: base >> 32, 6: len(data), 7: 0x00020000}
    found = lds.copy()
    run([isa.parse(f"buffer_load_dword{suffix} v1, s[4:7], 0 offen offset:8 lds")], sgprs=sgprs, lds=found, **setup)
    np.testing.assert_array_equal(found, expected)
