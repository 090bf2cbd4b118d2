"""Numbers that the proof makes of numbers are those that the instructions make."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from luthier_py.isa import SCC, Inst, InstructionSet, OpFlag, RegFile, instruction_set, sgpr, target
from luthier_py.isa.semantics import Scalar, find_meaning
from luthier_py.isa.semantics.readers.evaluate import evaluate
from luthier_py.isa.semantics.readers.numbers import UNIFORM, Known, Number, constant
from luthier_py.proof.addresses import scalar_results
from luthier_py.proof.meanings import UNKNOWN, address

SOURCES = (1, 33, 0x80000000, 0xFFFFFFF0)
ADDRESS = 0x1234_FFFF_FFF0


def scalars(isa: InstructionSet) -> Iterator[Inst]:
    """An instruction of each scalar operation of one or two registers, s4 and s6 with what follows them."""
    for op in isa.ops:
        if OpFlag.SALU not in op.flags or not isinstance(find_meaning(op), Scalar):
            continue
        registers = {"sdst": 8, "src0": 4, "src1": 6}
        operands = [sgpr(registers[each.name], each.dwords) for each in op.operands if each.name in registers]
        if len(operands) == len(op.operands):
            yield isa.make(op.mnemonic, *operands)


@pytest.mark.parametrize("gpu", ["gfx90a", pytest.param("gfx1201", marks=pytest.mark.slow)])
def test_what_is_computed_of_numbers_is_what_the_instruction_computes(gpu: str) -> None:
    checked = set()
    for inst in scalars(instruction_set(target(gpu))):
        for a, b, scc in ((a, b, scc) for a in SOURCES for b in SOURCES for scc in (0, 1)):
            held = {4: a, 5: b, 6: b, 7: a & 0xFF, 8: a, 9: b, SCC: scc}

            def read(file: RegFile, index: int, held: dict[int, int] = held) -> Known:
                return constant(held[index]) if file is RegFile.SGPR and index in held else UNIFORM

            right = {index: known.constant for (_, index), known in evaluate(inst, read).items()
                     if isinstance(known, Number)}
            for register, term in scalar_results(inst, held).items():
                if isinstance(term, int) and right.get(register) is not None:
                    assert term == right[register], f"{inst.op.mnemonic} {a:#x} {b:#x} {scc}"
                    checked.add(inst.op.base)
    assert {"S_ADD_I32", "S_ABS_I32", "S_MUL_I32", "S_ASHR_I32", "S_SUBB_U32", "S_CSELECT_B32"} <= checked


def after(listing: str, held: dict[int, object]) -> dict[int, object]:
    isa = instruction_set(target("gfx90a"))
    for line in listing.splitlines():
        inst = isa.decode(isa.assemble(line), 0)
        held = {**held, **{reg: UNKNOWN for reg in (4, 5, SCC) if inst.writes.sgpr >> reg & 1},
                **scalar_results(inst, held)}
    return held


@pytest.mark.parametrize("number", [1, 0x20, 0xFFFFFFFF])
@pytest.mark.parametrize("upper", [0, 3])
@pytest.mark.parametrize(("low", "high", "sign"), [("s_add_u32", "s_addc_u32", 1), ("s_sub_u32", "s_subb_u32", -1)])
def test_numbers_in_registers_are_added_to_addresses(low: str, high: str, sign: int, upper: int, number: int) -> None:
    _, lo, hi = address(ADDRESS)
    found = after(f"{low} s4, s4, s6\n{high} s5, s5, s7", {4: lo, 5: hi, 6: number, 7: upper})
    to = ADDRESS + sign * (number + (upper << 32)) & (1 << 64) - 1
    assert (found[4], found[5]) == address(to)[1:]


@pytest.mark.parametrize("listing", [
    "s_sub_u32 s4, s4, 4\ns_addc_u32 s5, s5, 0", "s_add_u32 s4, s4, 4\ns_subb_u32 s5, s5, 0",
    "s_sub_i32 s4, s4, 4\ns_subb_u32 s5, s5, 0", "s_add_i32 s4, s4, 4\ns_addc_u32 s5, s5, 0",
    "s_cmp_lt_i32 s4, 4\ns_subb_u32 s5, s5, 0", "s_sub_u32 s4, s4, 4\ns_sub_u32 s4, s4, 4\ns_subb_u32 s5, s5, 0\n",
    "s_sub_u32 s4, s4, 4\ns_subb_u32 s5, s4, 0",
])
def test_halves_that_do_not_belong_together_are_no_address(listing: str) -> None:
    _, lo, hi = address(ADDRESS)
    found = after(listing, {4: lo, 5: hi})
    low, high = found[4], found[5]
    assert UNKNOWN in (low, high) or low[1] != high[1] & 0xFFFFFFFF or high[0] != "hi"


@pytest.mark.parametrize("text", [
    "s_sub_f32 s8, s4, s5", "s_mul_f32 s8, s4, s5", "s_cmp_lt_f32 s4, s5", "s_cmp_eq_f32 s4, s5",
    "s_cmp_neq_f32 s4, s5",
])
def test_bits_of_floats_are_no_numbers(text: str) -> None:
    """-1.0 and -2.0, of which the second one has the greater bits; and both zeros, which are the same."""
    inst = instruction_set(target("gfx1201")).parse(text)
    for bits in ({4: 0xBF800000, 5: 0xC0000000}, {4: 0, 5: 0x80000000}, {4: ("reg", 4), 5: 0}):
        assert set(scalar_results(inst, bits).values()) == {UNKNOWN}


@pytest.mark.parametrize("compare", ["s_cmp_lt_i32 s4, s0", "s_cmp_gt_i32 s0, s4"])
def test_what_is_less_with_a_sign_is_no_carry(compare: str) -> None:
    """As s_cmp_lt_u32 would tell: of a sum of registers, and of the lower half of an address."""
    _, lo, hi = address(ADDRESS)
    for held in ({0: ("reg", 0), 1: ("reg", 1), 17: ("reg", 17)}, {0: lo, 1: hi, 17: 0x20}):
        for number, text in enumerate((compare.replace("_i32", "_u32"), compare)):
            found = after(f"s_add_u32 s4, s0, s17\n{text}\ns_addc_u32 s5, s1, 0", held)
            assert (found[5] == UNKNOWN) is bool(number), (text, found[5])
