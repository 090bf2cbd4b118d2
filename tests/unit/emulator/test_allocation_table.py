"""The table that native code searches: the same as what is registered, at any time, and cheap to keep so."""

from __future__ import annotations

import ctypes
import random
import time
from array import array

import numpy as np
import pytest

from luthier_py.emulator.memory.allocations import AllocationTable
from luthier_py.emulator.memory.device_memory import Allocation, Memory


def published(memory):
    """As native code finds it, without what is empty."""
    table = ctypes.c_uint64.from_address(memory.table_cell).value
    count = ctypes.c_uint64.from_address(table).value
    words = np.ctypeslib.as_array((ctypes.c_uint64 * (3 * count)).from_address(table + 8))
    rows = words.reshape(-1, 3).copy()
    assert (rows[1:, 0] > rows[:-1, 0]).all()
    return rows[rows[:, 0] < rows[:, 1]]


@pytest.mark.parametrize("seed", range(4))
def test_changes_reach_those_who_read(seed):
    rng, memory, known = random.Random(seed), Memory(), {}
    place = memory.reserve(1 << 20)
    with memory.publish_table():
        for _ in range(300):
            address = place + 4096 * rng.randrange(200)
            if address in known and rng.random() < 0.5:
                memory.unregister(address)
                del known[address]
            else:
                row = Allocation(address, rng.choice([0, 1, 4096]), "part", rng.random() < 0.5)
                known[address] = memory.register(row)
            rows = [[a.address, a.end, a.writable] for _, a in sorted(known.items()) if a.size]
            assert published(memory).tolist() == rows
    inner = [a for a in known.values() if a.size]
    assert len(memory.table()) == len(inner)
    memory.free(place)
    with memory.publish_table():
        assert not len(published(memory)) and not len(memory.table())


def test_a_table_stays_while_somebody_reads_it():
    """A thread that has its address searches it to the end, whatever is registered meanwhile."""
    memory = Memory()
    first, last = (memory.allocate(64, "first").address for _ in range(2))
    with memory.publish_table():
        table = ctypes.c_uint64.from_address(memory.table_cell).value
        before = ctypes.string_at(table + 8, 48)
        with memory.publish_table():
            more = [memory.allocate(64, "more").address for _ in range(200)]
        assert ctypes.string_at(table + 8, 48) == before
        assert ctypes.c_uint64.from_address(memory.table_cell).value != table
        memory.free(last)
        assert published(memory)[:, 0].tolist() == sorted({first, last, *more} - {last})
    with memory.publish_table():
        assert len(published(memory)) == 201


def test_what_kernels_allocate_and_free_makes_no_new_tables():
    """Thousands of them in one launch: each change writes one record."""
    memory = Memory()
    place = memory.reserve(1 << 24)
    with memory.publish_table():
        cells = set()
        for number in range(4000):
            memory.register(Allocation(place + 4096 * number, 4096, "block"))
            cells.add(ctypes.c_uint64.from_address(memory.table_cell).value)
        for number in range(0, 4000, 2):
            memory.unregister(place + 4096 * number)
            cells.add(ctypes.c_uint64.from_address(memory.table_cell).value)
        for number in range(0, 4000, 4):
            memory.register(Allocation(place + 4096 * number, 100, "again"))
            cells.add(ctypes.c_uint64.from_address(memory.table_cell).value)
        assert len(cells) < 10
        assert len(published(memory)) == 3000
    with memory.publish_table():
        table = ctypes.c_uint64.from_address(memory.table_cell).value
        assert ctypes.c_uint64.from_address(table).value == 3000


def test_thousands_of_allocations_cost_a_launch_nothing():
    """Beginning to read costs the same with 5,000 allocations as with one, as long as none came; a new one is cheap."""
    memory = Memory()
    place = memory.reserve(1 << 24)
    for number in range(5000):
        memory.register(Allocation(place + 512 * number, 256, "part"))

    def fastest(act):
        times = []
        for _ in range(50):
            began = time.thread_time()
            act()
            times.append(time.thread_time() - began)
        return min(times)

    def read():
        with memory.publish_table():
            pass

    def change():
        memory.register(Allocation(place + (1 << 23), 256, "last"))
        read()
        memory.unregister(place + (1 << 23))

    read()
    assert fastest(read) < 100e-6
    assert fastest(change) < 1e-3


class Watched(array):
    """Words that remember the order in which they are written."""

    def __init__(self, *_):
        self.places = []

    def __setitem__(self, at, value):
        self.places.append((at.start, at.stop) if isinstance(at, slice) else at)
        super().__setitem__(at, value)


def test_the_word_by_which_readers_see_a_record_is_written_last():
    """Who searches meanwhile finds no record that is only half there: the count follows a new one, and the end, without
    which a record is empty, its access."""
    table = AllocationTable()
    for place in range(2):
        table.insert(place, 1000 * (place + 1), 1000 * (place + 1) + 64, 1)
    table.enter()
    current = table._given_out[-1]
    current.words = words = Watched("Q", current.words)
    table.insert(2, 3000, 3064, 1)
    assert words.places == [(7, 10), 0] and words[0] == 3
    table.remove(0, 1)
    assert words.places[2:] == [2] and words[2] == words[1] == 1000  # empty: it ends where it starts
    table.insert(0, 1000, 1032, 0)
    assert words.places[3:] == [3, 2] and words[1:4].tolist() == [1000, 1032, 0]
    table.leave()
