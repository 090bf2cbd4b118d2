"""Banks and lines of the cycle model's native functions against the rules in Python, lane by lane."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
import pytest

from luthier_py.base import llvm
from luthier_py.emulator.native.bitcode import read_bitcode
from luthier_py.emulator.records.layout import TIME_BYTES, TIME_PATTERNS, WAVE, WAVE_HEADER_BYTES
from luthier_py.isa import target
from luthier_py.isa.timing.lds_banks import LaneGroups, Way, bank_model

TARGETS = (("gfx90a", 64), ("gfx950", 64), ("gfx1100", 32), ("gfx1100", 64), ("gfx1250", 32))


@cache
def native(word: str, wave_size: int) -> Any:
    name = f"luthier_time_{word}_w{wave_size}"
    code = llvm.HostCode(llvm.host_function(read_bitcode("cycles", wave_size), name), [name], {})
    arguments = [ctypes.c_uint64] * (10 if word == "banks" else 9)
    function = ctypes.CFUNCTYPE(ctypes.c_uint64, *arguments)(code.address(name))
    function.code = code
    return function


def banks_by_hand(service: LaneGroups, wave_size: int, mask: int, addresses: list[int], dwords: int, way: Way) -> int:
    cycles = 0
    for lanes in service.groups(wave_size):
        words = [addresses[lane] // 4 + word for lane in lanes if mask >> lane & 1 for word in range(dwords)]
        words = words if way is Way.ATOMIC else list(set(words))
        uses = np.bincount([word % service.banks for word in words]) if words else [1]  # an idle group takes its cycle
        cycles += int(max(uses))
    return cycles


@pytest.mark.parametrize(("name", "wave_size"), TARGETS)
@pytest.mark.parametrize("way", list(Way))
def test_banks(name, wave_size, way):
    random = np.random.default_rng(5)
    time, wave = np.zeros(TIME_BYTES, np.uint8), np.zeros(WAVE_HEADER_BYTES // 8, np.uint64)
    wave[WAVE["time"] // 8] = time.ctypes.data
    for trial in range(60):
        dwords = 1 + trial % 4
        service = bank_model(target(name)).service(way, dwords)
        spread = int(random.choice([8, 200, 3000]))
        addresses = 4 * random.integers(0, spread, wave_size).astype(np.uint32)
        full, lane = (1 << wave_size) - 1, int(random.integers(0, wave_size))
        mask = (full, (int(random.integers(0, 1 << 62)) | 1) & full, 3 << lane & full)[trial % 3]
        masks = service.parities_in(wave_size)
        parities = sum(bits << 8 * number for number, bits in enumerate(masks))
        for moved in (0, 4, 132):  # for the second time the pattern is known, and starts at another bank
            addresses += np.uint32(moved)
            found = native("banks", wave_size)(
                wave.ctypes.data, mask, 256, addresses.ctypes.data, parities, len(masks), service.banks, dwords,
                int(way is Way.ATOMIC), trial % TIME_PATTERNS)
            shifted = [int(address) + 256 for address in addresses]
            assert found == banks_by_hand(service, wave_size, mask, shifted, dwords, way)


@pytest.mark.parametrize("wave_size", [32, 64])
@pytest.mark.parametrize("far", [0, 1])
def test_lines(wave_size, far):
    """The most of: lines; bytes of lanes that are on, by 64; what there is at least."""
    random = np.random.default_rng(6)
    for trial in range(60):
        size, line = (1, 2, 4, 8, 12, 16)[trial % 6], (64, 128)[trial % 2]
        rows = np.zeros((2, wave_size), np.uint32)
        rows[0] = random.integers(0, int(random.choice([300, 60000, 1 << 32])), wave_size, dtype=np.uint64)
        rows[1] = random.integers(0, 3, wave_size)
        mask = int(random.integers(0, 1 << 62)) & (1 << wave_size) - 1
        base = int(random.integers(0, 1 << 40))
        lines = set()
        for lane in range(wave_size):
            if mask >> lane & 1:
                at = base + int(rows[0, lane]) + (int(rows[1, lane]) << 32) * far
                lines |= set(range(at // line, (at + size - 1) // line + 1))
        moved = -(-bin(mask).count("1") * size // 64)
        found = native("lines", wave_size)(0, mask, base, rows.ctypes.data, far, size, line, 64, 3)
        assert found == max(len(lines), moved, 3)
