"""Allocations as the worker makes them: whole pages, fine-grained or not, with what may be touched behind their end."""

from __future__ import annotations

import mmap
import struct

import pytest

from luthier_py.base.errors import Invalid
from luthier_py.emulator.memory.device_memory import GAP, Memory
from luthier_py.host.native.protocol import Message
from luthier_py.host.worker.device.emulated_device import DeviceService
from luthier_py.host.worker.device.heap import SLAB_BYTES, Heap
from luthier_py.host.worker.device.settings import parse_fine_atomics, parse_granularity
from luthier_py.host.worker.wire import Request


@pytest.fixture
def service(monkeypatch):
    """``service(device, NAME=value)``: without a program."""

    def make(device="emulator:gfx90a", **environment):
        for name, value in {"LUTHIER_DEVICE": device, **environment}.items():
            monkeypatch.setenv(name, value)
        made = DeviceService()
        made.memory = Memory()
        made._heaps = [Heap(made.memory) for _ in made.targets]
        return made

    return make


def ask(service, message, *numbers):
    reply = service.answer(Request(message, struct.pack(f"<{len(numbers)}Q", *numbers)))
    return int.from_bytes(reply, "little")


def row(service, address):
    return tuple(next(row for row in service.memory.table() if row[0] == address))


@pytest.mark.parametrize("size", [1, 100, 4096, 4096 - GAP, SLAB_BYTES, SLAB_BYTES + 1])
def test_pages(service, size):
    worker = service()
    places = [ask(worker, Message.ALLOCATE, size) for _ in range(3)]
    assert all(row(worker, place) == (place, place + size, 1) for place in places)
    assert all(place % (SLAB_BYTES if size == SLAB_BYTES else mmap.PAGESIZE) == 0 for place in places)
    assert all(after - place >= size + GAP for place, after in zip(sorted(places), sorted(places)[1:], strict=False))


GRANULARITIES = [("4096", 100, 4096), ("4096", 4096, 4096), ("16", 17, 32), ("1", 17, 17)]


@pytest.mark.parametrize("granularity, size, end", GRANULARITIES)
def test_granularity(service, granularity, size, end):
    worker = service(LUTHIER_MEMORY_GRANULARITY=granularity)
    first, second = (ask(worker, Message.ALLOCATE, size) for _ in range(2))
    assert row(worker, first) == (first, first + end, 1)
    assert abs(second - first) >= end + GAP


@pytest.mark.parametrize("device, environment, marked", [
    ("emulator:gfx90a", {}, 3), ("emulator:gfx908", {}, 3), ("emulator:gfx942", {}, 1),
    ("emulator:gfx90a", {"LUTHIER_FINE_ATOMICS": "1"}, 1), ("emulator:gfx90a", {"LUTHIER_FINE_ATOMICS": "0"}, 3),
])  # fmt: skip
def test_fine_grained(service, device, environment, marked):
    worker = service(device, **environment)
    fine, coarse = ask(worker, Message.ALLOCATE, 64, 1), ask(worker, Message.ALLOCATE, 64, 0)
    assert row(worker, fine)[2] == marked and row(worker, coarse)[2] == 1
    ask(worker, Message.GRAIN, fine, 0)
    ask(worker, Message.GRAIN, coarse, 1)
    assert row(worker, fine)[2] == 1 and row(worker, coarse)[2] == marked
    place = ask(worker, Message.RESERVE, 8192)
    ask(worker, Message.REGISTER, place, 4096, 1)
    ask(worker, Message.REGISTER, place + 4096, 4096)
    assert row(worker, place)[2] == marked and row(worker, place + 4096)[2] == 1


def test_heaps_begin_as_they_are_told(service):
    worker = service("emulator:gfx90a*2")
    ask(worker, Message.HEAP, 1, 2 * SLAB_BYTES)
    sizes = []
    for heap in worker._heaps:
        before = sum(end - start for start, end, _ in worker.memory.table())
        heap.address()
        sizes.append(sum(end - start for start, end, _ in worker.memory.table()) - before)
    assert sizes[0] - sizes[1] == 2 * SLAB_BYTES  # eight megabytes otherwise


def test_a_grain_of_nothing(service):
    with pytest.raises(Invalid, match="not in an allocation"):
        ask(service(), Message.GRAIN, 4096, 1)


def test_settings():
    assert [parse_granularity(text) for text in ("", "1", "4096")] == [1, 1, 4096]
    assert [parse_fine_atomics(text) for text in ("", "0", "1")] == [False, False, True]
    for text in ("0", "-1", "3", "4k", "4194304"):
        with pytest.raises(Invalid, match="LUTHIER_MEMORY_GRANULARITY=`"):
            parse_granularity(text)
    with pytest.raises(Invalid, match="LUTHIER_FINE_ATOMICS=`yes`"):
        parse_fine_atomics("yes")
