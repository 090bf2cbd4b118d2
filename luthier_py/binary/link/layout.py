"""Where additions go: new sections filled with named items, and sections in new LOAD segments.

In: a patch, and the ends of the file and of its memory. Out: offsets and addresses. Invariant: what is placed
lies after everything that was there, and file offsets and addresses agree modulo the page size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from luthier_py.base.records import dataclass, replace
from luthier_py.binary.loader import (
    DESCRIPTOR_BYTES,
    Section,
    SectionFlag,
    SectionType,
    Segment,
    SegmentFlag,
    SegmentType,
)
from luthier_py.binary.loader.origins import CODE_SECTION, HERE, ORIGINS_SECTION, pack_origins

if TYPE_CHECKING:
    from luthier_py.binary.patch import Patch

PAGE_BYTES = 0x1000

_READ = SectionFlag.ALLOC
_WRITE = SectionFlag.ALLOC | SectionFlag.WRITE
_EXECUTE = SectionFlag.ALLOC | SectionFlag.EXECUTE
# Instructions are fetched ahead of execution, so what follows code must be memory: LLVM pads as much.
_PREFETCH_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Blob:
    """A new section's content: items by name, at offsets from its start."""

    name: str
    type: SectionType
    flags: SectionFlag
    align: int
    size: int
    offsets: dict[str, int]

    def section(self, name_offset: int) -> Section:
        """Its header, still without a place."""
        return Section(self.name, name_offset, self.type, self.flags, 0, 0, self.size, 0, 0, self.align, 0)


def arrange(patch: Patch) -> tuple[Blob, ...]:
    """The new sections that a patch needs, empty ones left out."""
    progbits = SectionType.PROGBITS
    descriptors = [(k.symbol, DESCRIPTOR_BYTES, DESCRIPTOR_BYTES) for k in patch.kernels]
    chunks = [(c.name, len(c.code), c.align) for c in patch.chunks]
    constants = [(v.name, v.size, v.align) for v in patch.variables if v.constant]
    set_variables = [(v.name, v.size, v.align) for v in patch.variables if v.initial is not None and not v.constant]
    zero_variables = [(v.name, v.size, v.align) for v in patch.variables if v.initial is None]
    rows = [(0, 0, 0) for chunk in patch.chunks for _ in chunk.origins]
    origins = [(ORIGINS_SECTION, len(pack_origins(HERE, rows)), 4)] if rows else []
    blobs = (
        _fill(".rodata.luthier", progbits, _READ, [*descriptors, *constants]),
        _fill(CODE_SECTION, progbits, _EXECUTE, chunks, _PREFETCH_BYTES),
        _fill(".data.luthier", progbits, _WRITE, set_variables),
        _fill(".bss.luthier", SectionType.NOBITS, _WRITE, zero_variables),
        _fill(ORIGINS_SECTION, progbits, SectionFlag(0), origins),
    )
    return tuple(blob for blob in blobs if blob.offsets)


def _fill(
    name: str, type: SectionType, flags: SectionFlag, items: Sequence[tuple[str, int, int]], tail: int = 0
) -> Blob:
    """One item (name, size, alignment) after the other."""
    end, offsets = 0, {}
    for item, size, align in items:
        offsets[item] = round_up(end, align)
        end = offsets[item] + size
    return Blob(name, type, flags, max((align for _, _, align in items), default=1), end + tail, offsets)


@dataclass(frozen=True, slots=True)
class Cursor:
    """First free byte of the file and of memory."""

    offset: int
    address: int


def place(
    at: Cursor, flags: SegmentFlag, sections: Iterable[Section], head_bytes: int = 0
) -> tuple[Segment, list[Section], Cursor]:
    """A LOAD segment of ``head_bytes`` and then ``sections``, those without bytes in the file last; what follows it."""
    sections = list(sections)
    offset = round_up(at.offset, max([8, *(section.align for section in sections)]))
    address = round_up(at.address, PAGE_BYTES) + offset % PAGE_BYTES
    file_end = memory_end = head_bytes
    placed = []
    for section in sections:
        start = round_up(memory_end, section.align)
        memory_end = start + section.size
        file_end = file_end if section.type == SectionType.NOBITS else memory_end
        placed.append(replace(section, offset=offset + min(start, file_end), address=address + start))
    segment = Segment(SegmentType.LOAD, flags, offset, address, address, file_end, memory_end, PAGE_BYTES)
    return segment, placed, Cursor(offset + file_end, segment.end)


def round_up(value: int, align: int) -> int:
    """The least multiple of ``align`` that is not below ``value``; any positive ``align``."""
    return -(-value // align) * align
