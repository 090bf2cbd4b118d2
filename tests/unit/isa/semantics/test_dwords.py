"""Which dwords of its sources an instruction reads, under each of its modifiers: as the reference reader has it.

A dword that is another changes no result that does not depend on it, and some result that does, for some operands.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from every_case import check_all
from reference.cases import Cases, Place
from reference.reader import rule
from reference.wave import LANES, Wave
from reference.ways import focuses

from luthier_py.isa import EXEC, VCC, Access, Inst, InstructionSet, OpFlag, OpInfo, RegFile, instruction_set, target
from luthier_py.isa.model.registers import MODE
from luthier_py.isa.semantics import Lanes, find_meaning
from luthier_py.isa.semantics.meaning import Variants
from luthier_py.isa.semantics.readers.dwords import OF_MASKS, dependents

DRAWS = 24
TABLES = (0x00, 0xFF, 0xF0, 0xCC, 0xAA, 0x3C, 0x96, 0xE8)  # of V_BITOP3: most look at some of the sources alone
RIGHT_SHIFTS = ("V_LSHRREV_B64", "V_ASHRREV_I64", "V_LSHR_B64", "V_ASHR_I64")
HALVES = (0x3C00, 0x4200, 0xB800, 0x2E66, 0x4000)


def wave_of(isa: InstructionSet, inst: Inst, seed: int) -> Wave:
    """Lane 0 with floats in its registers that neither overflow nor vanish, or (every third time) with any bits."""
    draw = random.Random(seed)

    def word() -> int:
        if seed % 3 == 0:
            return draw.getrandbits(32)
        one = draw.choice(HALVES) | draw.choice(HALVES) << 16
        return one if seed % 3 == 1 else 0x3F800000 + draw.getrandbits(23)

    rows = {row: [word()] * LANES for row in range(64)}
    scalars = {number: word() for number in range(108)}
    return Wave({**scalars, EXEC: 1, EXEC + 1: 0, VCC: draw.getrandbits(1), VCC + 1: 0, MODE: 0x3F0}, rows,
                {row: [word()] * LANES for row in range(64)}, size=isa.wave_size, target=isa.target,
                numbers_win=isa.target.numbers_win, first_nan=isa.target.first_nan,
                half_products_flush=isa.target.half_products_flush, fnuz_floats=isa.target.fnuz_floats)


def results(wave: Wave, inst: Inst) -> tuple[list[int], int]:
    """Of lane 0: dwords of vector results, one behind the other, and the bits of masks."""
    rule(wave, inst, find_meaning(inst.op))
    regs = [operand.reg for operand in inst.operands if operand.reg is not None and Access.WRITE in operand.access]
    vectors = [wave.vector(reg, 0) >> 32 * dword & 0xFFFFFFFF for reg in regs if reg.file is not RegFile.SGPR
               for dword in range(reg.dwords)]
    masks = [wave.scalar(reg.index) & 1 for reg in regs if reg.file is RegFile.SGPR]
    return vectors, sum(bit << place for place, bit in enumerate([*masks, wave.scalar(VCC) & 1, wave.scalar(EXEC) & 1]))


def observed(isa: InstructionSet, inst: Inst) -> dict[str, list[int]]:
    """As `dependents`, by trying: of sources in vector registers, each by itself."""
    found: dict[str, list[int]] = {}
    for operand in inst.operands:
        if operand.reg is None or operand.reg.file is RegFile.SGPR or Access.READ not in operand.access:
            continue
        found[operand.name] = [0] * operand.reg.dwords
        for dword in range(operand.reg.dwords):
            for seed in range(DRAWS):
                plain, other = wave_of(isa, inst, seed), wave_of(isa, inst, seed)
                rows = other.agprs if operand.reg.file is RegFile.AGPR else other.vgprs
                rows[operand.reg.index + dword] = wave_of(isa, inst, seed + DRAWS + 2).vgprs[1]
                (before, masks), (after, others) = results(plain, inst), results(other, inst)
                found[operand.name][dword] |= sum(1 << at for at, (a, b) in enumerate(zip(before, after, strict=True))
                                                  if a != b) | (masks != others) << OF_MASKS
    return found


def looked_at(op: OpInfo) -> Iterator[dict[str, int]]:
    """Modifiers that may decide what is read."""
    yield {}
    if any(info.name == "bitop3" for info in op.operands):
        yield from ({"bitop3": table} for table in TABLES)
    yield from (given for given in focuses(op)
                if all(name.endswith("_modifiers") and bits & 12 for name, bits in given.items()))


def insts_of(isa: InstructionSet, op: OpInfo) -> Iterator[Inst]:
    for given in looked_at(op):
        case = Cases(isa, 1).make(op, Place(8, 60), None, False, given)
        if case is not None:
            yield case.inst


def check(isa: InstructionSet, op: OpInfo) -> None:
    """Where modifiers choose, each dword that is named must matter; others may matter for few operands, as the lower
    half of a double that is compared."""
    exact = op.format == "VOP3P" or "BITOP3" in op.base
    for inst in insts_of(isa, op):
        told = dependents(inst)
        for name, made in observed(isa, inst).items():
            shown = inst.op.mnemonic, inst.raw.hex(), name, told.get(name), made
            if name in told:  # what merges with the result's other bits is no source of the meaning
                if op.base in RIGHT_SHIFTS and len(made) > 1:
                    made[1] &= ~1  # see dwords.py
                assert all(a & b == b for a, b in zip(told[name], made, strict=False)), shown
                assert not exact or told[name][: len(made)] == made, shown


def rows(isa: InstructionSet) -> list[OpInfo]:
    return [op for op in isa.ops if isinstance(find_meaning(op), Lanes | Variants)
            and not op.partial and not op.flags & (OpFlag.DPP | OpFlag.SDWA | OpFlag.IGNORES_EXEC)]


@pytest.mark.parametrize(("name", "bases"), [
    ("gfx90a", "V_PK_FMA_F32 V_PK_MOV_B32 V_PK_ADD_F16 V_MAD_U64_U32 V_LSHLREV_B64"), ("gfx950", "V_BITOP3_B32"),
    ("gfx1201", "V_SWAP_B32 V_ALIGNBIT_B32 V_FMA_MIX_F32 V_CMP_LT_F64"),
])  # fmt: skip
def test_dwords_that_results_are_made_of(name: str, bases: str) -> None:
    isa = instruction_set(target(name), target(name).wave_sizes[0])
    ops = [op for op in rows(isa) if op.base in bases.split()]
    assert {op.base for op in ops} == {*bases.split()}
    for op in ops:
        check(isa, op)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gfx90a", "gfx950", "gfx1100", "gfx1201", "gfx1250"])
def test_dwords_that_results_of_every_instruction_are_made_of(name: str) -> None:
    isa = instruction_set(target(name), target(name).wave_sizes[0])
    check_all(lambda op: check(isa, op), rows(isa))
