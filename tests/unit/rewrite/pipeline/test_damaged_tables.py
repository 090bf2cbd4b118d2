"""Section tables that are damaged: the pipeline ends in a proved copy or in a LuthierError."""

from __future__ import annotations

import struct

import pytest

from luthier_py.base.errors import LuthierError
from luthier_py.binary.loader import SectionType, load
from luthier_py.rewrite.pipeline import carry_out, instrument, plan
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample

POINTERS = sample("function_pointers").path.read_bytes()
TYPE, FLAGS, LINK = (4, "I"), (8, "Q"), (40, "I")  # of a section header


def damaged(section: int, field: tuple[int, str], value: int) -> bytes:
    out = bytearray(POINTERS)
    struct.pack_into("<" + field[1], out, load(POINTERS).elf.section_header_offset + 64 * section + field[0], value)
    return bytes(out)


def section(kind: SectionType) -> int:
    found = load(POINTERS).elf.find(kind)
    assert found is not None
    return found


def test_a_stripped_object_with_device_functions() -> None:
    """Their clones have symbols among the dynamic ones, as the copy has no others."""
    data = damaged(section(SectionType.SYMTAB), TYPE, SectionType.PROGBITS)
    made = instrument(data, load_tool("instr_count", {}))
    clones = [symbol.name for symbol in load(made.data).symbols if symbol.name.endswith(".luthier")]
    assert len(clones) == len(made.program.functions) > 1
    assert carry_out(plan(data, load_tool("instr_count", {})), apart=True).bindings


def survives(data: bytes) -> bool:
    try:
        for apart in (False, True):
            carry_out(plan(data, load_tool("instr_count", {})), apart=apart)
    except LuthierError as error:
        assert "\n" not in str(error)
        return False
    return True


@pytest.mark.parametrize("kind", [SectionType.SYMTAB, SectionType.DYNSYM])
def test_no_damage_to_a_table_is_a_bug(kind: SectionType) -> None:
    index, count = section(kind), len(load(POINTERS).sections)
    for field, value in ((LINK, 0), (LINK, 1), (LINK, count), (TYPE, 0), (TYPE, SectionType.DYNSYM), (FLAGS, 0)):
        survives(damaged(index, field, value))
