"""Loading the samples, and objects made from them by changing single fields."""

from __future__ import annotations

import re
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import pytest

from luthier_py.base.errors import Invalid, LuthierError, Malformed, Unsupported
from luthier_py.binary.link import Chunk, NewKernel, NewVariable, Patch, link
from luthier_py.binary.loader import LastObject, RelocationKind, Setting, SymbolBinding, SymbolType, load
from luthier_py.isa.model.target import target
from luthier_py.program.ir import lift
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import SAMPLES, Sample

DATA = {sample.name: sample.path.read_bytes() for sample in SAMPLES}


def changed(data: bytes, offset: int, layout: str, value: int) -> bytes:
    out = bytearray(data)
    struct.pack_into("<" + layout, out, offset, value)
    return bytes(out)


def section_header(data: bytes, name: str) -> int:
    """File offset of a section's header."""
    obj = load(data)
    index = next(i for i, section in enumerate(obj.sections) if section.name == name)
    return obj.elf.section_header_offset + 64 * index


def segment_header(data: bytes, type: int, nth: int = 0) -> int:
    """File offset of a program header."""
    rows = [i for i, segment in enumerate(load(data).segments) if segment.type == type]
    return 64 + 56 * rows[nth]


def test_samples_load(sample: Sample) -> None:
    obj = load(DATA[sample.name], sample.name)
    assert obj.data == DATA[sample.name]
    assert (obj.target, obj.version) == (target("gfx90a"), 5)
    assert (obj.xnack, obj.sramecc) == (Setting.ANY, Setting.ANY)
    kernel = obj.kernel(sample.kernel)
    assert kernel.symbol == f"{kernel.name}.kd" and obj.kernels == (kernel,)
    assert any(kernel.entry in text for text in obj.text_ranges) and kernel.entry % 256 == 0
    assert obj.read(kernel.descriptor_address, 64) == kernel.descriptor.raw
    assert obj.metadata["amdhsa.kernels"] == [kernel.metadata]
    for key, value in (
        (".group_segment_fixed_size", kernel.descriptor.group_segment_fixed_size),
        (".private_segment_fixed_size", kernel.descriptor.private_segment_fixed_size),
        (".kernarg_segment_size", kernel.descriptor.kernarg_size),
    ):
        assert kernel.metadata[key] == value
    assert kernel.descriptor.vgpr_count(obj.target) >= kernel.metadata[".vgpr_count"]
    assert kernel.descriptor.sgpr_count(obj.target) >= kernel.metadata[".sgpr_count"]


def test_arguments() -> None:
    args = load(DATA["saxpy"]).kernel("saxpy").args
    explicit = [arg for arg in args if not arg.hidden]
    assert [(arg.offset, arg.size, arg.value_kind) for arg in explicit] == [
        (0, 4, "by_value"), (4, 4, "by_value"), (8, 8, "global_buffer"), (16, 8, "global_buffer"),
    ]
    assert [arg.address_space for arg in explicit] == [None, None, "global", "global"]
    assert "hidden_block_count_x" in {arg.value_kind for arg in args}


def test_symbols_and_relocations() -> None:
    obj = load(DATA["function_pointers"])
    kernel = obj.symbol("function_pointers")
    assert kernel is not None and (kernel.type, kernel.binding) == (SymbolType.FUNC, SymbolBinding.GLOBAL)
    assert kernel.defined and kernel.address == obj.kernels[0].entry
    assert obj.symbol("no such symbol") is None
    assert obj.relocations and all(r.kind is RelocationKind.RELATIVE64 and r.symbol is None for r in obj.relocations)
    functions = {symbol.address for symbol in obj.symbols if symbol.type == SymbolType.FUNC}
    assert {relocation.addend for relocation in obj.relocations} <= functions


def test_memory() -> None:
    obj = load(DATA["function_pointers"])
    for segment in obj.segments:
        if segment.load:
            content = obj.data[segment.offset : segment.offset + segment.file_size]
            padding = bytes(segment.memory_size - segment.file_size)
            assert obj.read(segment.address, segment.memory_size) == content + padding
            with pytest.raises(Malformed, match="outside the object's memory"):
                obj.read(segment.address, segment.memory_size + 1)
    assert obj.read(0, 0) == b""
    for address, size in ((1 << 40, 1), (0, -1), (-1, 1)):
        with pytest.raises(Malformed):
            obj.read(address, size)


def test_the_last_object_is_read_once() -> None:
    """For the very same bytes; under another name, or of bytes that are only equal, it is read anew."""
    data, last = SAMPLES[0].path.read_bytes(), LastObject()
    first = last.load(data)
    assert last.load(data) is first
    assert last.load(data, "named").name == "named"
    again = last.load(bytearray(data))
    assert again is not first and again.kernels == first.kernels


def test_unknown_kernel_is_named() -> None:
    with pytest.raises(Invalid, match="no kernel nothing; it has 1: saxpy"):
        load(DATA["saxpy"]).kernel("nothing")


@pytest.mark.parametrize(
    "flags, abi, expected",
    [
        (0x03F, 1, (Setting.OFF, Setting.OFF)), (0x13F, 1, (Setting.ON, Setting.OFF)),
        (0x33F, 1, (Setting.ON, Setting.ON)), (0x02C, 1, (Setting.OFF, Setting.UNSUPPORTED)),
        (0x03F, 2, (Setting.UNSUPPORTED, Setting.UNSUPPORTED)), (0xE3F, 3, (Setting.OFF, Setting.ON)),
        (0x0100073F, 4, (Setting.ON, Setting.ANY)),
    ],
)
def test_settings_by_version(flags: int, abi: int, expected: tuple[Setting, Setting]) -> None:
    obj = load(changed(changed(DATA["saxpy"], 8, "B", abi), 48, "I", flags))
    assert (obj.xnack, obj.sramecc, obj.version) == (*expected, abi + 2)


SAXPY, POINTERS = DATA["saxpy"], DATA["function_pointers"]
KD = load(SAXPY).kernels[0].descriptor_address  # also its file offset: the first segment starts at 0
PHDR, SHDR = segment_header, section_header


def content(data: bytes, name: str) -> int:
    """File offset of a section's bytes."""
    return next(section.offset for section in load(data).sections if section.name == name)


def saxpy(offset: int, layout: str, value: int) -> bytes:
    return changed(SAXPY, offset, layout, value)


def pointers(offset: int, layout: str, value: int) -> bytes:
    return changed(POINTERS, content(POINTERS, ".rela.dyn") + offset, layout, value)


def with_metadata(document: Any) -> bytes:
    """The saxpy sample with another metadata note, at the end of the file."""
    packed = msgpack.packb(document)
    note = struct.pack("<3I", 7, len(packed), 32) + b"AMDGPU\0\0" + packed + bytes(-len(packed) % 4)
    row = segment_header(SAXPY, 4)
    return changed(changed(SAXPY, row + 8, "Q", len(SAXPY)), row + 32, "Q", len(note)) + note


def with_kernel(**keys: Any) -> bytes:
    """The saxpy sample with some keys of its kernel's metadata changed; None removes one."""
    entry = {**load(SAXPY).kernels[0].metadata, **{f".{key}": value for key, value in keys.items()}}
    return with_metadata({"amdhsa.kernels": [{key: value for key, value in entry.items() if value is not None}]})


def with_arg(**keys: Any) -> bytes:
    arg = {".offset": 0, ".size": 4, ".value_kind": "by_value", **{f".{key}": value for key, value in keys.items()}}
    return with_kernel(args=[arg])


NOTE, SYMTAB = content(SAXPY, ".note"), content(SAXPY, ".symtab")
CASES: list[tuple[str, bytes, type[LuthierError], str]] = [
    ("empty file", b"", Malformed, "not an ELF file"),
    ("text", b"#include <hip/hip_runtime.h>", Malformed, "not an ELF file"),
    ("bundle", b"__CLANG_OFFLOAD_BUNDLE__" + bytes(99), Malformed, "offload bundle"),
    ("bitcode", b"BC\xc0\xde" + bytes(99), Malformed, "LLVM bitcode"),
    ("magic alone", b"\x7fELF", Malformed, "truncated ELF: 4 bytes"),
    ("half", SAXPY[: len(SAXPY) // 2], Malformed, "section header table at 0x.* truncated"),
    ("host", saxpy(18, "H", 62), Malformed, "an ELF for x86-64, and no code for AMD GPUs is found in it; .*unbundle"),
    ("other machine", saxpy(18, "H", 4711), Malformed, "an ELF for machine 4711"),
    ("32 bits", saxpy(4, "B", 1), Malformed, "not a 64-bit"),
    ("big endian", saxpy(5, "B", 2), Malformed, "little-endian"),
    ("OS ABI", saxpy(7, "B", 65), Unsupported, "OS ABI 65, not HSA"),
    ("relocatable", saxpy(16, "H", 1), Unsupported, "link it with lld"),
    ("version 2", saxpy(8, "B", 0), Unsupported, "code object version 2; compile"),
    ("version 9", saxpy(8, "B", 7), Unsupported, "code object version 9; compile"),
    ("processor", saxpy(48, "B", 0x22), Unsupported, "EF_AMDGPU_MACH 0x22"),
    ("program header size", saxpy(54, "H", 32), Malformed, "program headers of 32 bytes"),
    ("program headers", saxpy(32, "Q", 1 << 63), Malformed, "program header table at 0x8000000000000000"),
    ("section headers", saxpy(40, "Q", 1 << 63), Malformed, "section header table at 0x8000000000000000"),
    ("section count", saxpy(60, "H", 0xFFFF), Malformed, "section header table"),
    ("names' section", saxpy(62, "H", 0xFF), Malformed, "section 255 should hold the section names"),
    ("segment", saxpy(PHDR(SAXPY, 1) + 32, "Q", 1 << 62), Malformed, "segment 1 at 0x0 .*outside the file"),
    ("memory size", saxpy(PHDR(SAXPY, 1) + 40, "Q", 1), Malformed, "only 0x1 in memory"),
    ("overlap", saxpy(PHDR(SAXPY, 1) + 40, "Q", 0x100000), Malformed, "overlap or do not ascend"),
    ("far", saxpy(PHDR(SAXPY, 1, -1) + 40, "Q", 1 << 40), Malformed, "LOAD segments reach up to"),
    ("wrap", saxpy(PHDR(SAXPY, 1, -1) + 16, "Q", (1 << 64) - 16), Malformed, "LOAD segments reach up to"),
    ("section", saxpy(SHDR(SAXPY, ".symtab") + 24, "Q", 1 << 63), Malformed, r"section \d+ at 0x80000"),
    ("section name", saxpy(SHDR(SAXPY, ".text"), "I", 1 << 31), Malformed, "section names: no string"),
    ("section align", saxpy(SHDR(SAXPY, ".text") + 48, "Q", 3), Malformed, "no power of two"),
    ("symbol size", saxpy(SHDR(SAXPY, ".symtab") + 56, "Q", 23), Malformed, r"section .symtab .*24 each"),
    ("symbol names", saxpy(SHDR(SAXPY, ".symtab") + 40, "I", 999), Malformed, "links to section 999"),
    ("note size", saxpy(NOTE + 4, "I", 1 << 31), Malformed, "note at 0x0 with 2147483648"),
    ("note header", saxpy(PHDR(SAXPY, 4) + 32, "Q", 5), Malformed, "note at 0x0 is truncated"),
    ("not msgpack", saxpy(NOTE + 20, "B", 0xC1), Malformed, "metadata is not msgpack"),
    ("no map", with_metadata([1, 2]), Malformed, "metadata is a list, not a map"),
    ("kernels no list", with_metadata({"amdhsa.kernels": {}}), Malformed, "amdhsa.kernels is not a list of maps"),
    ("kernels of numbers", with_metadata({"amdhsa.kernels": [1]}), Malformed, "amdhsa.kernels is not a list of maps"),
    ("relocation type", pointers(8, "I", 99), Unsupported, "unknown relocation type 99"),
    ("relocation symbol", pointers(12, "I", 99), Malformed, "entry 0 names symbol 99"),
    ("relocation place", pointers(0, "Q", 1 << 50), Malformed, "outside all LOAD segments"),
]


@pytest.mark.parametrize("data, error, message", [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_bad_objects_are_refused_in_one_line(data: bytes, error: type[LuthierError], message: str) -> None:
    with pytest.raises(error, match=message) as raised:
        load(data, "k.co")
    assert str(raised.value).startswith("k.co: ") and "\n" not in str(raised.value)


PARTS: list[tuple[str, bytes, str]] = [
    ("symbol name", saxpy(SYMTAB + 24, "I", 1 << 31), "symbol table .symtab: names: no string"),
    ("symbol section", saxpy(SYMTAB + 30, "H", 200), "symbol 1 is in section 200"),
    ("text for a number", with_kernel(max_flat_workgroup_size="many"), "max_flat_workgroup_size is not of type int"),
    ("negative number", with_kernel(vgpr_count=-1), "vgpr_count is -1; it cannot be negative"),
    ("no name", with_kernel(name=None), "metadata of kernel 0: no .name"),
    ("number for a name", with_kernel(name=7), ".name is not of type str"),
    ("unprintable name", with_kernel(name="a\nb"), r"'a\\nb', which is no name"),
    ("bytes in a name", with_kernel(name=b"\xff"), ".name is not of type str"),
    ("no symbol", with_kernel(symbol=None), "kernel saxpy: no .symbol"),
    ("other symbol", with_kernel(symbol="nothing.kd"), "symbol nothing.kd, which is not defined"),
    ("args no list", with_kernel(args=3), "kernel saxpy: .args is not a list of maps"),
    ("no value kind", with_arg(value_kind=None), "argument 0: .value_kind is not of type str"),
    ("argument offset", with_arg(offset=-1), "argument 0: offset -1 and size 4"),
    ("argument size", with_arg(size=1 << 60), "do not fit in a kernarg segment"),
    ("two of one name", with_metadata({"amdhsa.kernels": 2 * [load(SAXPY).kernels[0].metadata]}),
     "two kernels of one name"),
    ("entry", saxpy(KD + 16, "q", 1 << 40), "kernel saxpy: descriptor saxpy.kd gives entry address"),
    ("entry before", saxpy(KD + 16, "q", -(1 << 63)), "where no code is"),
    ("entry in data", saxpy(KD + 16, "q", 0), "where no code is"),
    ("odd entry", saxpy(KD + 16, "q", load(SAXPY).kernels[0].entry - KD + 2), "where no code is"),
]


@pytest.mark.parametrize("data, message", [case[1:] for case in PARTS], ids=[case[0] for case in PARTS])
def test_a_broken_part_costs_itself_only(data: bytes, message: str) -> None:
    """It is left out with the reason, and asked for it gives that reason."""
    obj = load(data, "k.co")
    (part,) = obj.left_out
    assert re.search(message, str(part.error)) and str(part.error).startswith("k.co: ")
    assert "\n" not in str(part.error)
    assert len(obj.symbols) == len(load(SAXPY).symbols)  # all keep their numbers
    if "symbol table" in str(part.error):
        assert obj.kernel("saxpy") == load(SAXPY).kernel("saxpy")
    elif not obj.kernels:
        with pytest.raises(Malformed, match=message):
            obj.kernel(part.name)


def test_descriptor_outside_the_file() -> None:
    obj = load(SAXPY)
    row = next(i for i, symbol in enumerate(obj.symbols) if symbol.name == "saxpy.kd")
    for address in (1 << 40, obj.segments[1].end - 32, (1 << 64) - 32):
        damaged = load(changed(SAXPY, SYMTAB + 24 * row + 8, "Q", address))
        with pytest.raises(Malformed, match="kernel saxpy: descriptor saxpy.kd at address 0x.* is outside the file"):
            damaged.kernel("saxpy")


def with_second_kernel() -> tuple[bytes, int]:
    """A sample with a clone of its kernel at the end of its code, and the file offset of the clone's descriptor."""
    obj = load(SAXPY)
    first = obj.kernels[0]
    patch = Patch((Chunk("more", bytes(256), align=256),), (NewKernel("more", "more", first.descriptor, first.name),))
    data = link(obj, patch)
    address = load(data).kernel("more").descriptor_address
    segment = next(s for s in load(data).segments if s.load and s.address <= address < s.end)
    return data, segment.offset + address - segment.address


def test_a_kernel_of_no_bytes_at_the_end_of_the_code() -> None:
    """rocPRIM's trampolines of bodies that cannot be reached: the entry is the first address that is no code."""
    data, descriptor = with_second_kernel()
    whole = load(data)
    end = max(r.stop for r in whole.text_ranges)
    obj = load(changed(data, descriptor + 16, "q", end - whole.kernel("more").descriptor_address))
    assert [kernel.name for kernel in obj.kernels] == ["saxpy"] == [kernel.name for kernel in lift(obj).kernels]
    assert [part.name for part in obj.left_out] == ["more"]
    with pytest.raises(Malformed, match="kernel more: .*where no code is"):
        obj.kernel("more")
    again = load(link(obj, Patch(variables=(NewVariable("counter", 8),))))
    assert [kernel.name for kernel in again.kernels] == ["saxpy"] and again.symbol("counter") is not None


def test_a_kernel_of_no_bytes_before_another() -> None:
    """It has no code of its own, and must not make a kernel of the function that starts in its place."""
    data, descriptor = with_second_kernel()
    obj = load(data)
    rows = [i for i, symbol in enumerate(obj.symbols) if symbol.name == "more"]
    saxpy_entry = obj.kernel("saxpy").entry
    data = changed(data, descriptor + 16, "q", saxpy_entry - obj.kernel("more").descriptor_address)
    row = content(data, ".symtab") + 24 * rows[0]
    obj = load(changed(changed(data, row + 8, "Q", saxpy_entry), row + 16, "Q", 0))
    assert [kernel.name for kernel in obj.kernels] == ["saxpy"]
    (part,) = obj.left_out
    assert str(part.error) == "<memory>: kernel more has no code: saxpy starts in its place"


def test_host_programs_are_told_what_they_are() -> None:
    program = Path("/bin/ls")
    if program.exists() and program.read_bytes().startswith(b"\x7fELF\x02\x01"):
        with pytest.raises(Malformed, match="no code for AMD GPUs"):
            load(program.read_bytes())


def test_an_object_of_sections_alone_cannot_be_loaded() -> None:
    with pytest.raises(Malformed, match="no LOAD segment"):
        load(changed(SAXPY, 56, "H", 0))  # e_phnum


def test_a_stripped_object_has_its_dynamic_symbols() -> None:
    symtab = SHDR(SAXPY, ".symtab")
    obj = load(saxpy(symtab + 4, "I", 1))
    assert obj.kernel("saxpy") == load(SAXPY).kernel("saxpy")
    assert len(obj.symbols) < len(load(SAXPY).symbols)


def test_an_instrumented_copy_names_what_was_left_out() -> None:
    data, descriptor = with_second_kernel()
    made = instrument(changed(data, descriptor + 16, "q", 0), load_tool("instr_count", {}))
    assert [cloned.name for cloned in made.patched.report] == ["saxpy"]
    (refusal,) = made.refused
    assert refusal.kernel == "more" and "where no code is" in refusal.reason


def test_a_broken_symbol_beside_relocations() -> None:
    """It costs the object only if a relocation names it."""
    table = content(POINTERS, ".dynsym")
    used = {struct.unpack_from("<I", POINTERS, content(POINTERS, ".rela.dyn") + 24 * row + 12)[0]
            for row in range(len(load(POINTERS).relocations))}
    count = next(s.size for s in load(POINTERS).sections if s.name == ".dynsym") // 24
    for row in range(1, count):
        data = changed(POINTERS, table + 24 * row, "I", 1 << 31)
        if row in used:
            with pytest.raises(Malformed, match="no string at offset"):
                load(data)
        else:
            assert load(data).relocations == load(POINTERS).relocations


def test_addresses_are_those_of_loaded_segments() -> None:
    """Others lie in these: program headers, notes, dynamic tables."""
    elf = load(SAXPY).elf
    inside = [segment for segment in elf.segments if not segment.load and segment.memory_size]
    for segment in inside:
        found = elf.load_at(segment.address)
        assert found is not None and found.load and found.address <= segment.address < found.end
    assert elf.segments.index(inside[0]) < elf.segments.index(elf.load_at(inside[0].address))
    assert elf.load_at(max(segment.end for segment in elf.segments)) is None


@pytest.mark.parametrize(("section", "defined"), [
    (0, False), (1, True), (0xFEFF, True), (0xFF00, False), (0xFFF1, False),
])
def test_symbols_of_sections_have_addresses(section: int, defined: bool) -> None:
    """Not those that are undefined, absolute or common."""
    symbol = next(each for each in load(SAXPY).symbols if each.name == "saxpy")
    assert replace(symbol, section=section).defined == defined
