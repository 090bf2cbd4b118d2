"""ELF64 as code objects use it: file header, segments, sections, symbols, relocations.

In: the bytes of a file that may be truncated or hostile. Out: :class:`Elf`, the headers as frozen rows.
Invariant: every row of an Elf lies inside the file, LOAD segments do not overlap, and whatever breaks
the format is :class:`Malformed` with the name of the part and its offset. (System V ABI, chapters 4 and 5.)
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum, IntFlag
from mmap import mmap
from typing import TypeVar

from luthier_py.base.errors import Malformed, Unsupported
from luthier_py.base.records import dataclass, field

FILE_HEADER = struct.Struct("<16s2HI3QI6H")
PROGRAM_HEADER = struct.Struct("<2I6Q")
SECTION_HEADER = struct.Struct("<2I4Q2I2Q")
SYMBOL = struct.Struct("<I2BH2Q")
RELOCATION = struct.Struct("<2Qq")
DYNAMIC = struct.Struct("<qQ")

MAGIC = b"\x7fELF"
ET_DYN = 3
SHN_UNDEF = 0
SHN_LORESERVE = 0xFF00
SHN_ABS = 0xFFF1
LOAD_LIMIT_BYTES = 1 << 32
_OVERLAP = 2  # times the file's bytes, sections may have, and segments of one type
_SHARED = 64  # times a table's bytes, all names that it is read for


class SegmentType(IntEnum):
    """p_type of program headers: values that matter here; others stay numbers."""

    LOAD = 1
    DYNAMIC = 2
    NOTE = 4
    PHDR = 6


class SegmentFlag(IntFlag):
    """p_flags of program headers."""

    EXECUTE = 1
    WRITE = 2
    READ = 4


class SectionType(IntEnum):
    """sh_type of section headers: values that matter here; others stay numbers."""

    PROGBITS = 1
    SYMTAB = 2
    STRTAB = 3
    RELA = 4
    HASH = 5
    DYNAMIC = 6
    NOTE = 7
    NOBITS = 8
    DYNSYM = 11
    GNU_HASH = 0x6FFFFFF6
    GNU_VERSYM = 0x6FFFFFFF


class SectionFlag(IntFlag):
    """sh_flags of section headers: bits that matter here."""

    WRITE = 1
    ALLOC = 2
    EXECUTE = 4


class SymbolType(IntEnum):
    """The low four bits of st_info of symbols."""

    NOTYPE = 0
    OBJECT = 1
    FUNC = 2
    SECTION = 3
    FILE = 4
    COMMON = 5
    TLS = 6
    KERNEL_V2 = 10  # STT_AMDGPU_HSA_KERNEL


class SymbolBinding(IntEnum):
    """The high four bits of st_info of symbols."""

    LOCAL = 0
    GLOBAL = 1
    WEAK = 2


class Visibility(IntEnum):
    """The low two bits of st_other of symbols."""

    DEFAULT = 0
    INTERNAL = 1
    HIDDEN = 2
    PROTECTED = 3


class RelocationKind(IntEnum):
    """AMDGPUUsage, "Relocation Records"."""

    NONE = 0
    ABS32_LO = 1
    ABS32_HI = 2
    ABS64 = 3
    REL32 = 4
    REL64 = 5
    ABS32 = 6
    GOTPCREL = 7
    GOTPCREL32_LO = 8
    GOTPCREL32_HI = 9
    REL32_LO = 10
    REL32_HI = 11
    RELATIVE64 = 13
    REL16 = 14


@dataclass(frozen=True, slots=True)
class Segment:
    """A program header. ``type`` is a SegmentType where that enum has it."""

    type: int
    flags: SegmentFlag
    offset: int
    address: int
    physical_address: int
    file_size: int
    memory_size: int
    align: int

    @property
    def load(self) -> bool:
        """Whether it is to be in memory."""
        return self.type == SegmentType.LOAD

    @property
    def end(self) -> int:
        """First address after the segment in memory."""
        return self.address + self.memory_size

    def holds(self, section: Section) -> bool:
        """Whether all of a section's bytes in the file belong to the segment."""
        return self.offset <= section.offset and section.offset + section.size <= self.offset + self.file_size

    def pack(self) -> bytes:
        """Its program header, 56 bytes."""
        return PROGRAM_HEADER.pack(self.type, self.flags, self.offset, self.address, self.physical_address,
                                   self.file_size, self.memory_size, self.align)


@dataclass(frozen=True, slots=True)
class Section:
    """A section header. ``type`` is a SectionType where that enum has it."""

    name: str
    name_offset: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry_size: int

    def pack(self) -> bytes:
        """Its section header, 64 bytes; of the name only the offset is in it."""
        return SECTION_HEADER.pack(self.name_offset, self.type, self.flags, self.address, self.offset, self.size,
                                   self.link, self.info, self.align, self.entry_size)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol. ``section`` is a section index, SHN_UNDEF, or a reserved index such as SHN_ABS."""

    name: str
    address: int
    size: int
    type: int
    binding: int
    visibility: Visibility
    section: int

    @property
    def defined(self) -> bool:
        """Whether it names an address of this object."""
        return self.section != SHN_UNDEF and self.section < SHN_LORESERVE


@dataclass(frozen=True, slots=True)
class Relocation:
    """A dynamic relocation: what the loader must write at ``address``."""

    address: int
    kind: RelocationKind
    symbol: Symbol | None
    addend: int


@dataclass(frozen=True, slots=True)
class Elf:
    """The headers of one ELF file, and its bytes."""

    name: str
    data: bytes = field(repr=False)
    abi_version: int
    flags: int
    program_header_offset: int
    section_header_offset: int
    section_names: int  # index of the section that holds section names
    segments: tuple[Segment, ...]
    sections: tuple[Section, ...]

    def content(self, section: Section) -> bytes:
        """The bytes of a section; empty for NOBITS."""
        return b"" if section.type == SectionType.NOBITS else self.data[section.offset : section.offset + section.size]

    def find(self, type: int) -> int | None:
        """Index of the first section of a type."""
        return next((i for i, section in enumerate(self.sections) if section.type == type), None)

    def load_at(self, address: int) -> Segment | None:
        """The LOAD segment that covers an address."""
        return next((s for s in self.segments if s.load and s.address <= address < s.end), None)


def is_code_object(data: bytes | mmap) -> bool:
    """Whether it begins as an ELF for AMD GPUs does."""
    return data[:4] == MAGIC and int.from_bytes(data[18:20], "little") == _AMDGPU


def check_header(data: bytes | mmap, name: str) -> None:
    """Raise Malformed or Unsupported where the first bytes say that it is no linked AMD GPU ELF for the HSA ABI."""
    if data[:4] != MAGIC:
        what = next((f" but {what}" for magic, what in _OTHER_FILES if data[: len(magic)] == magic), "")
        raise Malformed(f"{name}: not an ELF file{what}; give an AMD GPU code object, or a file that carries some")
    if len(data) < FILE_HEADER.size:
        raise Malformed(f"{name}: truncated ELF: {len(data)} bytes, the file header alone takes {FILE_HEADER.size}")
    ident, kind, machine, *_ = FILE_HEADER.unpack_from(data)
    _check_identity(ident, kind, machine, name)


def parse_elf(data: bytes, name: str) -> Elf:
    """Read all headers of a linked AMD GPU ELF for the HSA ABI. Raises Malformed or Unsupported."""
    check_header(data, name)
    (ident, _, _, _, _, phoff, shoff, flags, _, phentsize, phnum, shentsize, shnum, shstrndx) = (
        FILE_HEADER.unpack_from(data))
    segments = tuple(
        Segment(convert_to_enum(SegmentType, type), SegmentFlag(flags & 7), *rest)
        for type, flags, *rest in _rows(data, name, "program header", PROGRAM_HEADER, phoff, phnum, phentsize)
    )
    headers = tuple(_rows(data, name, "section header", SECTION_HEADER, shoff, shnum, shentsize))
    if headers and shstrndx >= len(headers):
        raise Malformed(f"{name}: section {shstrndx} should hold the section names, but there are {len(headers)}")
    sections = _name_sections(data, name, headers, shstrndx)
    _check_segments(data, name, segments)
    return Elf(name, data, ident[8], flags, phoff, shoff, shstrndx, segments, sections)


def _check_identity(ident: bytes, kind: int, machine: int, name: str) -> None:
    if ident[4] != 2 or ident[5] != 1:
        raise Malformed(f"{name}: not a 64-bit little-endian ELF; AMD GPU code objects are")
    if machine != _AMDGPU:
        what = _MACHINES.get(machine, f"machine {machine}")
        raise Malformed(f"{name}: an ELF for {what}, and no code for AMD GPUs is found in it; give a code object, or a "
                        "program or library that carries some (in Python: of its bytes, "
                        "luthier_py.binary.loader.unbundle)")
    if ident[7] != 64:
        raise Unsupported(f"{name}: an AMD GPU ELF with OS ABI {ident[7]}, not HSA (64); compile for amdgcn-amd-amdhsa")
    if kind != ET_DYN:
        raise Unsupported(f"{name}: ELF type {kind}, not a linked code object; link it with lld (ld.lld -shared)")


_OTHER_FILES = (
    (b"__CLANG_OFFLOAD_BUNDLE__",
     "an offload bundle (see what is in it with luthier info; luthier_py.binary.loader.unbundle takes it out)"),
    (b"CCOB",
     "a compressed offload bundle (see what is in it with luthier info; luthier_py.binary.loader.unbundle takes it "
     "out)"),
    (b"BC\xc0\xde", "LLVM bitcode (clang compiles and links it)"),
    (b"!<arch>\n", "an archive"),
)
_AMDGPU = 224
_MACHINES = {3: "x86", 40: "Arm", 62: "x86-64", 183: "AArch64", 190: "NVIDIA GPUs", 243: "RISC-V", 247: "BPF"}


def _rows(
    data: bytes, name: str, what: str, layout: struct.Struct, offset: int, count: int, entry_size: int
) -> Iterator[tuple[int, ...]]:
    """Rows of a header table, after a check that the table has the right shape and lies in the file."""
    if not count:
        return iter(())
    if entry_size != layout.size:
        raise Malformed(f"{name}: {what}s of {entry_size} bytes; ELF64 has {layout.size}")
    return layout.iter_unpack(_slice(data, name, f"{what} table", offset, count * entry_size))


def _slice(data: bytes, name: str, what: str, offset: int, size: int) -> bytes:
    _check_inside(data, name, what, offset, size)
    return data[offset : offset + size]


def _check_inside(data: bytes, name: str, what: str, offset: int, size: int) -> None:
    if offset + size > len(data):
        raise Malformed(f"{name}: {what} at 0x{offset:x} with 0x{size:x} bytes ends outside the file of "
                        f"0x{len(data):x} bytes; the file is truncated or corrupt")


def _check_overlap(data: bytes, name: str, what: str, sizes: Iterable[int]) -> None:
    """What is read of a file is bounded by its size."""
    if sum(sizes) > _OVERLAP * len(data):
        raise Malformed(f"{name}: its {what}s overlap: they have more than {_OVERLAP} times the bytes of the file")


def _name_sections(
    data: bytes, name: str, headers: tuple[tuple[int, ...], ...], names_index: int
) -> tuple[Section, ...]:
    names = b""
    for i, header in enumerate(headers):
        if header[1] not in (0, SectionType.NOBITS):
            _check_inside(data, name, f"section {i}", header[4], header[5])
            names = data[header[4] : header[4] + header[5]] if i == names_index else names
    _check_overlap(data, name, "section", (row[5] for row in headers if row[1] not in (0, SectionType.NOBITS)))
    named = string_at(names, f"{name}: section names")
    sections = tuple(Section(named(row[0]) if i else "", *row) for i, row in enumerate(headers))
    for i, section in enumerate(sections):
        if section.align & (section.align - 1):
            raise Malformed(f"{name}: section {i} has alignment {section.align}, which is no power of two")
    return sections


def _check_segments(data: bytes, name: str, segments: tuple[Segment, ...]) -> None:
    for i, segment in enumerate(segments):
        _check_inside(data, name, f"segment {i}", segment.offset, segment.file_size)
        if segment.load and segment.memory_size < segment.file_size:
            raise Malformed(f"{name}: segment {i} has 0x{segment.file_size:x} bytes in the file, but only "
                            f"0x{segment.memory_size:x} in memory")
    for kind in {segment.type for segment in segments}:
        _check_overlap(data, name, "segment", (each.file_size for each in segments if each.type == kind))
    loads = [segment for segment in segments if segment.load]
    for before, after in zip(loads, loads[1:], strict=False):
        if before.end > after.address:
            raise Malformed(f"{name}: LOAD segments overlap or do not ascend at address 0x{after.address:x}")
    if loads and loads[-1].end > LOAD_LIMIT_BYTES:
        raise Malformed(f"{name}: LOAD segments reach up to address 0x{loads[-1].end:x}; code objects "
                        "stay below 4 GiB, as code reaches 2 GiB around itself")


def string_at(table: bytes, what: str) -> Callable[[int], str]:
    """A reader of zero-terminated strings in ``table``, as many as a table of that size may be for."""
    left = _SHARED * len(table)

    def read(offset: int) -> str:
        nonlocal left
        end = table.find(b"\0", offset)
        if offset >= len(table) or end < 0:
            raise Malformed(f"{what}: no string at offset 0x{offset:x} of 0x{len(table):x} bytes")
        left -= end - offset
        if left < 0:
            raise Malformed(f"{what}: they overlap: they have more than {_SHARED} times the table's bytes")
        return table[offset:end].decode("utf-8", "backslashreplace")

    return read


_IntEnum = TypeVar("_IntEnum", bound=IntEnum)


def convert_to_enum(enum: type[_IntEnum], value: int) -> int:
    """``value`` as a member of ``enum``; values that it does not have stay numbers."""
    return enum(value) if value in enum._value2member_map_ else value
