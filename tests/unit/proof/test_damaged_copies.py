"""Copies that are damaged in one place outside of code, or claims that are: each is refused for what is wrong."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from luthier_py.base.errors import CheckFailed
from luthier_py.binary.link import apply_bindings, layout
from luthier_py.binary.loader import DESCRIPTOR_BYTES, SectionType, load
from luthier_py.proof import prove
from luthier_py.rewrite.pipeline import carry_out, instrument, plan
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample

NAME = "reduce"
CLONE, VARIABLE = f"{NAME}.luthier", "InstrCount.instructions"


@pytest.fixture(scope="module")
def made():
    return instrument(sample(NAME).path.read_bytes(), load_tool("instr_count"))


@pytest.fixture(scope="module")
def apart():
    return carry_out(plan(sample(NAME).path.read_bytes(), load_tool("instr_count")), apart=True)


def check(made, data: bytes, apart: bool = False) -> None:
    prove(made.obj.data, apply_bindings(bytes(data), made.bindings, 0), made.patched.claim, apart)


def offset(data: bytes, name: str) -> int:
    """Of a symbol's bytes in the file."""
    obj = load(data)
    address = obj.symbol(name).address
    segment = obj.elf.load_at(address)
    return segment.offset + address - segment.address


def row(data: bytes, name: str) -> int:
    """Of a symbol's row in .symtab."""
    elf = load(data).elf
    table = elf.sections[elf.find(SectionType.SYMTAB)]
    strings = elf.content(elf.sections[table.link])
    names = [strings[start:strings.index(b"\0", start)] for start, in struct.iter_unpack("<I20x", elf.content(table))]
    return table.offset + 24 * names.index(name.encode())


def dynamic(data: bytes, tag: int) -> int:
    """Of the value of an entry."""
    elf = load(data).elf
    table = elf.sections[elf.find(SectionType.DYNAMIC)]
    tags = [each for each, _ in struct.iter_unpack("<QQ", elf.content(table))]
    return table.offset + 16 * tags.index(tag) + 8


def note(data: bytes, key: bytes, which: int) -> int:
    """Of a number in the metadata: in the original's note, in the copy's for the original's kernel, for the clone."""
    at = -1
    for _ in range(which + 1):
        at = data.index(key, at + 1)
    return at + len(key)


def section(data: bytes, name: str, field: int) -> int:
    """Of a field of a section's header."""
    elf = load(data).elf
    number = [each.name for each in elf.sections].index(name)
    return struct.unpack_from("<Q", data, 40)[0] + 64 * number + field


def segment(data: bytes, number: int, field: int) -> int:
    return struct.unpack_from("<Q", data, 32)[0] + 56 * number + field


DAMAGES = {
    "an original's descriptor": (lambda d: offset(d, f"{NAME}.kd"), "byte 0x.* is another one"),
    "an original's code": (lambda d: offset(d, NAME), "byte 0x.* is another one"),
    "LDS of a clone": (lambda d: offset(d, f"{CLONE}.kd"), "descriptor of its clone is another one"),
    "scratch of a clone": (lambda d: offset(d, f"{CLONE}.kd") + 4, "descriptor of its clone is another one"),
    "kernel arguments of a clone": (lambda d: offset(d, f"{CLONE}.kd") + 8, "descriptor of its clone is another one"),
    "the entry of a clone": (lambda d: offset(d, f"{CLONE}.kd") + 17, "descriptor of its clone is another one"),
    "float mode of a clone": (lambda d: offset(d, f"{CLONE}.kd") + 50, "descriptor of its clone is another one"),
    "user registers of a clone": (lambda d: offset(d, f"{CLONE}.kd") + 52, "descriptor of its clone is another one"),
    "what a clone begins with": (lambda d: offset(d, f"{CLONE}.kd") + 56, "descriptor of its clone is another one"),
    "a version": (lambda d: note(d, b"amdhsa.version", 1) + 1, "its metadata is another one"),
    "an original's wave size": (lambda d: note(d, b".wavefront_size", 1), "its metadata is another one"),
    "a clone's wave size": (lambda d: note(d, b".wavefront_size", 2), "in the metadata of its clone is another one"),
    "the old note": (lambda d: note(d, b".wavefront_size", 0), "byte 0x.* is another one"),
    "a clone's address": (lambda d: row(d, CLONE) + 9, "two meanings|outside of what|over something else"),
    "a clone's size": (lambda d: row(d, CLONE) + 16, "two meanings|should be|nothing comes|no instruction"),
    "an original's address": (lambda d: row(d, NAME) + 8, "section .symtab has lost rows"),
    "a variable's size": (lambda d: row(d, VARIABLE) + 16, "has 9 bytes, not 8|two meanings"),
    "a symbol's name": (lambda d: row(d, VARIABLE), "that the claim does not name|is not found"),
    "where names are": (lambda d: dynamic(d, 5), "dynamic entry 5 names no table"),
    "where symbols are": (lambda d: dynamic(d, 6), "dynamic entry 6 names no table"),
    "where hashes are": (lambda d: dynamic(d, 4), "dynamic entry 4 names no table"),
    "how long names are": (lambda d: dynamic(d, 10), "dynamic entry 10 names no table"),
    "how long a symbol is": (lambda d: dynamic(d, 11), "byte 0x.* is another one"),
    "a section's type": (lambda d: section(d, ".text", 4), "section .text is another one"),
    "where a table is": (lambda d: section(d, ".dynsym", 16), "dynamic entry 6 names no table"),
    "a segment's size": (lambda d: segment(d, 2, 40), "segment at 0x.* is another one"),
    "where nothing is": (lambda d: offset(d, CLONE) + load(d).symbol(CLONE).size + 4, "the claim says nothing"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_what_is_damaged_is_named(made, name):
    where, why = DAMAGES[name]
    data = bytearray(made.data)
    check(made, data)
    data[where(made.data)] ^= 1
    with pytest.raises(CheckFailed, match=why):
        check(made, data)


def test_a_clone_has_room_for_its_registers(made):
    large = instrument(sample("nbody").path.read_bytes(), load_tool("instr_count"))
    data, at = bytearray(large.data), offset(large.data, "nbody.luthier.kd") + 48
    data[at] &= ~0x3F  # granules of vector registers
    with pytest.raises(CheckFailed, match="too few registers"):
        check(large, data)
    data = bytearray(made.data)
    data[note(made.data, b".vgpr_count", 2)] = 0
    with pytest.raises(CheckFailed, match="vgpr_count in the metadata of its clone"):
        check(made, data)


def test_nothing_is_missing(made):
    with pytest.raises(CheckFailed, match="has no symbol"):
        prove(made.obj.data, made.obj.data, made.patched.claim)
    with pytest.raises(CheckFailed, match="shorter"):
        prove(made.data, made.obj.data, made.patched.claim)


def test_a_copy_apart_has_nothing_else_in_it(apart):
    check(apart, apart.data, True)
    for where, why in ((48, "it is for something else"), (offset(apart.data, CLONE) + 4, "argument|should be"),
                       (offset(apart.data, CLONE) + load(apart.data).symbol(CLONE).size + 4, "claim says nothing"),
                       (offset(apart.data, f"{CLONE}.kd"), "descriptor of its clone is another one"),
                       (note(apart.data, b".wavefront_size", 0), "metadata of its clone is another one")):
        data = bytearray(apart.data)
        data[where] ^= 1
        with pytest.raises(CheckFailed, match=why):
            check(apart, data, True)


def test_claims_that_are_not_true(made):
    claim = made.patched.claim
    function, = claim.functions
    calls, stretches = function.calls, function.stretches
    wrong = {
        "no symbol|does not name": replace(function, symbol="other"),
        "waves of 32 lanes": replace(function, wave_size=32),
        "not in order": replace(function, stretches=stretches[::-1]),
        "of which the claim says nothing|runs off|another order": replace(function, stretches=stretches[:-1]),
        "not part of the hook|claim says|live and not restored": replace(function, calls=calls[1:]),
        "where nothing is inserted": replace(function, calls=(replace(calls[0], point=calls[0].point + 4), *calls[1:])),
        "not those that the claim says|as it was compiled|where nothing": replace(
            function, calls=(calls[0], replace(calls[1], point=calls[0].point), *calls[2:])),
        "and that is nowhere": replace(function, locations={}),
    }
    for why, other in wrong.items():
        with pytest.raises(CheckFailed, match=why):
            prove(made.obj.data, made.data, replace(claim, functions=(other,)))


def test_every_byte_of_a_clone_is_explained(monkeypatch):
    """A clone that is longer by what follows it: that may do nothing, and that alone."""
    monkeypatch.setattr(layout, "_PREFETCH_BYTES", 2048)
    made = instrument(sample(NAME).path.read_bytes(), load_tool("instr_count"))
    data = bytearray(made.data)
    elf = load(made.data).elf
    for kind in (SectionType.SYMTAB, SectionType.DYNSYM):
        table = elf.sections[elf.find(kind)]
        for at in range(table.offset, table.offset + table.size, 24):
            address, size = struct.unpack_from("<QQ", data, at + 8)
            if (address, size) == (load(made.data).symbol(CLONE).address, load(made.data).symbol(CLONE).size):
                struct.pack_into("<Q", data, at + 16, size + 8)
    check(made, data)
    data[offset(made.data, CLONE) + load(made.data).symbol(CLONE).size + 4] ^= 1
    assert data != made.data and DESCRIPTOR_BYTES == 64
    with pytest.raises(CheckFailed, match="to which nothing comes"):
        check(made, data)
