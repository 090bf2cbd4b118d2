"""Recorded launches made by hand, and a device that only keeps bytes: for tests that run no kernel.

In: contents of pages. Out: a RecordedLaunch of the sample function_pointers, whose variable ``operations`` holds
addresses of its functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from luthier_py.base.errors import Invalid
from luthier_py.binary.loader import KernelArg, KernelRecord, load
from luthier_py.emulator.devices.module import resolve_relocations
from luthier_py.emulator.devices.recorded_launch import RecordedLaunch, RecordedPage
from luthier_py.emulator.interface import Buffer
from luthier_py.emulator.memory.device_memory import Allocation
from luthier_py.emulator.memory.touched import PAGE_BYTES
from luthier_py.samples import sample

CODE = sample("function_pointers").path.read_bytes()
OBJECT = load(CODE)
KERNEL = OBJECT.kernel("function_pointers")
VARIABLE = next(each for each in OBJECT.symbols if each.name == "operations")
BASE = 0x7_0000_0000
OPERATIONS = BASE + VARIABLE.address


def page(address: int, before: bytes, after: bytes | None = None) -> RecordedPage:
    contents = before, before if after is None else after
    return RecordedPage(address, *(each.ljust(PAGE_BYTES, b"\0") for each in contents))


def made(*pages: RecordedPage, allocations: Sequence[Allocation] = (), kernarg: bytes = b"") -> RecordedLaunch:
    return RecordedLaunch("gfx90a", CODE, BASE, KERNEL.name, (2, 3, 1), (64, 1, 1), 512, kernarg, 7, tuple(allocations),
                          pages)


def loaded_page(before: bytes | None = None, after: bytes | None = None) -> RecordedPage:
    """That which ``operations`` lies in: its bytes as given, or as loading leaves them."""
    content = bytearray(VARIABLE.size)
    for address, data in resolve_relocations(OBJECT, BASE):
        if VARIABLE.address <= address < VARIABLE.address + VARIABLE.size:
            content[address - VARIABLE.address : address - VARIABLE.address + len(data)] = data
    start = OPERATIONS % PAGE_BYTES
    before, after = (bytes(start) + (bytes(content) if each is None else each) for each in (before, after))
    return page(OPERATIONS - start, before, after)


def with_args(*args: KernelArg, name: str = "f") -> KernelRecord:
    return replace(KERNEL, name=name, args=args)


def arg(offset: int, size: int = 8, kind: str = "global_buffer", name: str = "",
        type_name: str | None = None) -> KernelArg:
    return KernelArg(name, offset, size, kind, type_name, None, None, False)


@dataclass
class Bytes:
    """Mutable: a device, and a module there. ``kernel``: what a launch does to it."""

    content: dict[int, int] = field(default_factory=dict)
    variables: dict[str, Buffer] = field(default_factory=dict)
    runs: Callable[[Bytes, bytes], object] = lambda device, kernarg: None
    launches: list[Any] = field(default_factory=list)

    def write(self, address: int, data: bytes) -> None:
        self.content.update(enumerate(data, start=address))

    def read(self, address: int, size: int) -> bytes:
        return bytes(self.content[each] for each in range(address, address + size))

    def variable(self, name: str) -> Buffer:
        if name not in self.variables:
            raise Invalid(f"no variable {name}")
        return self.variables[name]

    def kernel(self, name: str) -> str:
        return f"handle of {name}"

    def launch(self, *how: Any) -> None:
        self.launches.append(how)

    def synchronize(self) -> None:
        """A launch takes effect here: who reads before sees memory as it was."""
        self.runs(self, self.launches[-1][3])
