"""The vectorised scan gives what decoding one instruction after the other gives."""

from __future__ import annotations

import random

import pytest

from luthier_py.base.errors import Malformed
from luthier_py.isa import instruction_set, sgpr, target
from luthier_py.isa.encoding.scan import UNKNOWN

TARGETS = ("gfx803", "gfx90a", "gfx950", "gfx1030", "gfx1100", "gfx1201", "gfx1250")


def one_by_one(isa, code: bytes) -> list[tuple[int, int, int, tuple[int, ...] | None]]:
    found, offset = [], 0
    while offset + 4 <= len(code):
        try:
            inst = isa.decode(code, offset)
            found.append((offset, len(inst.raw), inst.op.row, inst.fields))
        except Malformed:
            found.append((offset, 4, UNKNOWN, None))
        offset += found[-1][1]
    return found


def scanned(isa, code: bytes) -> list[tuple[int, int, int, tuple[int, ...] | None]]:
    scan = isa.scan(code)
    fields = {int(position): tuple(group.values[:, place].tolist())
              for group in scan.groups for place, position in enumerate(group.positions)}
    return [(int(offset), int(size), int(row), fields.get(int(kind)))
            for offset, size, row, kind in zip(scan.offsets, scan.sizes, scan.rows, scan.kinds, strict=True)]


@pytest.mark.parametrize("name", TARGETS)
def test_random_code(name: str) -> None:
    isa = instruction_set(target(name))
    generator = random.Random(1)
    rows = [op.value | generator.getrandbits(8 * op.size_bytes) & ~op.mask for op in isa.ops[::9]]
    code = b"".join(word.to_bytes(op.size_bytes, "little") for word, op in zip(rows, isa.ops[::9], strict=True))
    code += generator.randbytes(6000)
    assert scanned(isa, code) == one_by_one(isa, code)


def test_compiled_code(sample) -> None:
    isa = instruction_set(target("gfx90a"))
    code = sample.path.read_bytes()
    code = code[len(code) % 4:]
    assert scanned(isa, code) == one_by_one(isa, code)


def test_ends() -> None:
    isa = instruction_set(target("gfx90a"))
    assert len(isa.scan(b"")) == 0 and len(isa.scan(b"abc")) == 0
    cut = bytes.fromhex("04ff0480")  # a literal should follow
    assert scanned(isa, cut) == [(0, 4, UNKNOWN, None)] == one_by_one(isa, cut)
    assert scanned(isa, cut + b"ab") == [(0, 4, UNKNOWN, None)]


def test_a_start_that_is_given_cuts_what_reaches_over_it() -> None:
    isa = instruction_set(target("gfx90a"))
    nop, literal = isa.make("s_nop", 0).raw, isa.make("s_mov_b32", sgpr(0), 0x7E0002FF).raw
    code = literal + nop + nop
    assert isa.scan(code).offsets.tolist() == [0, 8, 12]
    cut = isa.scan(code, (4,))
    assert cut.offsets.tolist() == [0, 4, 12] and (cut.rows == UNKNOWN).tolist() == [True, False, False]


@pytest.mark.parametrize("length", (2, 3, 70))
def test_long_instructions_in_a_row(length: int) -> None:
    isa = instruction_set(target("gfx90a"))
    literal = isa.make("s_mov_b32", sgpr(0), 0x7E0002FF).raw  # the literal is v_mov_b32 with a literal
    code = literal * length + isa.make("s_nop", 0).raw
    assert scanned(isa, code) == one_by_one(isa, code)
