"""Code objects loaded by hand, and dispatched by packets in a ring, as a runtime and a driver do it together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from luthier_py.binary.loader import KernelRecord, load
from luthier_py.emulator import LaunchProfile, PacketDevice
from luthier_py.emulator.interface import pack_arguments
from luthier_py.emulator.memory.device_memory import Memory, read_bytes, write_bytes
from luthier_py.emulator.waves.packet import PACKET_BYTES, DispatchPacket
from luthier_py.isa import target

RING_PACKETS = 16
TARGET = target("gfx90a")


class Host:
    """Mutable: what lies in memory around a :class:`PacketDevice`: a queue, and code that was copied there."""

    def __init__(self, **options: Any) -> None:
        self.memory = Memory()
        self.device = PacketDevice(TARGET, self.memory, **options)
        self.ring = self.memory.allocate(PACKET_BYTES * RING_PACKETS, "ring").address
        self.queue = self.memory.allocate(256, "queue").address
        head = np.zeros(64, np.uint32)
        head[2:4] = self.ring & 0xFFFFFFFF, self.ring >> 32
        head[6] = RING_PACKETS
        head[16:18] = 1 << 16, 2 << 16  # apertures
        write_bytes(self.queue, head.tobytes())
        self.read_index = 0

    def place(self, data: bytes, at: int | None = None) -> int:
        """Copy a code object's segments to an allocation of their own, or over one; where its address 0 is."""
        obj = load(data)
        segments = [s for s in obj.segments if s.load]
        assert not obj.relocations
        base = self.memory.allocate(max(s.end for s in segments), "code", 4096).address if at is None else at
        for segment in segments:
            write_bytes(base + segment.address, obj.read(segment.address, segment.file_size))
        return base

    def buffer(self, array: np.ndarray) -> int:
        address = self.memory.allocate(array.nbytes, "buffer").address
        write_bytes(address, array.tobytes())
        return address

    def write_packet(self, packet: DispatchPacket) -> int:
        """To the ring, as the next one."""
        write_bytes(self.queue + 128, self.read_index.to_bytes(8, "little"))
        address = self.ring + PACKET_BYTES * (self.read_index % RING_PACKETS)
        write_bytes(address, packet.pack())
        self.read_index += 1
        return address

    def dispatch(self, base: int, record: KernelRecord, values: Sequence[Any], items=(64, 1, 1), block=(64, 1, 1),
                 **fields: int) -> LaunchProfile:
        """Arrays become buffers; afterwards they hold what the kernel left in them."""
        arrays = [(value, self.buffer(value)) for value in values if isinstance(value, np.ndarray)]
        addresses = {id(array): address for array, address in arrays}
        # Complete work-groups only (AMDGPUUsage, hidden_block_count_x).
        grid = tuple(all_ // one for all_, one in zip(items, block, strict=True))
        packed = pack_arguments(record, [addresses.get(id(value), value) for value in values], grid, block)
        segment = bytearray(packed)
        remainders = dict(zip("xyz", (all_ % one for all_, one in zip(items, block, strict=True)), strict=True))
        for arg in record.args:
            if arg.value_kind.startswith("hidden_remainder_"):
                segment[arg.offset : arg.offset + 2] = remainders[arg.value_kind[-1]].to_bytes(2, "little")
        kernarg = self.memory.allocate(len(segment) + 64, "arguments").address
        write_bytes(kernarg, bytes(segment))
        known = {"private_bytes": record.descriptor.private_segment_fixed_size,
                 "group_bytes": record.descriptor.group_segment_fixed_size} | fields
        packet = DispatchPacket(items, block, kernel_object=base + record.descriptor_address, kernarg=kernarg, **known)
        try:
            profile = self.device.dispatch(self.write_packet(packet), self.queue)
            assert profile is not None
            return profile
        finally:
            for array, address in arrays:
                array[...] = np.frombuffer(read_bytes(address, array.nbytes), array.dtype).reshape(array.shape)
                self.memory.free(address)
            self.memory.free(kernarg)
