"""The copy as a file: what of the original is another one, and what was added that the claim does not say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from luthier_py.base.errors import CheckFailed
from luthier_py.binary.loader import DESCRIPTOR_BYTES, CodeObject, KernelDescriptor, load
from luthier_py.proof import prove
from luthier_py.rewrite.pipeline import Instrumented, instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample

CLONE = "reduce.luthier"


@cache
def copy() -> tuple[Instrumented, CodeObject]:
    made = instrument(sample("reduce").path.read_bytes(), load_tool("instr_count"))
    return made, load(made.data)


def refused(why: str, change: Callable[[bytearray], None]) -> None:
    made, _ = copy()
    data = bytearray(made.data)
    change(data)
    assert data != made.data
    with pytest.raises(CheckFailed, match=why):
        prove(made.obj.data, bytes(data), made.patched.claim)


def in_file(address: int) -> int:
    segment = copy()[1].elf.load_at(address)
    assert segment is not None
    return segment.offset + address - segment.address


def test_each_byte_of_the_original_is_there() -> None:
    made, _ = copy()
    for section in made.obj.sections:
        if section.name in (".text", ".rodata"):
            def flip(data: bytearray, at: int = section.offset + section.size // 2) -> None:
                data[at] ^= 1

            refused("byte 0x[0-9a-f]+ of the file is another one", flip)


@pytest.mark.parametrize("key", [".vgpr_count", ".sgpr_count"])
def test_counts_of_the_metadata_only_grow(key: str) -> None:
    def less(data: bytearray) -> None:
        at = data.rindex(key.encode()) + len(key)
        assert 1 < data[at] < 128  # a number of one byte, the clone's
        data[at] = 1

    refused(f"{key} in the metadata of its clone is another one", less)


def test_a_descriptor_has_more_registers_and_nothing_else_new() -> None:
    at = in_file(copy()[1].kernel(CLONE).descriptor_address)
    for field, value in (("float_round_mode_32", 3), ("enable_sgpr_dispatch_ptr", 1), ("group_segment_fixed_size", 4)):
        def other(data: bytearray, field: str = field, value: int = value) -> None:
            old = KernelDescriptor(bytes(data[at : at + DESCRIPTOR_BYTES]))
            data[at : at + DESCRIPTOR_BYTES] = old.replace(**{field: getattr(old, field) ^ value}).raw

        refused("the descriptor of its clone is another one|is live and not restored", other)


def test_symbols_that_nobody_claims_are_refused() -> None:
    made, _ = copy()
    (name, *_), claim = made.patched.claim.variables, made.patched.claim
    without = replace(claim, variables={each: size for each, size in claim.variables.items() if each != name})
    with pytest.raises(CheckFailed, match=f"it has a symbol {name} that the claim does not name"):
        prove(made.obj.data, made.data, without)
