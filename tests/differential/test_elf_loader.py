"""The loader reads code objects, fresh from clang, as llvm-readelf, pyelftools and comgr do."""

from __future__ import annotations

import io
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from elf_tools import VARIANTS, Comgr, compile_hip, readelf, readelf_json
from elftools.elf.elffile import ELFFile

from luthier_py.binary.loader import CodeObject, Setting, load


@pytest.fixture(scope="module", params=VARIANTS, ids=lambda variant: f"{variant[0]}-v{variant[1]}")
def variant(request: pytest.FixtureRequest, require_tool: Callable[[str], str]) -> tuple[str, int, bytes]:
    processor, version = request.param
    return processor, version, compile_hip(require_tool("clang-22"), processor, version)


@pytest.fixture(scope="module")
def path(variant: tuple[str, int, bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("elf") / "k.co"
    path.write_bytes(variant[2])
    return path


@pytest.fixture(scope="module")
def obj(variant: tuple[str, int, bytes]) -> CodeObject:
    return load(variant[2])


def test_header_is_what_clang_was_told(variant: tuple[str, int, bytes], obj: CodeObject) -> None:
    processor, version, _ = variant
    name, *features = processor.split(":")
    settings = {"xnack": obj.xnack, "sramecc": obj.sramecc}
    assert (obj.target.name, obj.version) == (name, version)
    for feature, supported in (("xnack", obj.target.xnack), ("sramecc", obj.target.sramecc)):
        given = {f"{feature}+": Setting.ON, f"{feature}-": Setting.OFF}
        expected = [setting for word, setting in given.items() if word in features]
        assert settings[feature] == (expected or [Setting.ANY if supported else Setting.UNSUPPORTED])[0]


def test_tables_equal_readelf(obj: CodeObject, path: Path, require_tool: Callable[[str], str]) -> None:
    theirs = readelf_json(require_tool("llvm-readelf-22"), path)
    assert [
        (s.type, s.flags, s.offset, s.address, s.physical_address, s.file_size, s.memory_size, s.align)
        for s in obj.segments
    ] == [
        (s["Type"]["Value"], s["Flags"]["Value"], s["Offset"], s["VirtualAddress"], s["PhysicalAddress"], s["FileSize"],
         s["MemSize"], s["Alignment"])
        for s in (row["ProgramHeader"] for row in theirs["ProgramHeaders"])
    ]
    assert [
        (s.name, s.type, s.flags, s.address, s.offset, s.size, s.link, s.info, s.align, s.entry_size)
        for s in obj.sections
    ] == [
        (s["Name"]["Name"], s["Type"]["Value"], s["Flags"]["Value"], s["Address"], s["Offset"], s["Size"], s["Link"],
         s["Info"], s["AddressAlignment"], s["EntrySize"])
        for s in (row["Section"] for row in theirs["Sections"])
    ]
    assert [
        (s.name, s.address, s.size, s.type, s.binding, s.visibility, s.section) for s in obj.symbols
    ] == [
        (s["Name"]["Name"], s["Value"], s["Size"], s["Type"]["Value"], s["Binding"]["Value"], s["Other"]["Value"] & 3,
         s["Section"]["Value"])
        for s in (row["Symbol"] for row in theirs["Symbols"])
    ]
    relocations = [row["Relocation"] for part in theirs["Relocations"] for row in part["Relocs"]]
    assert relocations
    assert [(r.address, r.kind.value, r.addend) for r in obj.relocations] == [
        (r["Offset"], r["Type"]["Value"], r["Addend"]) for r in relocations
    ]


def leaves(node: Any, booleans: tuple[str, str], key: str = "") -> Iterator[tuple[str, str]]:
    """(key, scalar as text) of a metadata document."""
    if isinstance(node, dict):
        for inner, value in node.items():
            yield from leaves(value, booleans, inner)
    elif isinstance(node, list):
        for value in node:
            yield from leaves(value, booleans, key)
    else:
        yield key, booleans[node] if isinstance(node, bool) else str(node)


def test_metadata_equals_readelf(obj: CodeObject, path: Path, require_tool: Callable[[str], str]) -> None:
    text = readelf(require_tool("llvm-readelf-22"), path, "--notes")
    pairs = re.findall(r"([.\w]+): +(\S.*)", text.split("---\n")[1])
    theirs = [(key, value.strip("'")) for key, value in pairs if value != "[]"]
    ours = [(key, value) for key, value in leaves(obj.metadata, ("false", "true")) if key != "amdhsa.version"]
    assert ours == theirs


def test_metadata_and_symbols_equal_comgr(
    variant: tuple[str, int, bytes], obj: CodeObject, require_tool: Callable[[str], str]
) -> None:
    comgr = Comgr(require_tool("comgr"))
    assert list(leaves(comgr.metadata(variant[2]), ("", ""))) == list(leaves(obj.metadata, ("0", "1")))
    for name, (type, size, undefined, value) in comgr.symbols(variant[2]).items():
        symbol = obj.symbol(name)
        assert symbol is not None
        assert (symbol.type, symbol.size, not symbol.defined, symbol.address) == (type, size, undefined, value)
    if variant[1] == 4:
        assert comgr.isa(variant[2]) == f"amdgcn-amd-amdhsa--{obj.target.name}"


def test_kernels_equal_what_objdump_says_of_descriptors(
    obj: CodeObject, path: Path, require_tool: Callable[[str], str]
) -> None:
    """llvm-objdump disassembles descriptors into the directives that gave them."""
    names = ["vadd", "reduce", "pointers", "direct", "_Z5typedIdEv3BigPT_c", "empty"]
    assert [kernel.name for kernel in obj.kernels] == names
    for kernel in obj.kernels:
        command = [require_tool("llvm-objdump-22"), "-D", f"--disassemble-symbols={kernel.symbol}", str(path)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        directives = dict(re.findall(r"\.amdhsa_(\w+) (\d+)", text))
        assert len(directives) > 20
        for name, value in directives.items():
            check_directive(obj, kernel.name, name, int(value))


RENAMED = {  # .amdhsa_ directive -> field
    "fp16_overflow": "fp16_ovfl",
    "wavefront_size32": "enable_wavefront_size32",
    "dx10_clamp": "enable_dx10_clamp",
    "ieee_mode": "enable_ieee_mode",
    "memory_ordered": "mem_ordered",
    "forward_progress": "fwd_progress",
    "workgroup_processor_mode": "wgp_mode",
    "round_robin_scheduling": "enable_wg_rr_en",
    "system_vgpr_workitem_id": "enable_vgpr_workitem_id",
    "system_sgpr_private_segment_wavefront_offset": "enable_private_segment",
    "exception_fp_ieee_invalid_op": "enable_exception_ieee_754_fp_invalid_operation",
    "exception_fp_denorm_src": "enable_exception_fp_denormal_source",
    "exception_fp_ieee_div_zero": "enable_exception_ieee_754_fp_division_by_zero",
    "exception_fp_ieee_overflow": "enable_exception_ieee_754_fp_overflow",
    "exception_fp_ieee_underflow": "enable_exception_ieee_754_fp_underflow",
    "exception_fp_ieee_inexact": "enable_exception_ieee_754_fp_inexact",
    "exception_int_div_zero": "enable_exception_int_divide_by_zero",
    **{f"user_sgpr_kernarg_preload_{name}": f"kernarg_preload_{name}" for name in ("length", "offset")},
    **{f"system_sgpr_workgroup_{name}": f"enable_sgpr_workgroup_{name}" for name in ("id_x", "id_y", "id_z", "info")},
    **{
        f"user_sgpr_{name}": f"enable_sgpr_{name}"
        for name in ("private_segment_buffer", "dispatch_ptr", "queue_ptr", "kernarg_segment_ptr", "dispatch_id",
                     "flat_scratch_init", "private_segment_size")
    },
}
UNSTORED = {"reserve_vcc", "reserve_flat_scratch", "reserve_xnack_mask"}  # the assembler's, added to a count


def check_directive(obj: CodeObject, kernel: str, name: str, value: int) -> None:
    descriptor = obj.kernel(kernel).descriptor
    if name == "next_free_vgpr":
        registers = obj.target.wave_registers(descriptor.wave_size)
        assert (descriptor.granulated_workitem_vgpr_count + 1) * registers.encoding_granule == value
    elif name == "next_free_sgpr":
        if obj.target.generation < 10:
            assert (descriptor.granulated_wavefront_sgpr_count + 1) * obj.target.sgpr_encoding_granule == value
    elif name not in UNSTORED:
        assert getattr(descriptor, RENAMED.get(name, name)) == value, name


def test_pyelftools_agrees(variant: tuple[str, int, bytes], obj: CodeObject) -> None:
    elf = ELFFile(io.BytesIO(variant[2]))
    assert [section.name for section in elf.iter_sections()] == [section.name for section in obj.sections]
    table = elf.get_section_by_name(".symtab")
    assert [symbol.name for symbol in table.iter_symbols()] == [symbol.name for symbol in obj.symbols]
    for segment in elf.iter_segments("PT_LOAD"):
        header = segment.header
        assert obj.read(header.p_vaddr, header.p_memsz) == segment.data() + bytes(header.p_memsz - header.p_filesz)
