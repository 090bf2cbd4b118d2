"""Texts from fields alone are those of the instructions, whatever was printed before."""

from __future__ import annotations

import random

import pytest

from luthier_py.base.errors import Malformed
from luthier_py.isa import InstructionSet, instruction_set, target
from luthier_py.isa.columns import read_columns
from luthier_py.samples import SAMPLES

TARGETS = [("gfx90a", 64), ("gfx942", 64), ("gfx1030", 32), ("gfx1100", 64), ("gfx1201", 32), ("gfx1250", 32)]


def instructions(isa: InstructionSet, chance: random.Random, count: int) -> list[bytes]:
    """Of random rows: all fields random, and then one field at a time changed, so that what was met is met again."""
    found: list[bytes] = []
    while len(found) < count:
        op = chance.choice(isa.ops)
        bits = op.value | chance.getrandbits(8 * op.size_bytes) & ~op.mask & (1 << 8 * op.size_bytes) - 1
        for _ in range(6):
            try:
                found.append(isa.decode(bits.to_bytes(op.size_bytes, "little") + chance.randbytes(8)).raw)
            except Malformed:
                pass
            bits ^= 1 << chance.choice([k for k in range(8 * op.size_bytes) if not op.mask >> k & 1] or [0])
    return found


def texts(isa: InstructionSet, codes: list[bytes]) -> list[str]:
    columns = read_columns(isa, [(0, code) for code in codes])
    found = columns[0].distinct.texts(range(len(columns[0].distinct)))
    return [found[int(each.kinds[0])] for each in columns]


@pytest.mark.parametrize("name, wave_size", TARGETS)
def test_every_text_is_the_printers(name: str, wave_size: int) -> None:
    isa = InstructionSet(target(name), wave_size)
    codes = instructions(isa, random.Random(7), 1500)
    expected = [isa.text(isa.decode(code)) for code in codes]
    assert [text for start in range(0, len(codes), 100) for text in texts(isa, codes[start : start + 100])] == expected
    assert texts(isa, codes[::-1]) == expected[::-1]


def test_every_text_of_the_samples() -> None:
    from luthier_py.binary.loader import load
    from luthier_py.program.ir import lift

    for sample in SAMPLES:
        for function in lift(load(sample.path.read_bytes())).functions:
            instrs = list(function.instrs)
            assert texts(function.isa, [i.raw for i in instrs]) == [function.isa.text(i.inst) for i in instrs]
    assert texts(instruction_set(target("gfx90a")), [bytes.fromhex("000081bf")]) == ["s_endpgm"]
