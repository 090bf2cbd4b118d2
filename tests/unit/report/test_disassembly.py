"""Disassembly of what compilers do not write: symbols without a size, functions that end too early, odd names."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

import pytest

from luthier_py.base.errors import Malformed
from luthier_py.binary.loader import CodeObject, SectionType, SymbolType, load
from luthier_py.features.code.disassembly import disassemble
from luthier_py.isa import InstructionSet, instruction_set
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import SAMPLES, Sample, sample


def with_sizes(data: bytes, size: int) -> bytes:
    """All functions with another size in their symbols."""
    out, obj = bytearray(data), load(data)
    for section in obj.sections:
        if section.type in (SectionType.SYMTAB, SectionType.DYNSYM):
            for row in range(section.offset, section.offset + section.size, 24):
                if out[row + 4] & 15 == SymbolType.FUNC:
                    struct.pack_into("<Q", out, row + 16, size)
    return bytes(out)


def body(lines: Iterator[str]) -> list[str]:
    return [line for line in lines if line.startswith("\t")]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_functions_without_a_size(sample: Sample) -> None:
    """As hand-written objects have them: nothing is lost, and what is more is padding."""
    data = sample.path.read_bytes()
    whole, found = body(disassemble(load(data))), body(disassemble(load(with_sizes(data, 0))))
    assert whole and [line for line in found if line in set(whole)] == whole
    padding = [line for line in found if line not in set(whole)]
    assert all(line.startswith(("\ts_nop 0 ", "\ts_code_end ")) for line in padding)
    kernel = load(data).kernels[0].name
    assert set(body(disassemble(load(data), kernel))) <= set(body(disassemble(load(with_sizes(data, 0)), kernel)))


def test_an_instrumented_copy_has_original_and_clone() -> None:
    data = with_sizes(sample("nbody").path.read_bytes(), 0)
    made = load(instrument(data, load_tool("instr_count", {})).data)
    lines = list(disassemble(made))
    assert any("<nbody>:" in line for line in lines) and any("<nbody.luthier>:" in line for line in lines)
    assert set(body(disassemble(load(data)))) <= set(body(iter(lines)))


def one_by_one(isa: InstructionSet, code: bytes) -> Iterator[str]:
    """What stands in ``code``, without a look at all of it at once."""
    at = 0
    while at < len(code):
        try:
            inst = isa.decode(code, at)
            text, size = isa.text(inst), inst.size_bytes
        except Malformed:
            text, size = f".long 0x{int.from_bytes(code[at : at + 4], 'little'):08x}", 4
        yield text
        at += size


@pytest.mark.parametrize("name", ["matmul", "nbody", "scratch"])
def test_functions_that_end_anywhere(name: str) -> None:
    """Instructions that are cut off, and noise, read as one instruction after the other would."""
    data = bytearray(sample(name).path.read_bytes())
    obj, chance = load(bytes(data)), random.Random(5)
    kernel = obj.kernels[0]
    start = kernel.entry - next(s.address - s.offset for s in obj.segments if kernel.entry in range(s.address, s.end))
    for size in [*range(4, 96, 4), 97, 98, 99]:
        for _ in range(2):
            data[start + chance.randrange(size)] ^= 1 << chance.randrange(8)
        damaged = load(with_sizes(bytes(data), size))
        code = damaged.read(kernel.entry, size)
        found = [line.split("//")[0].strip() for line in body(disassemble(damaged, kernel.name))]
        assert found == list(one_by_one(instruction_set(damaged.target), code))


def test_names_are_escaped() -> None:
    data = sample("device_call").path.read_bytes()
    obj = load(data)
    kernels = {kernel.name for kernel in obj.kernels}
    name = next(s.name for s in obj.symbols if s.type == SymbolType.FUNC and s.name not in kernels)
    bad = b"\x1b[2J" + name.encode()[4:]
    found = list(disassemble(renamed(data, name.encode(), bad)))
    assert all(line.isprintable() for line in (line.replace("\t", " ") for line in found))
    assert any("<\\x1b[2J" in line for line in found)


def renamed(data: bytes, old: bytes, new: bytes) -> CodeObject:
    return load(data.replace(b"\0" + old + b"\0", b"\0" + new + b"\0"), "k\x1b.co")
