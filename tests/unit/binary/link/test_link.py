"""Patches on the samples: what is added is there, what was there has not moved, and bad patches are refused."""

from __future__ import annotations

import struct

import pytest

from luthier_py.base.errors import Invalid, LuthierError, Unsupported
from luthier_py.binary.link import Chunk, Fixup, FixupKind, NewKernel, NewVariable, Patch, link
from luthier_py.binary.loader import CodeObject, SymbolBinding, SymbolType, Visibility, load
from luthier_py.samples import SAMPLES, Sample

OBJECTS = {sample.name: load(sample.path.read_bytes(), sample.name) for sample in SAMPLES}
SAXPY, POINTERS = OBJECTS["saxpy"], OBJECTS["function_pointers"]
NOP = struct.pack("<I", 0xBF800000)
END = struct.pack("<I", 0xBF810000)


def clone(obj: CodeObject, name: str = "clone", **keys: object) -> Patch:
    """A second kernel with the first one's code."""
    kernel = obj.kernels[0]
    symbol = obj.symbol(kernel.name)
    assert symbol is not None
    new = NewKernel(name, name, kernel.descriptor, kernel.name, metadata=keys)
    return Patch((Chunk(name, obj.read(kernel.entry, symbol.size)),), (new,))


def address(obj: CodeObject, name: str) -> int:
    symbol = obj.symbol(name)
    assert symbol is not None
    return symbol.address


def test_an_empty_patch_gives_the_input(sample: Sample) -> None:
    obj = OBJECTS[sample.name]
    assert link(obj, Patch()) is obj.data


def test_the_original_stays_inside(sample: Sample) -> None:
    old = OBJECTS[sample.name]
    data = link(old, clone(old))
    assert data == link(load(old.data), clone(old))  # deterministic
    new = load(data)
    dynamic = next(section for section in old.sections if section.name == ".dynamic")
    may_change = {*range(32, 64), *range(dynamic.offset, dynamic.offset + dynamic.size)}
    assert {at for at, byte in enumerate(old.data) if data[at] != byte} <= may_change
    assert new.kernels[:-1] == old.kernels and new.relocations == old.relocations
    assert new.symbols[: len(old.symbols)] == old.symbols
    assert new.text_ranges[:-1] == old.text_ranges
    kernel, clone_ = old.kernels[0], new.kernels[-1]
    assert new.read(clone_.entry, 64) == old.read(kernel.entry, 64)
    assert clone_.metadata == {**kernel.metadata, ".name": "clone", ".symbol": "clone.kd"}
    assert clone_.args == kernel.args
    addresses = [segment.address for segment in new.segments if segment.load]
    assert addresses == sorted(addresses)


def test_symbols_of_a_new_kernel() -> None:
    new = load(link(SAXPY, clone(SAXPY)))
    code, descriptor = new.symbol("clone"), new.symbol("clone.kd")
    assert code is not None and descriptor is not None
    assert (code.type, code.address) == (SymbolType.FUNC, new.kernels[-1].entry)
    assert (descriptor.type, descriptor.size, descriptor.address) == (
        SymbolType.OBJECT, 64, new.kernels[-1].descriptor_address)
    for symbol in (code, descriptor):
        assert (symbol.binding, symbol.visibility) == (SymbolBinding.GLOBAL, Visibility.PROTECTED)
    assert new.sections[code.section].name == ".text.luthier"
    assert new.sections[descriptor.section].name == ".rodata.luthier"


def test_metadata_follows_the_descriptor_and_the_caller() -> None:
    descriptor = SAXPY.kernels[0].descriptor.replace(private_segment_fixed_size=96, group_segment_fixed_size=32)
    patch = clone(SAXPY, **{".vgpr_count": 99, ".private_segment_fixed_size": 100})
    kernel = NewKernel("clone", "clone", descriptor, "saxpy", metadata=patch.kernels[0].metadata)
    entry = load(link(SAXPY, Patch(patch.chunks, (kernel,)))).kernel("clone").metadata
    assert entry[".group_segment_fixed_size"] == 32
    assert entry[".vgpr_count"] == 99
    assert entry[".private_segment_fixed_size"] == 100
    assert entry[".kernarg_segment_size"] == SAXPY.kernels[0].metadata[".kernarg_segment_size"]


def test_variables() -> None:
    variables = (
        NewVariable("odd", 3, 1, b"abc"), NewVariable("zero", 24, 8), NewVariable("wide", 16, 1024, bytes(range(16))),
        NewVariable("huge", 1 << 30, 4096),
    )
    data = link(SAXPY, Patch(variables=variables))
    assert len(data) < len(SAXPY.data) + (1 << 14)
    new = load(data)
    assert new.metadata == SAXPY.metadata and new.kernels == SAXPY.kernels
    for variable in variables:
        symbol = new.symbol(variable.name)
        assert symbol is not None and (symbol.type, symbol.size) == (SymbolType.OBJECT, variable.size)
        assert symbol.address % variable.align == 0 and symbol.binding == SymbolBinding.GLOBAL
        size = min(variable.size, 64)
        assert new.read(symbol.address, size) == (variable.initial or bytes(size))
        segment = new.elf.load_at(symbol.address)
        assert segment is not None and segment.flags & 2 and symbol.address + symbol.size <= segment.end
    assert len({symbol.address for symbol in new.symbols if symbol.name in {"odd", "zero", "wide", "huge"}}) == 4


def test_code_is_followed_by_memory_for_the_prefetcher() -> None:
    new = load(link(SAXPY, Patch((Chunk("last", END),))))
    assert new.read(address(new, "last"), 1028) == END + 256 * NOP
    assert any(address(new, "last") in text for text in new.text_ranges)


def test_distances() -> None:
    original = POINTERS.kernels[0].entry
    targets: list[tuple[str | int, int]] = [("second", 8), ("word", 0), ("clone.kd", -4), (original, 0), ("first", 0)]
    fixups = []
    for row, (target, addend) in enumerate(targets):
        fixups.append(Fixup(8 * row, FixupKind.REL32_LO, target, addend, 4 + row))
        fixups.append(Fixup(8 * row + 4, FixupKind.REL32_HI, target, addend, 4 + row))
    chunks = (Chunk("first", NOP * 10, tuple(fixups)), Chunk("second", END, align=4))
    cloned = clone(POINTERS)
    new = load(link(POINTERS, Patch(cloned.chunks + chunks, cloned.kernels, (NewVariable("word", 4, 4),))))
    first = address(new, "first")
    values = struct.unpack("<5q", new.read(first, 40))
    for row, (target, addend) in enumerate(targets):
        place = target if isinstance(target, int) else address(new, target)
        assert values[row] == place + addend - (first + 4 + row)
    assert values[3] < 0 < values[1]


def test_entry_inside_a_chunk() -> None:
    kernel = NewKernel("late", "body", SAXPY.kernels[0].descriptor, "saxpy", 256)
    new = load(link(SAXPY, Patch((Chunk("body", NOP * 64 + END),), (kernel,))))
    assert new.kernel("late").entry == address(new, "body") + 256 == address(new, "late")
    assert new.read(new.kernel("late").entry, 4) == END


def test_patching_again() -> None:
    once = load(link(POINTERS, clone(POINTERS)))
    twice = load(link(once, clone(once, "another")))
    assert [kernel.name for kernel in twice.kernels] == ["function_pointers", "clone", "another"]
    assert twice.kernels[:2] == once.kernels
    last = load(link(twice, Patch((Chunk("code", END),))))
    assert last.kernels == twice.kernels


def test_a_stripped_object_grows_its_dynamic_symbols() -> None:
    index = SAXPY.elf.find(2)
    assert index is not None
    data = bytearray(SAXPY.data)
    struct.pack_into("<I", data, SAXPY.elf.section_header_offset + 64 * index + 4, 1)
    new = load(link(load(bytes(data)), clone(SAXPY)))
    assert new.kernel("clone").args == SAXPY.kernels[0].args


def fixed(offset: int, target: str | int, addend: int = 0) -> Patch:
    """Two instructions with a fixup."""
    return Patch((Chunk("body", END + END, (Fixup(offset, FixupKind.REL32_LO, target, addend),)),))


def kernel_in(chunk: Chunk, entry: str = "body", entry_offset: int = 0, like: str = "saxpy") -> Patch:
    return Patch((chunk,), (NewKernel("k", entry, SAXPY.kernels[0].descriptor, like, entry_offset),))


BODY = Chunk("body", END)
BAD: list[tuple[str, Patch, type[LuthierError], str]] = [
    ("existing name", Patch((Chunk("saxpy", END),)), Invalid, "saxpy: a symbol saxpy exists already"),
    ("existing descriptor", Patch(variables=(NewVariable("saxpy.kd", 4),)), Invalid, "symbol saxpy.kd exists already"),
    ("twice", Patch((BODY, BODY)), Invalid, "a symbol body exists already"),
    ("chunk and variable", Patch((BODY,), (), (NewVariable("body", 4),)), Invalid, "a symbol body exists already"),
    ("kernel on another chunk", Patch((BODY, Chunk("k", END)), kernel_in(BODY).kernels), Invalid, "symbol k exists"),
    ("no name", Patch((Chunk("", END),)), Invalid, "'' cannot name a symbol"),
    ("zero in a name", Patch((Chunk("a\0b", END),)), Invalid, "cannot name a symbol"),
    ("no code", Patch((Chunk("body", b""),)), Invalid, "chunk body: 0 bytes of code"),
    ("half a dword", Patch((Chunk("body", END + b"\0"),)), Invalid, "chunk body: 5 bytes of code"),
    ("chunk alignment", Patch((Chunk("body", END, align=48),)), Invalid, "chunk body: alignment 48"),
    ("fixup outside", fixed(8, 0), Invalid, "fixup at offset 8"),
    ("fixup before", fixed(-4, 0), Invalid, "fixup at offset -4"),
    ("fixup between", fixed(2, 0), Invalid, "offset 2 is not"),
    ("fixup to nothing", fixed(0, "x"), Invalid, "patch has no x"),
    ("too far", fixed(0, 1 << 32), Unsupported, "code reaches 2 GiB"),
    ("too far back", fixed(0, 0, -(1 << 31)), Unsupported, "chunk body, offset 0: 0 is -21.* bytes away"),
    ("no such kernel", kernel_in(BODY, like="nothing"), Invalid, "no kernel nothing"),
    ("no such chunk", kernel_in(BODY, "k"), Invalid, "kernel k: no chunk k"),
    ("entry outside", kernel_in(BODY, entry_offset=256), Invalid, "entry at offset 256"),
    ("entry not aligned", kernel_in(Chunk("body", END * 9), entry_offset=4), Invalid, "start at multiples of 256"),
    ("chunk not aligned", kernel_in(Chunk("body", END, align=64)), Invalid, "which is aligned to 64 bytes"),
    ("no size", Patch(variables=(NewVariable("v", 0),)), Invalid, "variable v: 0 bytes"),
    ("wrong value", Patch(variables=(NewVariable("v", 4, 4, b"12345"),)), Invalid, "4 bytes, initial value has 5"),
    ("alignment", Patch(variables=(NewVariable("v", 4, 8192),)), Invalid, "variable v: alignment 8192"),
    ("no alignment", Patch(variables=(NewVariable("v", 4, 0),)), Invalid, "variable v: alignment 0"),
    ("too large", Patch(variables=(NewVariable("v", 1 << 32),)), Unsupported, "make the tool's variables smaller"),
]


@pytest.mark.parametrize("patch, error, message", [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_bad_patches_are_refused_in_one_line(patch: Patch, error: type[LuthierError], message: str) -> None:
    with pytest.raises(error, match=message) as raised:
        link(SAXPY, patch)
    assert "\n" not in str(raised.value)
