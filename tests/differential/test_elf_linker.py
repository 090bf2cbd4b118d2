"""Patched code objects as llvm-readelf, llvm-objdump, llvm-objcopy, comgr, pyelftools and ROCr's rules see them."""

from __future__ import annotations

import io
import re
import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from elf_tools import VARIANTS, Comgr, compile_hip, readelf
from elftools.elf.elffile import ELFFile

from luthier_py.binary.link import Chunk, Fixup, FixupKind, NewKernel, NewVariable, Patch, link, link_apart
from luthier_py.binary.loader import CodeObject, load

Tool = Callable[[str], str]


@dataclass(frozen=True)
class Linked:
    """An object and its patched copy, in which every kernel has a second name and body."""

    old: CodeObject
    new: CodeObject
    path: Path

    @property
    def elf(self) -> ELFFile:
        return ELFFile(io.BytesIO(self.new.data))


def clone_everything(obj: CodeObject, suffix: str) -> Patch:
    chunks, kernels = [], []
    for kernel in obj.kernels:
        symbol = obj.symbol(kernel.name)
        assert symbol is not None
        name = kernel.name + suffix
        chunks.append(Chunk(name, obj.read(kernel.entry, symbol.size)))
        kernels.append(NewKernel(name, name, kernel.descriptor, kernel.name, metadata={".vgpr_spill_count": 7}))
    hits = f"hits{suffix}"
    distance = (Fixup(0, FixupKind.REL32_LO, hits, 4, 4), Fixup(4, FixupKind.REL32_HI, hits, 12, 4))
    chunks.append(Chunk("helper" + suffix, bytes(8), distance, align=4))
    variables = (
        NewVariable(hits, 8, 8), NewVariable("words" + suffix, 16, 16, bytes(range(16))),
        NewVariable("big" + suffix, 1 << 20, 4096),
    )
    return Patch(tuple(chunks), tuple(kernels), variables)


@pytest.fixture(scope="module", params=VARIANTS, ids=lambda variant: f"{variant[0]}-v{variant[1]}")
def compiled(request: pytest.FixtureRequest, require_tool: Tool) -> CodeObject:
    return load(compile_hip(require_tool("clang-22"), *request.param))


@pytest.fixture(scope="module")
def linked(compiled: CodeObject, tmp_path_factory: pytest.TempPathFactory) -> Linked:
    return written(compiled, link(compiled, clone_everything(compiled, ".luthier")), tmp_path_factory)


@pytest.fixture(scope="module")
def apart(compiled: CodeObject, tmp_path_factory: pytest.TempPathFactory) -> Linked:
    """With nothing of the old object in it."""
    return written(compiled, link_apart(compiled, clone_everything(compiled, ".luthier")), tmp_path_factory)


@pytest.fixture(params=("linked", "apart"))
def either(request: pytest.FixtureRequest, linked: Linked, apart: Linked) -> Linked:
    return linked if request.param == "linked" else apart


def written(old: CodeObject, data: bytes, folders: pytest.TempPathFactory) -> Linked:
    path = folders.mktemp("elf") / "patched.co"
    path.write_bytes(data)
    return Linked(old, load(data), path)


def test_readelf_accepts_it(either: Linked, require_tool: Tool) -> None:
    text = readelf(require_tool("llvm-readelf-22"), either.path, "-a", "-W", "--hash-symbols", "--gnu-hash-table")
    for kernel in either.old.kernels:
        places = re.findall(rf" {re.escape(kernel.name)}\.luthier\.kd\n", text)
        assert len(places) == 5  # two symbol tables, two hash tables, the note


def test_only_headers_and_dynamic_entries_change(linked: Linked) -> None:
    old, new = linked.old.data, linked.new.data
    dynamic = ELFFile(io.BytesIO(old)).get_section_by_name(".dynamic").header
    allowed = set(range(32, 64)) | set(range(dynamic.sh_offset, dynamic.sh_offset + dynamic.sh_size))
    changed = {at for at, (before, after) in enumerate(zip(old, new, strict=False)) if before != after}
    assert changed and changed <= allowed
    for segment in linked.old.segments:
        if segment.load:
            loaded = linked.new.read(segment.address, segment.memory_size)
            start = dynamic.sh_addr - segment.address
            for at, byte in enumerate(linked.old.read(segment.address, segment.memory_size)):
                assert loaded[at] == byte or segment.address == 0 and at < 64 or 0 <= at - start < dynamic.sh_size


def test_rocr_finds_the_end_and_the_order(either: Linked) -> None:
    """ROCr takes the file's size from the section headers, and segments in table order for one allocation."""
    data = either.new.data
    (start,) = struct.unpack_from("<Q", data, 40)
    end = start + struct.unpack_from("<H", data, 60)[0] * 64
    for section in either.new.sections:
        assert section.offset <= start
    assert end == len(data)
    loads = [segment for segment in either.new.segments if segment.load]
    assert all(before.end <= after.address for before, after in zip(loads, loads[1:], strict=False))
    assert all(load.offset % 0x1000 == load.address % 0x1000 for load in loads)


def test_sections_lie_where_segments_say(either: Linked) -> None:
    for section in either.new.sections:
        if section.flags & 2 and section.size:
            segment = next(s for s in either.new.segments if s.load and s.address <= section.address < s.end)
            assert section.address + section.size <= segment.end
            if section.type != 8:
                assert section.offset - segment.offset == section.address - segment.address
                assert section.offset + section.size <= segment.offset + segment.file_size
    header = next(s for s in either.new.segments if s.type == 6)
    cover = next(s for s in either.new.segments if s.load and s.address <= header.address < s.end)
    assert header.offset - cover.offset == header.address - cover.address
    assert header.file_size == 56 * len(either.new.segments)
    assert struct.unpack_from("<Q", either.new.data, 32)[0] == header.offset


def test_objdump_disassembles_the_clones(linked: Linked, require_tool: Tool) -> None:
    def disassemble(name: str, *options: str) -> list[str]:
        command = [require_tool("llvm-objdump-22"), "--no-show-raw-insn", "--no-leading-addr", *options,
                   f"--disassemble-symbols={name}", str(linked.path)]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        assert result.stderr == ""
        lines = [line.split("//")[0].split("<")[0].strip() for line in result.stdout.splitlines()]
        lines = [line for line in lines[3:] if line and not line.startswith(("Disassembly", ".amdhsa_kernel"))]
        while lines[-1] in ("s_nop 0", "s_code_end", "..."):  # padding up to the next symbol
            lines.pop()
        return lines

    for kernel in linked.old.kernels:
        assert disassemble(f"{kernel.name}.luthier", "-d") == disassemble(kernel.name, "-d")
        directives = disassemble(kernel.symbol, "-D")
        assert len(directives) > 20 and disassemble(f"{kernel.name}.luthier.kd", "-D") == directives


def test_dynamic_section_leads_to_every_symbol(either: Linked) -> None:
    """Look symbols up as a dynamic linker does, from PT_DYNAMIC through memory, with hash functions written here."""
    memory, entries = either.new.read, {}
    dynamic = next(s for s in either.new.segments if s.type == 2)
    for tag, value in struct.iter_unpack("<QQ", memory(dynamic.address, dynamic.file_size)):
        entries.setdefault(tag, value)

    def words(address: int, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}I", memory(address, 4 * count))

    def symbol(index: int) -> tuple[str, int]:
        name, _, _, _, value, _ = struct.unpack("<IBBHQQ", memory(entries[6] + 24 * index, 24))
        strings = memory(entries[5], entries[10])
        return strings[name : strings.index(b"\0", name)].decode(), value

    def by_sysv(name: str) -> int | None:
        value = 0
        for byte in name.encode():
            value = (value << 4) + byte
            if top := value & 0xF0000000:
                value ^= top >> 24
            value &= 0x0FFFFFFF
        bucket_count, chain_count = words(entries[4], 2)
        index = words(entries[4] + 8, bucket_count)[value % bucket_count]
        while index and symbol(index)[0] != name:
            index = words(entries[4] + 8 + 4 * bucket_count, chain_count)[index]
        return symbol(index)[1] if index else None

    def by_gnu(name: str) -> int | None:
        value = 5381
        for byte in name.encode():
            value = (value * 33 + byte) % (1 << 32)
        table = entries[0x6FFFFEF5]
        bucket_count, first, bloom_count, shift = words(table, 4)
        bloom = struct.unpack(f"<{bloom_count}Q", memory(table + 16, 8 * bloom_count))[value // 64 % bloom_count]
        if not bloom >> value % 64 & bloom >> (value >> shift) % 64 & 1:
            return None
        buckets = table + 16 + 8 * bloom_count
        index = words(buckets, bucket_count)[value % bucket_count]
        while index:
            (link_value,) = words(buckets + 4 * bucket_count + 4 * (index - first), 1)
            if link_value | 1 == value | 1 and symbol(index)[0] == name:
                return symbol(index)[1]
            index = 0 if link_value & 1 else index + 1
        return None

    table = either.elf.get_section_by_name(".dynsym")
    names = [entry.name for entry in table.iter_symbols()][1:]
    assert {"vadd.luthier", "vadd.luthier.kd", "hits.luthier"} <= set(names)
    originals = {"vadd", "vadd.kd", "counter"} & {symbol.name for symbol in either.new.symbols}
    assert len(originals) in (0, 3) and originals <= set(names)
    for name in names:
        found = either.new.symbol(name)
        assert found is not None and by_sysv(name) == by_gnu(name) == found.address, name
    for name in ("", "helper.luthier", "vadd.luthie", "no such symbol"):
        assert by_sysv(name) is None and by_gnu(name) is None, name


def test_comgr_reads_old_and_new(linked: Linked, require_tool: Tool) -> None:
    comgr = Comgr(require_tool("comgr"))
    before, after = comgr.metadata(linked.old.data), comgr.metadata(linked.new.data)
    old_kernels, kernels = before.pop("amdhsa.kernels"), after.pop("amdhsa.kernels")
    assert after == before
    assert kernels[: len(old_kernels)] == old_kernels
    for old, new in zip(old_kernels, kernels[len(old_kernels) :], strict=True):
        name = old[".name"] + ".luthier"
        assert new == {**old, ".name": name, ".symbol": name + ".kd", ".vgpr_spill_count": "7"}
    old_symbols, symbols = comgr.symbols(linked.old.data), comgr.symbols(linked.new.data)
    assert old_symbols.items() <= symbols.items()
    assert len(symbols) == len(old_symbols) + 2 * len(old_kernels) + 3
    for name, (type, size, _, value) in symbols.items():
        found = linked.new.symbol(name)
        assert found is not None and (found.type, found.size, found.address) == (type, size, value)


def test_what_stands_apart_has_the_clones_alone(apart: Linked, require_tool: Tool) -> None:
    names = {f"{kernel.name}.luthier" for kernel in apart.old.kernels}
    assert {kernel.name for kernel in apart.new.kernels} == names
    assert (apart.new.target_id, apart.new.version) == (apart.old.target_id, apart.old.version)
    others = {f"{name}.luthier" for name in ("helper", "hits", "words", "big")}
    assert {s.name for s in apart.new.symbols[1:]} == names | {f"{name}.kd" for name in names} | others
    comgr = Comgr(require_tool("comgr"))
    before, after = comgr.metadata(apart.old.data), comgr.metadata(apart.new.data)
    for old, new in zip(before.pop("amdhsa.kernels"), after.pop("amdhsa.kernels"), strict=True):
        name = old[".name"] + ".luthier"
        assert new == {**old, ".name": name, ".symbol": name + ".kd", ".vgpr_spill_count": "7"}
    assert after == before
    for name, (type, size, _, value) in comgr.symbols(apart.new.data).items():
        found = apart.new.symbol(name)
        assert found is not None and (found.type, found.size, found.address) == (type, size, value)
    code = sum(len(apart.old.read(k.entry, s.size)) for k in apart.old.kernels if (s := apart.old.symbol(k.name)))
    assert len(apart.new.data) < code + 256 * len(names) + 3 * len(str(apart.old.metadata)) + 4096


def test_loads_as_intended(linked: Linked) -> None:
    assert linked.new.relocations == linked.old.relocations
    assert linked.new.symbols[: len(linked.old.symbols)] == linked.old.symbols
    assert linked.new.kernels[: len(linked.old.kernels)] == linked.old.kernels
    for old in linked.old.kernels:
        new = linked.new.kernel(f"{old.name}.luthier")
        distance = new.entry - new.descriptor_address
        assert new.descriptor == old.descriptor.replace(kernel_code_entry_byte_offset=distance)
        assert new.entry % 256 == 0 and new.descriptor_address % 64 == 0
        symbol = linked.new.symbol(new.name)
        assert symbol is not None and symbol.address == new.entry
        assert linked.new.read(new.entry, symbol.size) == linked.old.read(old.entry, symbol.size)
    places = {name: linked.new.symbol(f"{name}.luthier") for name in ("helper", "hits", "words", "big")}
    assert all(places.values())
    helper, hits, words, big = (place.address for place in places.values() if place)
    low, high = struct.unpack("<2I", linked.new.read(helper, 8))
    assert low == hits + 4 - helper - 4 and high == (hits + 12 - helper - 4) >> 32 == 0
    assert linked.new.read(words, 16) == bytes(range(16)) and words % 16 == 0
    assert not any(linked.new.read(big, 1 << 20)) and big % 4096 == 0
    assert len(linked.new.data) < 1 << 17  # zeros take no space


def test_objcopy_and_strip_keep_it(either: Linked, require_tool: Tool, tmp_path: Path) -> None:
    copy = tmp_path / "copy.co"
    for command in (["llvm-objcopy-22"], ["llvm-strip-22", "--strip-debug", "-o"]):
        files = [str(either.path), str(copy)] if len(command) == 1 else [str(copy), str(either.path)]
        result = subprocess.run([require_tool(command[0]), *command[1:], *files], capture_output=True, text=True)
        assert (result.returncode, result.stderr) == (0, "")
        again = load(copy.read_bytes())
        assert again.kernels == either.new.kernels
        readelf(require_tool("llvm-readelf-22"), copy, "-a")


def test_a_patched_object_can_be_patched(linked: Linked, require_tool: Tool, tmp_path: Path) -> None:
    path = tmp_path / "twice.co"
    again = load(link(linked.new, clone_everything(linked.new, ".again")))
    path.write_bytes(again.data)
    readelf(require_tool("llvm-readelf-22"), path, "-a", "--hash-symbols", "--gnu-hash-table")
    assert len(again.kernels) == 4 * len(linked.old.kernels)
    assert again.kernels[: len(linked.new.kernels)] == linked.new.kernels
