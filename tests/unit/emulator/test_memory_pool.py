"""Device memory: places, gaps, reuse, and words about addresses."""

from __future__ import annotations

import numpy as np
import pytest
from launching import device

from luthier_py.emulator.memory import GAP, Memory
from luthier_py.errors import DeviceError, Invalid


def test_allocations_are_apart_and_aligned():
    memory = Memory()
    found = [memory.allocate(size, "buffer") for size in (1, 255, 256, 257, 4096, 0)]
    for a, b in zip(found, found[1:], strict=False):
        assert a.address % 256 == 0 and a.end + GAP <= b.address
    table = memory.table()
    assert len(table) == 5, "an empty allocation holds no address"
    assert (np.diff(table[:, 0].astype(np.int64)) > 0).all()


def test_freed_memory_is_used_again_and_is_clean():
    dev = device()
    a, b = dev.alloc(1000), dev.alloc(1000)
    dev.write(a.address, b"x" * 1000)
    dev.free(a)
    with pytest.raises(Invalid):
        dev.read(a.address, 1)
    with pytest.raises(Invalid):
        dev.free(a)
    taken = {dev.alloc(700).address for _ in range(3)}
    assert all(dev.read(address, 700) == bytes(700) for address in taken)
    dev.free(b)


def test_out_of_memory_and_bad_sizes():
    dev = device()
    with pytest.raises(DeviceError, match="out of device memory"):
        dev.alloc(1 << 50)
    with pytest.raises(Invalid):
        dev.alloc(-1)


def test_host_accesses_are_checked():
    dev = device()
    a = dev.alloc(64)
    dev.write(a.address + 60, b"abcd")
    assert dev.read(a.address + 62, 2) == b"cd"
    for address, size in ((a.address + 61, 4), (a.address - 1, 1), (0, 1), (a.address, 65)):
        with pytest.raises(Invalid):
            dev.read(address, size)
        with pytest.raises(Invalid):
            dev.write(address, bytes(size))


def test_words_about_addresses():
    memory = Memory()
    assert memory.nearest(5) == "nothing is allocated"
    a = memory.allocate(100, "positions")
    assert memory.nearest(a.end) == f"0 bytes past the end of {a}"
    assert memory.nearest(a.end + 7).startswith("7 bytes past the end of positions")
    assert memory.nearest(a.address - 8).startswith("8 bytes before positions")
    assert memory.nearest(a.address + 98).startswith("98 bytes into positions")
