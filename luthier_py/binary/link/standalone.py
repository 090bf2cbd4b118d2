"""A code object for the same target with nothing in it, to which a patch can be appended.

In: a code object. Out: the bytes of another one: no code, no kernel, no symbol but the null one. Invariant: what says
how kernels are to be loaded and run (target, ABI, the metadata beside the kernels) is the original's, and every table
that a loader looks for is there: .symtab for ROCr, .dynsym with hashes and the note for HIP's runtime.
"""

from __future__ import annotations

from collections.abc import Iterator

from luthier_py.base.records import dataclass, replace
from luthier_py.binary.link.layout import PAGE_BYTES, round_up
from luthier_py.binary.link.tables import build_gnu_hash, build_hash
from luthier_py.binary.loader import CodeObject, Section, SectionFlag, SectionType, Segment, SegmentFlag, SegmentType
from luthier_py.binary.loader.elf import DYNAMIC, FILE_HEADER, PROGRAM_HEADER, SECTION_HEADER, SYMBOL
from luthier_py.binary.loader.note import METADATA_OWNER, METADATA_TYPE, Note, pack_metadata

_NULL_SYMBOL = bytes(SYMBOL.size)
_NO_NAMES = [b""]
_SEGMENTS = 4  # PHDR, LOAD, DYNAMIC, and NOTE where there is metadata
# Tags of .dynamic (System V ABI, "Dynamic Section"): those that hold addresses by section, and numbers.
_TABLES = {4: ".hash", 5: ".dynstr", 6: ".dynsym", 0x6FFFFEF5: ".gnu.hash"}
_NUMBERS = {10: 1, 11: SYMBOL.size}  # DT_STRSZ, DT_SYMENT


@dataclass(frozen=True, slots=True)
class _Part:
    """A section before it has a place; ``link`` by name."""

    name: str
    type: SectionType
    content: bytes
    link: str = ""
    allocated: bool = True
    info: int = 0
    align: int = 8
    entry_size: int = 0


def make_standalone(obj: CodeObject) -> bytes:
    """``obj`` without all that it contains."""
    parts = [*_parts(obj)]
    names = b"\0" + b"".join(part.name.encode() + b"\0" for part in parts)
    parts = [replace(part, content=names) if part.name == ".shstrtab" else part for part in parts]
    sections, end = _lay_out_sections(parts, names)
    table = _dynamic({section.name: section.address for section in sections})
    contents = [table if part.type is SectionType.DYNAMIC else part.content for part in parts]
    segments = [*_segments({section.name: section for section in sections})]
    head = FILE_HEADER.size
    header = (*FILE_HEADER.unpack_from(obj.data)[:4], 0, head, end, obj.elf.flags, head, PROGRAM_HEADER.size,
              len(segments), SECTION_HEADER.size, len(sections) + 1, len(sections))
    out = bytearray(FILE_HEADER.pack(*header) + b"".join(segment.pack() for segment in segments))
    for section, content in zip(sections, contents, strict=True):
        out += bytes(section.offset - len(out)) + content
    out += bytes(end - len(out)) + bytes(SECTION_HEADER.size) + b"".join(section.pack() for section in sections)
    return bytes(out)


def _parts(obj: CodeObject) -> Iterator[_Part]:
    """Sections in the order of the file; the last one has the names of all, once they are known."""
    if obj.metadata:
        document = pack_metadata({**obj.metadata, "amdhsa.kernels": []})
        note = Note(0, METADATA_OWNER, METADATA_TYPE, document).pack()
        yield _Part(".note", SectionType.NOTE, note, align=4)
    yield _Part(".dynsym", SectionType.DYNSYM, _NULL_SYMBOL, ".dynstr", info=1, entry_size=SYMBOL.size)
    yield _Part(".gnu.hash", SectionType.GNU_HASH, build_gnu_hash(_NO_NAMES, 1), ".dynsym")
    yield _Part(".hash", SectionType.HASH, build_hash(_NO_NAMES), ".dynsym", align=4, entry_size=4)
    yield _Part(".dynstr", SectionType.STRTAB, b"\0", align=1)
    yield _Part(".dynamic", SectionType.DYNAMIC, _dynamic({}), ".dynstr", entry_size=DYNAMIC.size)
    yield _Part(".symtab", SectionType.SYMTAB, _NULL_SYMBOL, ".strtab", False, info=1, entry_size=SYMBOL.size)
    yield _Part(".strtab", SectionType.STRTAB, b"\0", allocated=False, align=1)
    yield _Part(".shstrtab", SectionType.STRTAB, b"", allocated=False, align=1)


def _lay_out_sections(parts: list[_Part], names: bytes) -> tuple[list[Section], int]:
    """One after the other behind the program headers, each at its offset in memory, too; and where the table starts."""
    index = {part.name: number for number, part in enumerate(parts, 1)}
    at, sections = FILE_HEADER.size + PROGRAM_HEADER.size * _SEGMENTS, []
    for part in parts:
        at = round_up(at, part.align)
        flags, address = (SectionFlag.ALLOC, at) if part.allocated else (SectionFlag(0), 0)
        sections.append(Section(part.name, names.index(part.name.encode() + b"\0"), part.type, flags, address, at,
                                len(part.content), index.get(part.link, 0), part.info, part.align, part.entry_size))
        at += len(part.content)
    return sections, round_up(at, 8)


def _segments(sections: dict[str, Section]) -> Iterator[Segment]:
    head, size = FILE_HEADER.size, PROGRAM_HEADER.size * (_SEGMENTS - (".note" not in sections))
    end = max(section.address + section.size for section in sections.values())
    dynamic, note = sections[".dynamic"], sections.get(".note")
    places = [(SegmentType.PHDR, head, size, 8), (SegmentType.LOAD, 0, end, PAGE_BYTES),
              (SegmentType.DYNAMIC, dynamic.offset, dynamic.size, 8)]
    if note is not None:
        places.append((SegmentType.NOTE, note.offset, note.size, 4))
    for type, offset, size, align in places:
        yield Segment(type, SegmentFlag.READ, offset, offset, offset, size, size, align)


def _dynamic(addresses: dict[str, int]) -> bytes:
    entries = {tag: addresses.get(name, 0) for tag, name in _TABLES.items()} | _NUMBERS
    return b"".join(DYNAMIC.pack(*entry) for entry in entries.items()) + bytes(DYNAMIC.size)
