"""Append a patch to a code object: every existing byte keeps its offset and its address.

In: a loaded code object and a patch. Out: the bytes of a new code object, the same for the same input.
Invariant: the output starts with the input, but for the file header, which points to the new header tables,
and those entries of .dynamic that name tables which have grown; an empty patch gives the input itself.

The file grows by, in this order: a read-only segment with the program headers, the grown note, dynamic symbol,
hash and string tables and the new kernel descriptors; a segment of code; a segment of variables; then what is
not loaded: .symtab, .strtab, .shstrtab and the section headers. These come last, as ROCr takes the end of the
section headers for the end of the file. ROCr copies LOAD segments in the order of their headers, so new ones
follow the old ones and ascend.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING

from luthier_py.base.errors import Unsupported
from luthier_py.base.records import dataclass, replace
from luthier_py.binary.link.fixups import resolve
from luthier_py.binary.link.grow import Growth, NewSymbol, grow
from luthier_py.binary.link.layout import Cursor, arrange, place, round_up
from luthier_py.binary.link.standalone import make_standalone
from luthier_py.binary.link.validate import check_patch
from luthier_py.binary.loader import (
    CodeObject,
    Section,
    SectionFlag,
    SectionType,
    Segment,
    SegmentFlag,
    SegmentType,
    SymbolBinding,
    Visibility,
)
from luthier_py.binary.loader.codeobject import find_metadata, read_object
from luthier_py.binary.loader.elf import DYNAMIC, LOAD_LIMIT_BYTES, PROGRAM_HEADER, SECTION_HEADER, SYMBOL, Elf
from luthier_py.binary.loader.origins import HERE, ORIGINS_SECTION, object_name, pack_origins

if TYPE_CHECKING:
    from luthier_py.binary.patch import Patch

S_NOP = struct.pack("<I", 0xBF800000)  # SOPP opcode 0, the same on every target


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where everything new lies. ``segments`` are the new LOAD segments; the first starts with the program headers."""

    segments: list[Segment]
    sections: dict[int, Section]
    section_header_offset: int


def link(obj: CodeObject, patch: Patch) -> bytes:
    """The object with the patch appended. Raises Invalid for a patch that contradicts itself or the object."""
    return _append(obj, patch, obj)


def link_apart(obj: CodeObject, patch: Patch) -> bytes:
    """The patch as a standalone code object, with nothing of ``obj`` in it. Distances to addresses of ``obj`` are as if
    both had been loaded at zero, until :func:`luthier_py.binary.link.bindings.apply_bindings` makes them addresses."""
    return _append(read_object(make_standalone(obj), obj.name), patch, obj)


def _append(obj: CodeObject, patch: Patch, origin: CodeObject) -> bytes:
    """``origin`` has the kernels whose metadata new ones are copies of."""
    if patch.empty:
        return obj.data
    check_patch(origin, patch)
    growth = grow(obj, patch, arrange(patch), origin)
    layout = _lay_out(obj.elf, growth)
    addresses = {
        item: layout.sections[index].address + offset
        for index, blob in growth.new.items() for item, offset in blob.offsets.items()
    }
    name = HERE if origin is obj else object_name(origin.data)
    contents = growth.contents | _new_contents(patch, growth, addresses, name)
    contents |= {index: _symbol_table(obj.elf, index, rows, layout) for index, rows in growth.symbols.items()}
    return _write(obj.elf, layout, growth, contents)


def _lay_out(elf: Elf, growth: Growth) -> _Layout:
    at = Cursor(len(elf.data), max((s.end for s in elf.segments if s.load), default=0))
    groups: dict[SegmentFlag, list[int]] = {
        SegmentFlag.READ: [], SegmentFlag.READ | SegmentFlag.EXECUTE: [], SegmentFlag.READ | SegmentFlag.WRITE: [],
    }
    for index, section in growth.sections.items():
        if section.flags & SectionFlag.ALLOC:
            groups[_segment_flags(section)].append(index)
    groups = {flags: indices for flags, indices in groups.items() if indices or flags == SegmentFlag.READ}
    head_bytes = PROGRAM_HEADER.size * (len(elf.segments) + len(groups))
    segments: list[Segment] = []
    sections: dict[int, Section] = {}
    for flags, indices in groups.items():
        segment, placed, at = place(at, flags, [growth.sections[i] for i in indices], head_bytes)
        segments.append(segment)
        sections.update(zip(indices, placed, strict=True))
        head_bytes = 0
    if at.address > LOAD_LIMIT_BYTES:
        raise Unsupported(f"{elf.name}: the patched object would take 0x{at.address:x} bytes of memory; make the "
                          "tool's variables smaller")
    offset = at.offset
    for index, section in growth.sections.items():
        if index not in sections:
            offset = round_up(offset, section.align)
            sections[index] = replace(section, offset=offset)
            offset += section.size
    return _Layout(segments, sections, round_up(offset, 8))


def _segment_flags(section: Section) -> SegmentFlag:
    if section.flags & SectionFlag.EXECUTE:
        return SegmentFlag.READ | SegmentFlag.EXECUTE
    return SegmentFlag.READ | SegmentFlag.WRITE if section.flags & SectionFlag.WRITE else SegmentFlag.READ


def _new_contents(patch: Patch, growth: Growth, addresses: Mapping[str, int], original: bytes) -> dict[int, bytes]:
    """The bytes of the new sections: code, descriptors, variables; and where code comes from."""
    items = {chunk.name: resolve(chunk, addresses) for chunk in patch.chunks}
    for kernel in patch.kernels:
        entry = addresses[kernel.entry] + kernel.entry_offset - addresses[kernel.symbol]
        items[kernel.symbol] = kernel.descriptor.replace(kernel_code_entry_byte_offset=entry).raw
    items |= {variable.name: variable.initial for variable in patch.variables if variable.initial is not None}
    items[ORIGINS_SECTION] = pack_origins(original, (
        (addresses[chunk.name] + offset, pc, size) for chunk in patch.chunks for offset, pc, size in chunk.origins))
    contents = {}
    for index, blob in growth.new.items():
        if blob.type is SectionType.NOBITS:
            continue
        content = bytearray(S_NOP * (blob.size // 4) if blob.flags & SectionFlag.EXECUTE else bytes(blob.size))
        for item, offset in blob.offsets.items():
            content[offset : offset + len(items[item])] = items[item]
        contents[index] = bytes(content)
    return contents


def _symbol_table(elf: Elf, index: int, rows: list[tuple[int, NewSymbol]], layout: _Layout) -> bytes:
    added = (
        SYMBOL.pack(name, SymbolBinding.GLOBAL << 4 | symbol.type, Visibility.PROTECTED, symbol.section,
                    layout.sections[symbol.section].address + symbol.offset, symbol.size)
        for name, symbol in rows
    )
    return elf.content(elf.sections[index]) + b"".join(added)


def _write(elf: Elf, layout: _Layout, growth: Growth, contents: Mapping[int, bytes]) -> bytes:
    segments = _segment_table(elf, layout, growth)
    sections = [layout.sections.get(i, section) for i, section in enumerate(elf.sections)]
    sections += [layout.sections[index] for index in growth.new]
    end = layout.section_header_offset + SECTION_HEADER.size * len(sections)
    out = bytearray(elf.data) + bytes(end - len(elf.data))

    def put(offset: int, content: bytes) -> None:
        out[offset : offset + len(content)] = content

    for index, content in contents.items():
        put(layout.sections[index].offset, content)
    put(layout.segments[0].offset, b"".join(segment.pack() for segment in segments))
    put(layout.section_header_offset, b"".join(section.pack() for section in sections))
    struct.pack_into("<2Q", out, 32, layout.segments[0].offset, layout.section_header_offset)  # e_phoff, e_shoff
    struct.pack_into("<H", out, 56, len(segments))  # e_phnum
    struct.pack_into("<H", out, 60, len(sections))  # e_shnum
    for offset, entry in _dynamic_entries(elf, layout):
        put(offset, entry)
    return bytes(out)


def _segment_table(elf: Elf, layout: _Layout, growth: Growth) -> list[Segment]:
    """All program headers: new LOAD segments after the old ones, PHDR and NOTE where their contents have gone."""
    head = layout.segments[0]
    size = PROGRAM_HEADER.size * (len(elf.segments) + len(layout.segments))
    notes = [layout.sections[index] for index in growth.note_sections]
    found = find_metadata(elf)
    last_load = max((i for i, segment in enumerate(elf.segments) if segment.load), default=-1)
    segments = []
    for i, segment in enumerate(elf.segments):
        if segment.type == SegmentType.PHDR:
            segment = _move_segment(segment, head.offset, head.address, size)
        elif notes and found is not None and segment == found[0]:
            first, last = notes[0], notes[-1]
            segment = _move_segment(segment, first.offset, first.address, last.offset + last.size - first.offset)
        segments.append(segment)
        if i == last_load:
            segments += layout.segments
    return segments


def _move_segment(segment: Segment, offset: int, address: int, size: int) -> Segment:
    return replace(segment, offset=offset, address=address, physical_address=address, file_size=size, memory_size=size)


_ADDRESS_TAGS = {SectionType.HASH: 4, SectionType.DYNSYM: 6, SectionType.GNU_HASH: 0x6FFFFEF5}
_DT_STRTAB, _DT_STRSZ = 5, 10


def _dynamic_entries(elf: Elf, layout: _Layout) -> list[tuple[int, bytes]]:
    """(file offset, bytes) of the entries of .dynamic that must name grown tables."""
    values = {}
    for kind, tag in _ADDRESS_TAGS.items():
        index = elf.find(kind)
        if index is not None and index in layout.sections:
            values[tag] = layout.sections[index].address
            if kind is SectionType.DYNSYM:
                strings = layout.sections[elf.sections[index].link]
                values |= {_DT_STRTAB: strings.address, _DT_STRSZ: strings.size}
    entries = []
    for segment in elf.segments:
        if segment.type == SegmentType.DYNAMIC:
            rows = range(segment.offset, segment.offset + segment.file_size - DYNAMIC.size + 1, DYNAMIC.size)
            tags = [DYNAMIC.unpack_from(elf.data, row)[0] for row in rows]
            known = zip(rows, tags[: tags.index(0)] if 0 in tags else tags, strict=False)
            entries += [(row, DYNAMIC.pack(tag, values[tag])) for row, tag in known if tag in values]
    return entries
