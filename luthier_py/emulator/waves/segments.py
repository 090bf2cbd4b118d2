"""Kernarg segment, dispatch packet and queue of launches that come from no queue.

In: a checked launch. Out: its places in device memory, which kernels may only read. Invariant: what is taken is given
back, whatever fails.
"""

from __future__ import annotations

from contextlib import ExitStack

from luthier_py.emulator.memory.device_memory import Allocation, Memory, write_bytes
from luthier_py.emulator.waves.launch import PRIVATE_BASE, SHARED_BASE, LaunchMemory
from luthier_py.emulator.waves.packet import DispatchPacket, queue_record
from luthier_py.emulator.waves.shape import Shape

_LINE = 64
_APERTURES = {"hidden_shared_base": SHARED_BASE, "hidden_private_base": PRIVATE_BASE}


class LaunchSegments:
    """Mutable. ``kernarg_bytes``: of the segment. Compilers join loads of arguments to wider ones that end behind the
    last argument, inside its cache line."""

    def __init__(self, memory: Memory, shape: Shape, kernel_object: int, given_bytes: int) -> None:
        self._memory = memory
        self._taken: list[int] = []
        size = max(given_bytes, shape.record.descriptor.kernarg_size, 1)
        self.kernarg_bytes = -(-size // _LINE) * _LINE
        with ExitStack() as undoing:
            undoing.callback(self.give_back)
            arguments = self._take(self.kernarg_bytes, "kernel arguments")
            packet = dispatch_packet(shape, kernel_object, arguments).pack()
            self.places = LaunchMemory(arguments, self._read_only(packet, "dispatch packet"),
                                       self._read_only(queue_record(SHARED_BASE, PRIVATE_BASE), "queue"))
            undoing.pop_all()

    def _take(self, size: int, name: str) -> int:
        """Zeros that kernels may read; no page of them is touched before it is needed."""
        address = self._memory.reserve(size)
        self._taken.append(address)
        self._memory.register(Allocation(address, size, name, writable=False))
        return address

    def _read_only(self, data: bytes, name: str) -> int:
        address = self._take(len(data), name)
        write_bytes(address, data)
        return address

    def give_back(self) -> None:
        """Free all segments; nothing is left to free the second time."""
        while self._taken:
            self._memory.free(self._taken.pop())


def apertures(shape: Shape, given_bytes: int) -> dict[int, bytes]:
    """High halves of where LDS and private memory begin, which kernels may take from their arguments, by offset."""
    found = {}
    for arg in shape.record.args:
        base = _APERTURES.get(arg.value_kind)
        if base is not None and arg.offset + arg.size <= given_bytes:
            found[arg.offset] = (base >> 32).to_bytes(arg.size, "little")
    return found


def dispatch_packet(shape: Shape, kernel_object: int, kernarg: int) -> DispatchPacket:
    """The packet that a kernel of such a launch finds by its dispatch pointer; ``kernarg``: address of the segment."""
    return DispatchPacket(shape.items, shape.block, shape.scratch_bytes, shape.lds_bytes, kernel_object, kernarg)
