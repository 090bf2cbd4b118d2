"""The tables that must grow with a patch: symbols, strings, hashes, notes.

In: a code object, a checked patch, and its new sections. Out: :class:`Growth`, the headers of all sections that
need new space, with their final sizes, and the contents that do not depend on addresses. Invariant: sections,
symbols and strings are only added; those that are there keep their indices and offsets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier_py.base.errors import Unsupported
from luthier_py.base.records import dataclass, replace
from luthier_py.binary.link.layout import PAGE_BYTES, Blob
from luthier_py.binary.link.tables import StringTable, build_gnu_hash, build_hash, first_hashed, symbol_names
from luthier_py.binary.loader import DESCRIPTOR_BYTES, CodeObject, Section, SectionType, SymbolType
from luthier_py.binary.loader.codeobject import find_metadata
from luthier_py.binary.loader.elf import SYMBOL, Elf
from luthier_py.binary.loader.note import Metadata, pack_metadata, read_notes, unpack_metadata
from luthier_py.binary.loader.symbols import read_symbols

if TYPE_CHECKING:
    from luthier_py.binary.patch import NewKernel, Patch


@dataclass(frozen=True, slots=True)
class NewSymbol:
    """A symbol at ``offset`` in section ``section``. ``dynamic``: the host may look it up."""

    name: str
    type: SymbolType
    section: int
    offset: int
    size: int
    dynamic: bool


@dataclass(frozen=True, slots=True)
class Growth:
    """All sections that need new space, by index: grown ones, whose old space is given up, and new ones."""

    sections: dict[int, Section]
    contents: dict[int, bytes]
    symbols: dict[int, list[tuple[int, NewSymbol]]]
    """Rows to add to a symbol table: (offset of the name in its string table, symbol)."""
    new: dict[int, Blob]
    note_sections: tuple[int, ...]


def grow(obj: CodeObject, patch: Patch, blobs: tuple[Blob, ...], origin: CodeObject) -> Growth:
    """``origin`` has the kernels that new ones are like."""
    elf = obj.elf
    if elf.find(SectionType.GNU_VERSYM) is not None:
        raise Unsupported(f"{obj.name}: has symbol versions; link it without a version script")
    if not obj.symbols:
        raise Unsupported(f"{obj.name}: has no symbol table to add to; do not strip it")
    new = dict(enumerate(blobs, len(elf.sections)))
    added = _new_symbols(patch, new)
    strings: dict[int, StringTable] = {}

    def add_string(table: int, name: str) -> int:
        return strings.setdefault(table, StringTable(elf.content(elf.sections[table]))).add(name)

    sections = {index: blob.section(add_string(elf.section_names, blob.name)) for index, blob in new.items()}
    symbols = {}
    stripped = elf.find(SectionType.SYMTAB) is None  # then the dynamic symbols are all that there are
    for kind in (SectionType.SYMTAB, SectionType.DYNSYM):
        index = elf.find(kind)
        chosen = [symbol for symbol in added if symbol.dynamic or stripped or kind is SectionType.SYMTAB]
        if index is None or not chosen:
            continue
        read_symbols(elf, index, lambda row, error: None)  # raises Malformed for a table that cannot be extended
        table = elf.sections[index]
        symbols[index] = [(add_string(table.link, symbol.name), symbol) for symbol in chosen]
        sections[index] = _resize_section(table, table.size + SYMBOL.size * len(chosen))
    kernels = [_kernel_metadata(origin, kernel) for kernel in patch.kernels]
    notes = _grow_notes(obj, kernels) if kernels and obj.metadata else {}
    contents = {index: bytes(table) for index, table in strings.items()} | _grow_hashes(elf, symbols) | notes
    sections |= {index: _resize_section(elf.sections[index], len(content)) for index, content in contents.items()}
    return Growth(dict(sorted(sections.items())), contents, symbols, new, tuple(notes))


def _resize_section(section: Section, size: int) -> Section:
    return replace(section, size=size, align=min(max(section.align, 1), PAGE_BYTES))


def _new_symbols(patch: Patch, new: dict[int, Blob]) -> list[NewSymbol]:
    place = {item: (index, offset) for index, blob in new.items() for item, offset in blob.offsets.items()}
    entries = {kernel.name: kernel for kernel in patch.kernels}
    sizes = {chunk.name: len(chunk.code) for chunk in patch.chunks}
    symbols = [NewSymbol(name, SymbolType.FUNC, *place[name], size, False)
               for name, size in sizes.items() if name not in entries]
    for kernel in patch.kernels:
        index, offset = place[kernel.entry]
        symbols += [
            NewSymbol(kernel.name, SymbolType.FUNC, index, offset + kernel.entry_offset,
                      sizes[kernel.entry] - kernel.entry_offset, True),
            NewSymbol(kernel.symbol, SymbolType.OBJECT, *place[kernel.symbol], DESCRIPTOR_BYTES, True),
        ]
    return symbols + [NewSymbol(v.name, SymbolType.OBJECT, *place[v.name], v.size, True) for v in patch.variables]


def _grow_hashes(elf: Elf, symbols: dict[int, list[tuple[int, NewSymbol]]]) -> dict[int, bytes]:
    """Hash tables of the dynamic symbols, those that the object has."""
    index = elf.find(SectionType.DYNSYM)
    if index is None or index not in symbols:
        return {}
    table = elf.sections[index]
    names = symbol_names(elf.content(table), elf.content(elf.sections[table.link]))
    old_count = len(names)
    names += [symbol.name.encode() for _, symbol in symbols[index]]
    contents = {}
    hash_index, gnu_index = elf.find(SectionType.HASH), elf.find(SectionType.GNU_HASH)
    if hash_index is not None:
        contents[hash_index] = build_hash(names)
    if gnu_index is not None:
        first = first_hashed(elf.content(elf.sections[gnu_index]), old_count, elf.name)
        contents[gnu_index] = build_gnu_hash(names, first)
    return contents


def _grow_notes(obj: CodeObject, kernels: list[Metadata]) -> dict[int, bytes]:
    """The sections of the NOTE segment that has the metadata, with these kernels in the last document."""
    found = find_metadata(obj.elf)
    notes = {index: list(read_notes(obj.elf.content(section), f"{obj.name}: section {section.name}"))
             for index, section in enumerate(obj.sections)
             if found is not None and section.type == SectionType.NOTE and found[0].holds(section)}
    places = [(index, number) for index, each in notes.items() for number, note in enumerate(each) if note.is_metadata]
    if not places:
        raise Unsupported(f"{obj.name}: no section has its metadata note; was it stripped of section headers?")
    index, number = places[-1]
    document = unpack_metadata(notes[index][number].content, f"{obj.name}: its last metadata note")
    document["amdhsa.kernels"] = [*document.get("amdhsa.kernels", []), *kernels]
    notes[index][number] = replace(notes[index][number], content=pack_metadata(document))
    return {index: b"".join(note.pack() for note in each) for index, each in notes.items()}


_SIZES = {
    ".group_segment_fixed_size": "group_segment_fixed_size",
    ".private_segment_fixed_size": "private_segment_fixed_size",
    ".kernarg_segment_size": "kernarg_size",
}


def _kernel_metadata(obj: CodeObject, kernel: NewKernel) -> Metadata:
    """The entry of ``kernel.like``, in agreement with the new descriptor."""
    like = obj.kernel(kernel.like)
    sizes = {
        key: getattr(kernel.descriptor, field) for key, field in _SIZES.items()
        if getattr(kernel.descriptor, field) != getattr(like.descriptor, field)
    }
    return {**like.metadata, **sizes, **kernel.metadata, ".name": kernel.name, ".symbol": kernel.symbol}
