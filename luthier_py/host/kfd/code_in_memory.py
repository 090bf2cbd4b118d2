"""A code object as it lies in device memory: programs free what they loaded it from, and use that memory again.

In: what reads memory, the address that a code object was loaded at. Out: its kernels and its size, by its header and
its dynamic symbols, which are loaded with it. Invariant: nothing outside of an allocation is read; where no code object
lies, or one that is broken, there is none. (System V ABI, "Dynamic Section" and "Hash Table".)
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from luthier_py.base.records import dataclass
from luthier_py.binary.loader.elf import DYNAMIC, FILE_HEADER, PROGRAM_HEADER, SYMBOL, SegmentType

ReadMemory = Callable[[int, int], bytes]
"""Address and size; fewer bytes, or none, where no allocation has them."""

_MAGIC, _DESCRIPTOR = b"\x7fELF", b".kd"
_HASH, _NAMES, _SYMBOLS, _NAMES_SIZE = 4, 5, 6, 10  # tags
_MOST, _COMPARED = 1 << 20, 4096  # symbols; bytes


@dataclass(frozen=True, slots=True)
class CodeInMemory:
    """``kernels``: names by the address of the descriptor. ``begin``: its first bytes, which its file has, too."""

    size: int
    kernels: dict[int, str]
    begin: bytes


def code_in_memory(read: ReadMemory, base: int) -> CodeInMemory | None:
    """The code object whose ELF header is at ``base``; None where there is none, or memory has no longer all of it."""
    try:
        return _code(read, base)
    except (struct.error, KeyError):
        return None


def _code(read: ReadMemory, base: int) -> CodeInMemory | None:
    header = read(base, FILE_HEADER.size)
    if header[:4] != _MAGIC:
        return None
    _, _, _, _, _, offset, _, _, _, _, count, *_ = FILE_HEADER.unpack(header)
    rows = [*PROGRAM_HEADER.iter_unpack(read(base + offset, count * PROGRAM_HEADER.size))]
    loaded = [row for row in rows if row[0] == SegmentType.LOAD]
    first = min((filled for _, _, at, address, _, filled, *_ in loaded if at == address == 0), default=0)
    dynamic = next((row for row in rows if row[0] == SegmentType.DYNAMIC), None)
    tags = {} if dynamic is None else dict(DYNAMIC.iter_unpack(read(base + dynamic[3], dynamic[5])))
    size = max((address + whole for _, _, _, address, _, _, whole, _ in loaded), default=0)
    return CodeInMemory(size, _kernels(read, base, tags), read(base, min(first, _COMPARED)))


def _kernels(read: ReadMemory, base: int, tags: dict[int, int]) -> dict[int, str]:
    count = min(struct.unpack("<II", read(base + tags[_HASH], 8))[1], _MOST)
    names = read(base + tags[_NAMES], tags[_NAMES_SIZE])
    found = {}
    for name, _, _, section, value, _ in SYMBOL.iter_unpack(read(base + tags[_SYMBOLS], count * SYMBOL.size)):
        text = names[name : names.find(b"\0", name)]
        if section and text.endswith(_DESCRIPTOR):
            found[value] = text.removesuffix(_DESCRIPTOR).decode(errors="replace")
    return found
