"""Kernel dispatch packets, and what of the queue a kernel may ask for.

In: 64 bytes of a queue's ring, and an amd_queue_t. Out: the fields that a launch needs. Source: HSA Platform System
Architecture Specification 1.2, 2.9.6 (Kernel dispatch packet); HSA Runtime Programmer's Reference Manual 1.2, 2.6
(hsa_queue_t); amd_hsa_queue.h of ROCR-Runtime (amd_queue_t). Invariant: nothing here decides whether a packet makes
sense.
"""

from __future__ import annotations

import struct

from luthier_py.base.records import dataclass
from luthier_py.emulator.interface.device import Dim3
from luthier_py.emulator.memory.device_memory import read_bytes

PACKET_BYTES = 64
QUEUE_BYTES = 256
KERNEL_DISPATCH = 2  # packet type, in the header
_PACKET = struct.Struct("<HHHHHHIIIIIQQQQ")
_RING = struct.Struct("<8xQ8xI")             # hsa_queue_t: base_address, size in packets
_APERTURES = struct.Struct("<64xII")         # amd_queue_t: high halves of where LDS and private memory begin
_READ_DISPATCH_ID = 128


@dataclass(frozen=True, slots=True)
class DispatchPacket:
    """``items``: work-items of the grid; ``block``: of a work-group."""

    items: Dim3
    block: Dim3
    private_bytes: int  # of a work-item
    group_bytes: int    # of LDS, of a work-group
    kernel_object: int
    kernarg: int

    @classmethod
    def read(cls, address: int) -> DispatchPacket:
        """As it lies in memory; dimensions that the packet does not have are 1."""
        _, setup, x, y, z, _, *rest = _PACKET.unpack(read_bytes(address, PACKET_BYTES))
        gx, gy, gz, private, group, kernel, kernarg, _, _ = rest
        dimensions = setup & 3
        items = gx, gy if dimensions > 1 else 1, gz if dimensions > 2 else 1
        block = x, y if dimensions > 1 else 1, z if dimensions > 2 else 1
        return cls(items, block, private, group, kernel, kernarg)

    def pack(self) -> bytes:
        """The packet as the queue's ring has it, 64 bytes; without a completion signal. It has as many dimensions as
        its grid needs."""
        dimensions = max(axis + 1 for axis in range(3) if axis == 0 or self.items[axis] > 1)
        return _PACKET.pack(KERNEL_DISPATCH, dimensions, *self.block, 0, *self.items, self.private_bytes,
                            self.group_bytes, self.kernel_object, self.kernarg, 0, 0)


def dispatch_id(packet: int, queue: int) -> int:
    """The number of the packet in its queue, counted from 0 and not wrapped; ``queue`` is an amd_queue_t."""
    base, size = _RING.unpack(read_bytes(queue, _RING.size))
    done = int.from_bytes(read_bytes(queue + _READ_DISPATCH_ID, 8), "little")
    place = (packet - base) // PACKET_BYTES
    return done + (place - done) % size if 0 <= place < size else done


def queue_record(shared_base: int, private_base: int) -> bytes:
    """An amd_queue_t of no queue: it says where the apertures are."""
    return _APERTURES.pack(shared_base >> 32, private_base >> 32).ljust(QUEUE_BYTES, b"\0")
