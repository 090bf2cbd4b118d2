"""DWARF sections of ELF files, whichever way they were compressed (-gz=zlib, -gz=zstd).

In: the bytes of an ELF file. Out: pyelftools' view of its debug information. Invariant: pyelftools unpacks zlib itself;
sections in zstd are unpacked here, to the size that their header states and within bounds, before it sees the file.
"""

from __future__ import annotations

import struct
from io import BytesIO
from typing import Any

from luthier_py.binary.loader.compressed import unzstd
from luthier_py.binary.loader.limits import RATIO

_ZSTD = 2  # ELFCOMPRESS_ZSTD
_HEADER = struct.Struct("<IIQQ")  # Elf64_Chdr: type, reserved, size, alignment
_FLAGS, _PLACE = struct.Struct("<Q"), struct.Struct("<QQ")  # sh_flags; sh_offset and sh_size


def read_debug_sections(data: bytes) -> Any | None:
    """A DWARFInfo; None where the file has no units (.debug_info). Raises what ``lines.unreadable`` lists."""
    from elftools.elf.elffile import ELFFile

    elf = ELFFile(BytesIO(data))
    if elf.get_section_by_name(".debug_info") is None:
        return None
    if plain := _unpack(data, elf):
        elf = ELFFile(BytesIO(plain))
    return elf.get_dwarf_info()


def _unpack(data: bytes, elf: Any) -> bytes | None:
    """The file with its zstd sections plain, behind everything else; None where it has none."""
    grown: bytearray | None = None
    for number, section in enumerate(elf.iter_sections()):
        begin, end = section["sh_offset"], section["sh_offset"] + section["sh_size"]
        if not section.compressed or section.header["sh_type"] == "SHT_NOBITS":
            continue
        kind, _, size, _ = _HEADER.unpack_from(data, begin)
        if kind != _ZSTD:
            continue
        packed = data[begin + _HEADER.size : end]
        if size > RATIO * len(packed):
            raise ValueError(f"{section.name} would unpack to {size} bytes")
        content = unzstd(packed, size + 1)
        if len(content) != size:
            raise ValueError(f"{section.name} does not unpack to the {size} bytes that its header states")
        grown = bytearray(data) if grown is None else grown
        header = elf["e_shoff"] + number * elf["e_shentsize"]
        _FLAGS.pack_into(grown, header + 8, section["sh_flags"] & ~0x800)  # SHF_COMPRESSED
        _PLACE.pack_into(grown, header + 24, len(grown), len(content))
        grown += content
    return None if grown is None else bytes(grown)
