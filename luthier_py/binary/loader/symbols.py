"""Symbols and dynamic relocations of an ELF file.

In: an Elf. Out: the rows of its tables. Invariant: a symbol keeps its number, whatever is wrong with others.
(System V ABI, "Symbol Table"; AMDGPUUsage, "Relocation Records".)
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache

from luthier_py.base.errors import Malformed, Unsupported
from luthier_py.binary.loader.elf import (
    RELOCATION,
    SHN_LORESERVE,
    SHN_UNDEF,
    SYMBOL,
    Elf,
    Relocation,
    RelocationKind,
    Section,
    SectionFlag,
    SectionType,
    Symbol,
    SymbolBinding,
    SymbolType,
    Visibility,
    convert_to_enum,
    string_at,
)

_NO_SYMBOL = Symbol("", 0, 0, SymbolType.NOTYPE, SymbolBinding.LOCAL, Visibility.DEFAULT, SHN_UNDEF)


def read_symbols(
    elf: Elf, index: int, left_out: Callable[[int, Malformed], None] | None = None
) -> tuple[Symbol, ...]:
    """All symbols of the symbol table in section ``index``, the null symbol first.

    A broken row is reported to ``left_out``, and becomes an undefined symbol without a name, as others are numbered;
    without ``left_out`` it is Malformed.
    """
    table = elf.sections[index]
    what = f"{elf.name}: symbol table {table.name}"
    named = string_at(elf.content(_find_linked_section(elf, table, what)), f"{what}: names")
    symbols = []
    for row, fields in enumerate(SYMBOL.iter_unpack(_entries(elf, table, SYMBOL))):
        try:
            symbols.append(_symbol(elf, row, fields, named, what))
        except Malformed as error:
            if left_out is None:
                raise
            left_out(row, error)
            symbols.append(_NO_SYMBOL)
    return tuple(symbols)


def _symbol(elf: Elf, row: int, fields: tuple[int, ...], named: Callable[[int], str], what: str) -> Symbol:
    name, info, other, section, value, size = fields
    if SHN_LORESERVE > section >= len(elf.sections):
        raise Malformed(f"{what}: symbol {row} is in section {section}, but there are {len(elf.sections)}")
    return Symbol(named(name) if row or name else "", value, size, *_kind(info, other), section)


@cache
def _kind(info: int, other: int) -> tuple[int, int, Visibility]:
    """Type, binding and visibility: two bytes, while Tensile's objects have 200,000 symbols."""
    return convert_to_enum(SymbolType, info & 15), convert_to_enum(SymbolBinding, info >> 4), Visibility(other & 3)


def read_relocations(elf: Elf) -> tuple[Relocation, ...]:
    """The dynamic relocations: allocated RELA sections (link-time ones, which --emit-relocs leaves, are done
    already)."""
    relocations = []
    for section in elf.sections:
        if section.type != SectionType.RELA or not section.flags & SectionFlag.ALLOC:
            continue
        what = f"{elf.name}: relocation section {section.name}"
        broken: dict[int, Malformed] = {}
        named = _find_linked_section(elf, section, what).type == SectionType.DYNSYM
        symbols = read_symbols(elf, section.link, broken.__setitem__) if named else ()
        for row, (address, info, addend) in enumerate(RELOCATION.iter_unpack(_entries(elf, section, RELOCATION))):
            symbol, kind = info >> 32, info & 0xFFFFFFFF
            if symbol and symbol >= len(symbols):
                raise Malformed(f"{what}: entry {row} names symbol {symbol}, but there are {len(symbols)}")
            if symbol in broken:
                raise broken[symbol]
            if kind not in RelocationKind.__members__.values():
                raise Unsupported(f"{what}: entry {row} has the unknown relocation type {kind}")
            if elf.load_at(address) is None:
                raise Malformed(f"{what}: entry {row} is for address 0x{address:x}, outside all LOAD segments")
            relocations.append(Relocation(address, RelocationKind(kind), symbols[symbol] if symbol else None, addend))
    return tuple(relocations)


def _find_linked_section(elf: Elf, section: Section, what: str) -> Section:
    if not 0 < section.link < len(elf.sections):
        raise Malformed(f"{what}: links to section {section.link}, but there are {len(elf.sections)}")
    return elf.sections[section.link]


def _entries(elf: Elf, section: Section, layout: struct.Struct) -> bytes:
    if section.entry_size != layout.size or section.size % layout.size:
        raise Malformed(f"{elf.name}: section {section.name} at 0x{section.offset:x}: 0x{section.size:x} bytes in "
                        f"entries of {section.entry_size}; they take {layout.size} each")
    return elf.content(section)
