"""Device memory: places, gaps, reuse, and words about addresses."""

from __future__ import annotations

import ctypes
import mmap
import random
from pathlib import Path

import pytest
from launching import device

from luthier_py.base.errors import DeviceError, Invalid
from luthier_py.emulator.memory.device_memory import GAP, Allocation, Memory, read_bytes, write_bytes


def test_allocations_are_apart_and_aligned():
    memory = Memory()
    found = [memory.allocate(size, "buffer") for size in (1, 255, 256, 257, 4096, 0)]
    for a, b in zip(found, found[1:], strict=False):
        assert a.address % 256 == 0 and a.end + GAP <= b.address
    table = memory.table()
    assert len(table) == 5, "an empty allocation holds no address"
    assert sorted({base for base, _, _ in table}) == [base for base, _, _ in table]


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


@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_allocations(seed):
    """None overlaps another, gaps included; what is given out is zero; at the end all is one range again."""
    rng, memory = random.Random(seed), Memory()
    most = memory._space._by_size[-1]
    taken = {}
    for step in range(2000):
        if taken and (len(taken) > 60 or rng.random() < 0.45):
            memory.free(taken.pop(rng.choice(list(taken))).address)
            continue
        size = rng.choice((0, 1, 100, 256, 5000, 70_000, 1 << 20))
        new = memory.allocate(size, f"{step}", rng.choice((256, 4096, 1 << 16)))
        assert not any(new.address < old.end + GAP and old.address < new.end + GAP for old in taken.values())
        assert read_bytes(new.address, size).count(0) == size
        write_bytes(new.address, b"x" * size)
        taken[new.address] = new
    for address in taken:
        memory.free(address)
    assert memory._space._by_size == [most]


def test_freed_memory_goes_back_to_the_system():
    """Also where a smaller allocation comes after each that is freed, so that a place is never the last one."""
    memory, kept = Memory(), []

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE

    before = resident()
    for _ in range(50):
        large = memory.allocate(16 << 20, "large")
        ctypes.memset(large.address, 1, large.size)
        kept.append(memory.allocate(100, "small"))
        memory.free(large.address)
    assert resident() - before < 64 << 20
    assert max(small.address for small in kept) - min(small.address for small in kept) < 64 << 20


def test_a_full_memory_has_room_again():
    """Whatever the order in which it is freed."""
    place = bytearray(1 << 20)
    start = -(-ctypes.addressof(ctypes.c_char.from_buffer(place)) // 256) * 256
    memory = Memory((start, (1 << 20) - 256))
    taken = []
    with pytest.raises(DeviceError, match="no room for 10000 bytes"):
        while True:
            taken.append(memory.allocate(10_000, "part").address)
    assert len(taken) > 95
    for address in taken[::2]:
        memory.free(address)
    with pytest.raises(DeviceError):
        memory.allocate(20_000, "two")
    for address in taken[1::2]:
        memory.free(address)
    memory.free(memory.allocate((1 << 20) - 4096, "all").address)


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
    assert memory.nearest(a.end) == f"just past the end of {a}"
    assert memory.nearest(a.end + 7).startswith("7 bytes past the end of positions")
    assert memory.nearest(a.address - 8).startswith("8 bytes before positions")
    assert memory.nearest(a.address + 98).startswith("98 bytes into positions")
    other = memory.allocate(64, "velocities")
    memory.free(a.address)
    gone = f"98 bytes into {a}, which was freed; "
    said = memory.nearest(a.address + 98)
    assert said.startswith(gone) and said.endswith(f"before {other}")
    memory.free(other.address)
    assert memory.nearest(a.address + 98) == f"{gone}nothing is allocated"
    again = memory.reserve_at(a.address, 100)
    memory.register(Allocation(again, 100, "again"))
    assert memory.nearest(a.address + 98) == f"98 bytes into {memory.find(again)}, where {a} was, which was freed"
