"""Kernarg segment, dispatch packet and queue of a launch that comes from no queue.

In: a checked launch. Out: its places in device memory, which kernels may only read. Invariant: they are given back
when the launch ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from luthier_py.emulator.launch import PRIVATE_BASE, SHARED_BASE, LaunchMemory, preloaded_range
from luthier_py.emulator.memory import Allocation, Memory, write_bytes
from luthier_py.emulator.packet import DispatchPacket, queue_record
from luthier_py.emulator.shape import Shape

_LINE = 64
_APERTURES = {"hidden_shared_base": SHARED_BASE, "hidden_private_base": PRIVATE_BASE}


@contextmanager
def segments(memory: Memory, shape: Shape, kernel_object: int, kernarg: bytes) -> Iterator[LaunchMemory]:
    """Compilers join loads of arguments to wider ones that end behind the last argument, inside its cache line."""
    taken: list[int] = []

    def read_only(size: int, data: bytes, name: str) -> int:
        address = memory.reserve(size)
        taken.append(address)
        memory.register(Allocation(address, size, name, writable=False))
        write_bytes(address, data)
        return address

    descriptor = shape.record.descriptor
    size = max(len(kernarg), descriptor.kernarg_size, 1)
    preloaded = preloaded_range(descriptor)
    try:
        arguments = read_only(-(-size // _LINE) * _LINE, _with_apertures(shape, kernarg), "kernel arguments")
        packet = dispatch_packet(shape, kernel_object, arguments).pack()
        queue = queue_record(SHARED_BASE, PRIVATE_BASE)
        yield LaunchMemory(arguments, read_only(len(packet), packet, "dispatch packet"),
                     read_only(len(queue), queue, "queue"), preloaded=kernarg[preloaded.start : preloaded.stop])
    finally:
        for address in taken:
            memory.free(address)


def _with_apertures(shape: Shape, kernarg: bytes) -> bytes:
    """With the high halves of where LDS and private memory begin, which kernels may take from their arguments."""
    found = bytearray(kernarg)
    for arg in shape.record.args:
        base = _APERTURES.get(arg.value_kind)
        if base is not None and arg.offset + arg.size <= len(found):
            found[arg.offset : arg.offset + arg.size] = (base >> 32).to_bytes(arg.size, "little")
    return bytes(found)


def dispatch_packet(shape: Shape, kernel_object: int, kernarg: int) -> DispatchPacket:
    return DispatchPacket(shape.items, shape.block, shape.scratch_bytes, shape.lds_bytes, kernel_object, kernarg)
