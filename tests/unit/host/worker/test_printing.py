"""Records of kernels that print into a buffer, as messages for the program; and the heap of their malloc."""

from __future__ import annotations

import mmap
import struct
import threading
import time
from ctypes import c_uint64

import pytest

from luthier_py.emulator.memory.device_memory import Memory, read_bytes, write_bytes
from luthier_py.host.worker.device.heap import SLAB_BYTES, Heap
from luthier_py.host.worker.device.printing import Printing, formats, messages

KNOWN = {0x1234: b"%d and %s\n", 0x5678: b"1234567"}


def record(content: bytes, constant: bool = True, stderr: bool = False) -> bytes:
    return struct.pack("<I", 4 + len(content) << 2 | constant << 1 | stderr) + content


def test_formats_of_a_code_object():
    entries = ["0:0:1f,%d: %s, and,\n", "0:0:20,", "no hash"]
    assert formats({"amdhsa.printf": entries}) == {0x1F: b"%d: %s, and,\n", 0x20: b""}
    assert formats({}) == {}


def test_a_format_that_is_known_stands_where_its_hash_was():
    arguments = struct.pack("<q", -3) + b"text\0\0\0\0"
    (message,) = messages(record(struct.pack("<Q", 0x1234) + arguments), KNOWN)
    assert message == struct.pack("<Q", 0) + b"%d and %s\n".ljust(16, b"\0") + arguments


def test_a_format_always_ends_with_a_zero_and_goes_where_its_record_says():
    own = b"own text\0\0\0\0\0\0\0\0"
    content = record(struct.pack("<Q", 0x5678), stderr=True) + record(own, constant=False)
    first, second = messages(content, KNOWN)
    assert first == struct.pack("<Q", 1) + b"1234567\0"
    assert second == struct.pack("<Q", 0) + own


def test_a_format_of_eight_bytes_has_a_word_for_its_end():
    (message,) = messages(record(struct.pack("<Q", 1)), {1: b"12345678"})
    assert message == struct.pack("<Q", 0) + b"12345678" + bytes(8)


@pytest.mark.parametrize("broken", [b"\0\0\0\0", record(b"x" * 16)[:-1], b"abc", struct.pack("<I", 0xFFFFFFFF)])
def test_what_is_broken_ends_the_buffer(broken):
    assert list(messages(broken, KNOWN)) == []


def test_an_unknown_format_is_left_out():
    assert len(list(messages(record(struct.pack("<Q", 99)) + record(struct.pack("<Q", 0x5678)), KNOWN))) == 1


def test_a_launch_counts_as_done_when_its_lines_are_printed():
    memory = Memory()
    printing, word, seen = Printing(memory), memory.allocate(8, "word"), []
    printing.set_message_word(word.address)
    buffer = printing.empty()
    content = record(struct.pack("<Q", 0x5678))
    write_bytes(buffer + 8, content)
    write_bytes(buffer, struct.pack("<I", len(content)))

    def program():
        told = c_uint64.from_address(word.address)
        while not told.value:
            time.sleep(0.001)
        seen.append(read_bytes(told.value, 32))
        told.value = 0

    thread = threading.Thread(target=program)
    thread.start()
    printing.print(KNOWN)
    thread.join()
    assert seen == [struct.pack("<QQ", 2, 0) + b"1234567\0" + bytes(8)]
    assert read_bytes(printing.empty(), 4) == bytes(4)


def test_a_heap_begins_with_slabs():
    """ROCm device libraries, dm.cl: heap_t ends with the next, the last and the first of them; all else is zero."""
    memory = Memory()
    heap = Heap(memory)
    heap.begin_with(3 * SLAB_BYTES + 5)
    address = heap.address()
    content = read_bytes(address, 1 << 17)
    words = [word for word in struct.unpack("<16384Q", content) if word]
    first = words[0]
    assert words == [first, first + 3 * SLAB_BYTES, first] and first % SLAB_BYTES == address % mmap.PAGESIZE == 0
    assert struct.unpack_from("<3Q", content, 5 * 16 * 128 + 16 * 256 * 24) == tuple(words)
    memory.check(first, 3 * SLAB_BYTES)
    heap.begin_with(0)
    assert heap.address() == address


@pytest.mark.parametrize("size", [0, 1 << 60])
def test_a_heap_without_slabs(size):
    heap = Heap(Memory())
    heap.begin_with(size)
    assert read_bytes(heap.address(), 1 << 17) == bytes(1 << 17)
