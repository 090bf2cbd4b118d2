"""What runs kernels: the same calls for the emulator and for a GPU.

In: code objects, host bytes, launches. Out: buffers and modules. Addresses are device addresses.
Invariant: every failure of a kernel is a DeviceError; a caller's mistake is Invalid.
"""

from __future__ import annotations

from typing import Protocol

from luthier_py.base.records import dataclass
from luthier_py.binary.loader import MEMORY, KernelRecord
from luthier_py.isa.model.target import Target

Dim3 = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Buffer:
    """Device memory."""

    address: int
    size: int  # bytes


@dataclass(frozen=True, slots=True)
class KernelHandle:
    """A kernel of a loaded module."""

    name: str
    record: KernelRecord
    module: Module


class Module(Protocol):
    """A loaded code object."""

    def kernel(self, name: str) -> KernelHandle: ...

    def variable(self, name: str) -> Buffer:
        """A global variable's memory; Invalid if there is none of that name."""
        ...

    def unload(self) -> None:
        """Free the code object's memory; its handles and buffers are invalid from then on."""


class Device(Protocol):
    """A GPU or the emulator. Sizes are bytes. A kernel's fault is a DeviceError of its `launch`, or of a later call."""

    @property
    def target(self) -> Target: ...

    def load(self, data: bytes, name: str = MEMORY) -> Module: ...

    def alloc(self, size: int) -> Buffer:
        """Device memory, of 0 bytes as well; its contents are undefined. DeviceError where there is no room."""

    def free(self, buffer: Buffer) -> None: ...

    def alloc_shared(self, size: int) -> Buffer:
        """Zeroed memory that this process uses at the same address, while kernels run: fine-grained, on the host."""
        ...

    def free_shared(self, buffer: Buffer) -> None:
        """Give back what `alloc_shared` gave; no kernel may be using it."""

    def write(self, address: int, data: bytes) -> None: ...

    def read(self, address: int, size: int) -> bytes: ...

    def synchronize(self) -> None: ...

    def launch(self, kernel: KernelHandle, grid: Dim3, block: Dim3, kernarg: bytes, lds_bytes: int = 0) -> None:
        """Run ``grid`` work-groups of ``block`` work-items; ``lds_bytes`` are added to the kernel's own."""
        ...
