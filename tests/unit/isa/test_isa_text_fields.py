"""Texts from fields alone are those of the instructions, whatever was printed before."""

from __future__ import annotations

import random

import pytest

from luthier_py.errors import Malformed
from luthier_py.isa import InstructionSet, instruction_set, target
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


@pytest.mark.parametrize("name, wave_size", TARGETS)
def test_every_text_is_the_printers(name: str, wave_size: int) -> None:
    isa = InstructionSet(target(name), wave_size)
    codes = instructions(isa, random.Random(7), 1500)
    for code in codes + codes[::-1]:
        inst = isa.decode(code)
        assert isa.text_of(code) == (isa.text(inst), inst.branch_target(0))


def test_every_text_of_the_samples() -> None:
    from luthier_py.ir import lift
    from luthier_py.loader import load

    for sample in SAMPLES:
        for function in lift(load(sample.path.read_bytes())).functions:
            for instr in function.instrs:
                assert function.isa.text_of(instr.raw)[0] == function.isa.text(instr.inst)
    assert instruction_set(target("gfx90a")).text_of(bytes.fromhex("000081bf")) == ("s_endpgm", None)
