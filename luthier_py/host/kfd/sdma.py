"""SDMA packets: copies, fills, fences and polls of the copy engines.

In: the words of a ring. Out: what they do to memory. Source: the packets that ROCr writes (sdma_registers.h; counts
are one less from generation 9 on) and amdgpu's vega10_sdma_pkt_open.h. Invariant: an unknown packet stops its queue.
"""

from __future__ import annotations

import ctypes
import operator
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from luthier_py.base.errors import DeviceError
from luthier_py.host.kfd import words

NOP, COPY, WRITE, FENCE, TRAP, POLL, ATOMIC, FILL, TIMESTAMP, GCR = 0, 1, 2, 5, 6, 8, 10, 11, 13, 17
_LINEAR, _RECT = 0, 4
_ADD64 = 47
_MEMORY = 1 << 31
_COMPARE: tuple[Callable[[int, int], bool], ...] = (
    lambda a, b: True, operator.lt, operator.le, operator.eq, operator.ne, operator.ge, operator.gt,
)  # fmt: skip


class Host(Protocol):
    """What packets need of the driver."""

    def check(self, address: int, size: int) -> None: ...

    def interrupt(self, number: int) -> None:
        """Set the event with this number, as a TRAP packet's interrupt does."""


class NotYet(Exception):
    """A poll is not met."""


def size_of(header: int) -> int:
    """Dwords of a packet whose header is known, as far as that says it; WRITE's count is in the packet."""
    op, sub = header & 255, header >> 8 & 255
    sizes = {COPY: 13 if sub == _RECT else 7, FENCE: 4, TRAP: 2, POLL: 6, ATOMIC: 8, FILL: 5, TIMESTAMP: 3, GCR: 5,
             WRITE: 4}  # fmt: skip
    if op == NOP:
        return 1 + (header >> 16 & 0x3FFF)
    if op not in sizes:
        raise DeviceError(f"SDMA packet 0x{header:08x} is unknown")
    return sizes[op]


def carry_out(packet: Sequence[int], host: Host) -> None:
    """One packet; NotYet if it waits for memory."""
    op, sub = packet[0] & 255, packet[0] >> 8 & 255
    if op == COPY and sub == _LINEAR:
        _copy(_at(packet, 5), _at(packet, 3), (packet[1] & 0x3FFFFFFF) + 1, host)
    elif op == COPY and sub == _RECT:
        _copy_rect(packet, host)
    elif op == FILL:
        _fill(_at(packet, 1), packet[3], packet[0] >> 30, (packet[4] & 0x3FFFFFFF) + 1, host)
    elif op == FENCE:
        host.check(_at(packet, 1), 4)
        words.store(_at(packet, 1), packet[3], 32)
    elif op == WRITE:
        data = b"".join(word.to_bytes(4, "little") for word in packet[4:])
        host.check(_at(packet, 1), len(data))
        ctypes.memmove(_at(packet, 1), data, len(data))
    elif op == POLL and packet[0] & _MEMORY:
        host.check(_at(packet, 1), 4)
        if not _COMPARE[min(packet[0] >> 28 & 7, 6)](words.load(_at(packet, 1), 32) & packet[4], packet[3]):
            raise NotYet
    elif op == ATOMIC:
        if packet[0] >> 25 != _ADD64:
            raise DeviceError(f"SDMA atomic {packet[0] >> 25} is unknown")
        host.check(_at(packet, 1), 8)
        words.add(_at(packet, 1), _at(packet, 3))
    elif op == TIMESTAMP:
        host.check(_at(packet, 1), 8)
        words.store(_at(packet, 1), time.monotonic_ns())
    elif op == TRAP:
        host.interrupt(packet[1] & 0xFFFFFFF)
    elif op not in (NOP, POLL, GCR):
        raise DeviceError(f"SDMA packet 0x{packet[0]:08x} is unknown")


def _at(packet: Sequence[int], word: int) -> int:
    return packet[word] | packet[word + 1] << 32


def _copy(to: int, start: int, size: int, host: Host) -> None:
    host.check(to, size)
    host.check(start, size)
    ctypes.memmove(to, start, size)


def _fill(to: int, value: int, log_size: int, size: int, host: Host) -> None:
    host.check(to, size)
    pattern = value.to_bytes(4, "little")[: 1 << min(log_size, 2)]
    ctypes.memmove(to, pattern * -(-size // len(pattern)), size)


def _copy_rect(packet: Sequence[int], host: Host) -> None:
    """A box of elements between two pitched images; offsets and extents in elements, pitches one less than they are."""
    element = 1 << (packet[0] >> 29)
    source, to = _at(packet, 1), _at(packet, 6)
    width, height, depth = (packet[11] & 0x3FFF) + 1, (packet[11] >> 16 & 0x3FFF) + 1, (packet[12] & 0x7FF) + 1

    def rows(base: int, first: int) -> Callable[[int, int], int]:
        x, y, z = packet[first] & 0x3FFF, packet[first] >> 16 & 0x3FFF, packet[first + 1] & 0x7FF
        pitch, slice_pitch = (packet[first + 1] >> 13) + 1, (packet[first + 2] & 0xFFFFFFF) + 1
        return lambda row, plane: base + element * (x + (y + row) * pitch + (z + plane) * slice_pitch)

    here, there = rows(source, 3), rows(to, 8)
    for plane in range(depth):
        for row in range(height):
            _copy(there(row, plane), here(row, plane), width * element, host)
