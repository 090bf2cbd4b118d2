"""Code objects that lie in device memory: what ROCr says that it has loaded.

In: load addresses with ELF images, as ROCr's list of loaded code objects has them (_amdgpu_r_debug). Out: the name of
the kernel whose descriptor is at an address, where address 0 of its code object is, and what the image says of its
code. Invariant: an image is stored only until its names are read, but for one that has line tables or is a tool's copy;
one that cannot be read says nothing, and that is no error; of one that is not what was loaded, since the program has
freed it, memory has the names.
"""

from __future__ import annotations

import bisect
import threading
from functools import cached_property

from luthier_py.base.errors import LuthierError
from luthier_py.base.records import dataclass
from luthier_py.binary.loader import MEMORY
from luthier_py.binary.loader.elf import Elf, SectionType, parse_elf
from luthier_py.binary.loader.origins import ORIGINS_SECTION, load_original
from luthier_py.binary.loader.symbols import read_symbols
from luthier_py.emulator.reading.text import ImageText
from luthier_py.host.kfd.code_in_memory import ReadMemory, code_in_memory

_DESCRIPTOR = ".kd"
_TELLING = {ORIGINS_SECTION, ".debug_info"}


class LoadedCode:
    """Mutable: code objects by the address that they were loaded at; a later one at the same address is another one."""

    def __init__(self, read: ReadMemory = lambda address, size: b"") -> None:
        self._read = read
        self._images: dict[int, _Image | _Names] = {}
        self._bases: list[int] = []
        self._lock = threading.Lock()

    def add(self, base: int, image: bytes) -> None:
        """Take up a code object that ROCr has loaded at ``base``; ``image``: its file, or what is in that memory by
        now."""
        there = code_in_memory(self._read, base)
        freed = there is not None and not image.startswith(there.begin)
        added = _Names(there.size, there.kernels) if there is not None and freed else _Image(image)
        with self._lock:
            if base not in self._images:
                bisect.insort(self._bases, base)
            self._images[base] = added

    def name_of(self, kernel_object: int) -> str | None:
        """The symbol of the kernel whose descriptor is at an address; None where no known code object has one there."""
        base = self.base_of(kernel_object)
        if base is None:
            return None
        with self._lock:
            image = self._images.get(base)  # None: its memory was freed in this moment
            return None if image is None else image.kernels.get(kernel_object - base)

    def base_of(self, address: int) -> int | None:
        """Of the code object that an address lies in."""
        with self._lock:
            place = bisect.bisect_right(self._bases, address) - 1
            base = self._bases[place] if place >= 0 else None
            return base if base is not None and address < base + self._images[base].size else None

    def text_at(self, base: int) -> ImageText | None:
        """What the image says of its code that was loaded there; None if nothing."""
        with self._lock:
            image = self._images.get(base)
        return None if image is None else image.text

    def forget(self, start: int, size: int) -> None:
        """Memory was freed."""
        with self._lock:
            for base in [base for base in self._bases if start <= base < start + size]:
                self._bases.remove(base)
                del self._images[base]


@dataclass(frozen=True, slots=True)
class _Names:
    """What memory says of one whose image is gone."""

    size: int
    kernels: dict[int, str]
    text: ImageText | None = None


class _Image:
    """Mutable: what is stored of one. ``size``: bytes of memory from address 0 to the end of its last segment."""

    def __init__(self, data: bytes) -> None:
        try:
            self._elf: Elf | None = parse_elf(data, MEMORY)
        except LuthierError:
            self._elf = None
        segments, sections = ((), ()) if self._elf is None else (self._elf.segments, self._elf.sections)
        self.size = max((segment.end for segment in segments if segment.load), default=0)
        tells = any(section.name in _TELLING for section in sections)
        self.text = ImageText(self._elf, load_original) if self._elf is not None and tells else None

    @cached_property
    def kernels(self) -> dict[int, str]:
        """Names by the address of the descriptor."""
        elf, self._elf = self._elf, None
        if elf is None:
            return {}
        try:
            tables = [i for i, section in enumerate(elf.sections) if section.type == SectionType.SYMTAB]
            symbols = [symbol for table in tables for symbol in read_symbols(elf, table)]
        except LuthierError:
            return {}
        return {symbol.address: symbol.name.removesuffix(_DESCRIPTOR) for symbol in symbols
                if symbol.defined and symbol.name.endswith(_DESCRIPTOR)}  # fmt: skip
