"""Calls between functions: what an object shows without its symbols is what it shows with them."""

from __future__ import annotations

import json
from io import BytesIO

import pytest
from elftools.elf.elffile import ELFFile

from luthier_py.binary.loader import load
from luthier_py.features.code.calls import calls_lines, calls_of
from luthier_py.features.code.info import info_json
from luthier_py.samples import sample

FUNCTION = 2  # STT_FUNC
SYMBOL_BYTES, INFO = 24, 4


def stripped(data: bytes) -> bytes:
    """No symbol is a function."""
    out, found = bytearray(data), 0
    for section in ELFFile(BytesIO(data)).iter_sections():
        if section["sh_type"] in ("SHT_SYMTAB", "SHT_DYNSYM"):
            for number in range(section.num_symbols()):
                at = section["sh_offset"] + number * SYMBOL_BYTES + INFO
                if out[at] & 15 == FUNCTION:
                    out[at] &= 0xF0
                    found += 1
    assert found
    return bytes(out)


def without_names(facts):
    return [{name: value for name, value in row.items() if name != "name"} for row in facts["functions"]]


@pytest.mark.parametrize("name, calls", [("device_call", 2), ("function_pointers", 1), ("mandelbrot", 0)])
def test_a_stripped_object_has_the_same_calls(name: str, calls: int) -> None:
    data = sample(name).path.read_bytes()
    whole, bare = calls_of(load(data)), calls_of(load(stripped(data)))
    assert without_names(bare) == without_names(whole)
    assert sum(len(row["calls"]) for row in bare["functions"]) == calls
    for row in bare["functions"]:
        assert row["name"] == (name if row["kernel"] else f"function_{row['address']:x}")


def test_what_is_shown() -> None:
    obj = load(sample("device_call").path.read_bytes(), "device_call.co")
    assert list(calls_lines([obj])) == [
        "device_call.co: gfx90a",
        "  0x1900 greatest_common_divisor(unsigned int, unsigned int)",
        "  0x1990 reduced_fractions(unsigned int)",
        "    at 0x19e8 calls greatest_common_divisor(unsigned int, unsigned int)",
        "  0x1b00 device_call, a kernel that reaches 2 functions",
        "    at 0x1b88 calls reduced_fractions(unsigned int)",
    ]
    assert json.loads("".join(info_json([obj], calls_of))) == calls_of(obj)
