"""Names of kernels that lie in device memory: what ROCr says that it has loaded.

In: load addresses with ELF images, as ROCr's list of loaded code objects has them (_amdgpu_r_debug). Out: the name of
the kernel whose descriptor is at an address, and where address 0 of its code object is. Invariant: an image is read
only when somebody asks for a name in it; one that cannot be read gives no names and no error.
"""

from __future__ import annotations

import bisect
import threading

from luthier_py.errors import LuthierError
from luthier_py.loader import MEMORY
from luthier_py.loader.elf import SectionType, parse_elf
from luthier_py.loader.symbols import read_symbols

_DESCRIPTOR = ".kd"


class Names:
    """Mutable: code objects by the address that they were loaded at; a later one at the same address is another one."""

    def __init__(self) -> None:
        self._images: dict[int, bytes | dict[int, str]] = {}
        self._bases: list[int] = []
        self._sizes: dict[int, int] = {}
        self._lock = threading.Lock()

    def add(self, base: int, image: bytes) -> None:
        with self._lock:
            if base not in self._images:
                bisect.insort(self._bases, base)
            self._images[base] = image
            self._sizes[base] = extent(image)

    def name_of(self, kernel_object: int) -> str | None:
        base = self.base_of(kernel_object)
        if base is None:
            return None
        with self._lock:
            image = self._images[base]
            if isinstance(image, bytes):
                image = self._images[base] = kernels(image)
        return image.get(kernel_object - base)

    def base_of(self, address: int) -> int | None:
        """Of the code object that an address lies in."""
        with self._lock:
            place = bisect.bisect_right(self._bases, address) - 1
            base = self._bases[place] if place >= 0 else None
            return base if base is not None and address < base + self._sizes[base] else None

    def forget(self, start: int, size: int) -> None:
        """Memory was freed."""
        with self._lock:
            for base in [base for base in self._bases if start <= base < start + size]:
                self._bases.remove(base)
                del self._images[base], self._sizes[base]


def extent(image: bytes) -> int:
    """Bytes of memory from address 0 to the end of its last segment."""
    try:
        return max((s.end for s in parse_elf(image, MEMORY).segments if s.load), default=0)
    except LuthierError:
        return 0


def kernels(image: bytes) -> dict[int, str]:
    """Names by the address of the descriptor."""
    try:
        elf = parse_elf(image, MEMORY)
        tables = [i for i, section in enumerate(elf.sections) if section.type == SectionType.SYMTAB]
        symbols = [symbol for table in tables for symbol in read_symbols(elf, table)]
    except LuthierError:
        return {}
    return {s.address: s.name.removesuffix(_DESCRIPTOR) for s in symbols if s.defined and s.name.endswith(_DESCRIPTOR)}
