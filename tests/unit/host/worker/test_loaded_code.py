"""What a driver knows of code that ROCr has loaded: its kernels, its lines, and what a tool's copy was made of."""

from __future__ import annotations

import pytest

from luthier_py.binary.loader import load
from luthier_py.binary.loader.origins import keep_original, read_origins
from luthier_py.host.kfd.loaded_code import LoadedCode
from luthier_py.program.analysis.frames import source_frames
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample

BASE = 0x7F00_0000_0000
KERNEL = "transpose"  # with line tables
DATA = sample(KERNEL).path.read_bytes()


def test_lines_of_a_program() -> None:
    code, obj = LoadedCode(), load(DATA)
    code.add(BASE, DATA)
    kernel = obj.kernel(KERNEL)
    assert code.base_of(BASE + kernel.entry) == BASE and code.name_of(BASE + kernel.descriptor_address) == KERNEL
    text = code.text_at(BASE)
    assert text is not None and text.origins is None and text.original is None
    lines = text.lines(kernel.entry)
    assert lines == source_frames(obj).lines_at(kernel.entry) and lines[-1].file == "transpose.hip"


@pytest.mark.parametrize("apart", [False, True])
def test_what_a_copy_was_made_of(apart: bool) -> None:
    """The original is in it, or comes from what the tool kept of it."""
    copy = instrument(DATA, load_tool("instr_count"), KERNEL, apart=apart).data
    keep_original(DATA)
    code = LoadedCode()
    code.add(BASE, copy)
    text, origins = code.text_at(BASE), read_origins(load(copy))
    assert text is not None and origins is not None and text.origins == origins
    there = origins.rows[0][1]
    assert (text.original is not None) == apart
    if text.original is not None:
        assert text.original.read(there, 4) == load(DATA).read(there, 4)
        assert text.original.lines(there) == source_frames(load(DATA)).lines_at(there) != ()


@pytest.mark.parametrize("freed", [b"", b"no ELF", DATA[:100] + bytes(9000), sample("vector_add").path.read_bytes()])
def test_of_an_image_that_is_gone_memory_has_the_names(freed: bytes) -> None:
    """The program has freed it, and perhaps loaded another one from the same place."""
    obj = load(DATA)
    memory = bytearray(max(segment.end for segment in obj.segments))
    for segment in obj.segments:
        if segment.load:
            memory[segment.address : segment.address + segment.file_size] = DATA[segment.offset :][: segment.file_size]
    code = LoadedCode(lambda address, size: bytes(memory[max(address - BASE, 0) :][:size]))
    code.add(BASE, freed)
    kernel = obj.kernel(KERNEL)
    assert code.base_of(BASE + kernel.entry) == BASE and code.text_at(BASE) is None
    assert code.name_of(BASE + kernel.descriptor_address) == KERNEL
    code.add(BASE, DATA)
    assert code.text_at(BASE) is not None and code.name_of(BASE + kernel.descriptor_address) == KERNEL


def test_broken_code_in_memory_has_no_names() -> None:
    for there in (b"", DATA[:64], DATA[:100], DATA[:64] + bytes(9000), DATA[:600] + bytes(9000)):
        code = LoadedCode(lambda address, size, there=there: there[max(address - BASE, 0) :][:size])
        code.add(BASE, b"")
        assert code.name_of(BASE + load(DATA).kernel(KERNEL).descriptor_address) is None


def test_what_cannot_be_read_says_nothing() -> None:
    code = LoadedCode()
    for image in (b"", b"no ELF", DATA[:100], DATA[: len(DATA) // 2]):
        code.add(BASE, image)
        assert code.base_of(BASE) is None and code.name_of(BASE) is None and code.text_at(BASE) is None
    code.add(BASE, DATA)
    assert code.base_of(BASE) == BASE
    code.forget(BASE, 4096)
    assert code.base_of(BASE) is None and code.text_at(BASE) is None
