"""What whoever loads a linked object relies on: pages, the size of kernel arguments, names found by their hash."""

from __future__ import annotations

from test_tables import find_gnu, find_sysv

from luthier_py.binary.link import Chunk, NewKernel, NewVariable, Patch, link
from luthier_py.binary.link.layout import PAGE_BYTES
from luthier_py.binary.link.tables import symbol_names
from luthier_py.binary.loader import CodeObject, SectionType, SegmentType, load
from luthier_py.binary.loader.elf import DYNAMIC
from luthier_py.samples import sample

SAXPY = load(sample("saxpy").path.read_bytes(), "saxpy")
END = bytes.fromhex("000081bf")


def patched(kernarg_size: int | None = None) -> CodeObject:
    kernel = SAXPY.kernels[0]
    descriptor = kernel.descriptor.replace(kernarg_size=kernarg_size or kernel.descriptor.kernarg_size)
    return load(link(SAXPY, Patch((Chunk("k", END),), (NewKernel("k", "k", descriptor, "saxpy"),),
                                  (NewVariable("v", 8, 8, b"12345678"),))))


def test_offsets_and_addresses_agree_within_pages() -> None:
    segments = [segment for segment in patched().segments if segment.load]
    assert len(segments) > 4
    assert all(segment.offset % PAGE_BYTES == segment.address % PAGE_BYTES for segment in segments)


def test_the_metadata_has_the_descriptors_size_of_arguments() -> None:
    assert patched(512).kernel("k").metadata[".kernarg_segment_size"] == 512


def test_every_dynamic_name_is_found_by_its_hash() -> None:
    obj = patched()
    elf = obj.elf
    found = {kind: elf.find(kind) for kind in (SectionType.DYNSYM, SectionType.HASH, SectionType.GNU_HASH)}
    tables = {kind: elf.sections[index] for kind, index in found.items() if index is not None}
    assert len(tables) == 3
    symbols = tables[SectionType.DYNSYM]
    names = symbol_names(elf.content(symbols), elf.content(elf.sections[symbols.link]))
    assert {b"k", b"k.kd", b"v", b"saxpy", b"saxpy.kd"} <= set(names)
    for index, name in enumerate(names[1:], 1):
        assert find_sysv(elf.content(tables[SectionType.HASH]), names, name) == index
        assert find_gnu(elf.content(tables[SectionType.GNU_HASH]), names, name) == index


def test_dynamic_entries_are_those_of_the_grown_tables() -> None:
    elf = patched().elf
    (segment,) = (segment for segment in elf.segments if segment.type == SegmentType.DYNAMIC)
    size = segment.file_size - segment.file_size % DYNAMIC.size
    entries = dict(DYNAMIC.iter_unpack(elf.data[segment.offset : segment.offset + size]))
    index = elf.find(SectionType.DYNSYM)
    assert index is not None
    strings = elf.sections[elf.sections[index].link]
    assert (entries[5], entries[10]) == (strings.address, strings.size)  # DT_STRTAB, DT_STRSZ
    assert entries[6] == elf.sections[index].address  # DT_SYMTAB
