"""Readers of the semantics against values: what they say of all lanes holds for numbers chosen at random."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from luthier_py.base.errors import LuthierError
from luthier_py.isa import EXEC, Inst, InstructionSet, OpFlag, RegFile, instruction_set, target
from luthier_py.isa.model.registers import SCC
from luthier_py.isa.semantics.readers.evaluate import Dword, evaluate
from luthier_py.isa.semantics.readers.lane_bits import ONE, ZERO, MaskSource, assignments, outcome
from luthier_py.isa.semantics.readers.numbers import UNIFORM, Known, Number, Varying, constant, sum_of

TARGETS = [("gfx90a", 64), ("gfx950", 64), ("gfx1030", 32), ("gfx1030", 64), ("gfx1100", 32), ("gfx1201", 64)]
NUMBER, OTHER = (1 << 32) - 1, random.Random(5)
CONSTANTS = [*range(1, 34), 0x3FF, 0xFFFFFFFF, 0xFF00, 1024, 4096]


def random_instructions(isa: InstructionSet, wanted: OpFlag, seed: int, each: int) -> Iterator[Inst]:
    """Rows with a meaning get random fields."""
    chosen = random.Random(seed)
    for op in isa.ops:
        if not op.flags & wanted:
            continue
        for _ in range(each):
            bits = op.value | chosen.getrandbits(8 * op.size_bytes) & ~op.mask
            literal = chosen.choice([b"\xff" * 4, bytes(4), chosen.randbytes(4)])
            try:
                yield isa.decode(bits.to_bytes(op.size_bytes, "little") + literal + bytes(8))
            except LuthierError:
                continue


@pytest.mark.parametrize(("name", "wave_size"), TARGETS)
def test_a_lanes_bit_is_what_the_whole_masks_have_there(name: str, wave_size: int) -> None:
    isa, checked = instruction_set(target(name), wave_size), 0
    chosen = random.Random(1)
    for inst in random_instructions(isa, OpFlag.SALU, 1, 12):
        words = [chosen.choice([0, NUMBER, chosen.getrandbits(32)]) for _ in range(SCC)] + [chosen.getrandbits(1)]
        after = evaluate(inst, lambda file, index, words=words: constant(words[index]))
        written = {index: known.constant for (_, index), known in after.items() if isinstance(known, Number)}
        for assign in assignments(inst, wave_size):
            checked += check_bits(inst, words, written, assign.mask, assign.sources, assign.table, wave_size)
    assert checked > 1000


def check_bits(inst: Inst, words: list[int], written: dict[int, int | None], mask: int, sources: tuple[MaskSource, ...],
               table: tuple[int | None, ...], wave_size: int) -> int:
    """Lanes of the first and last place of each half; how many were told."""
    told = 0
    for lane in (0, 13, 31, *((32, 45, 63) if wave_size == 64 else ())):
        half, place = divmod(lane, 32)
        bits = tuple({ZERO: 0, ONE: 1}.get(source, words[source + half] >> place & 1 if source >= 0 else None)
                     for source in sources)
        said = outcome(table, bits)
        value = written.get(mask + half, words[mask + half])
        if said is not None and value is not None:
            assert value >> place & 1 == said, (inst, lane)
            told += 1
    return told


def test_comparisons_clear_inactive_lanes_and_carries_are_not_relied_on() -> None:
    isa = instruction_set(target("gfx90a"))
    (compare,) = assignments(isa.parse("v_cmp_lt_u32_e32 vcc, v0, v1"), 64)
    assert [outcome(compare.table, (bit,)) for bit in (0, 1)] == [0, None] and compare.sources == (EXEC,)
    (always,) = assignments(isa.parse("v_cmp_t_u32_e32 vcc, v0, v1"), 64)
    assert [outcome(always.table, (bit,)) for bit in (0, 1)] == [0, 1]
    (carry,) = assignments(isa.parse("v_add_co_u32_e32 v0, vcc, v0, v1"), 64)
    assert outcome(carry.table, ()) is None
    both = assignments(isa.parse("v_cmpx_lt_u32_e32 vcc, v0, v1"), 64)
    assert len(both) == 2 and len({assign.value for assign in both}) == 1


@pytest.mark.parametrize(("name", "text", "wanted"), [
    ("gfx1100", "v_cvt_u32_u16_e32 v5, v1.l", 0x4444), ("gfx1100", "v_cvt_u32_u16_e32 v5, v1.h", None),
    ("gfx1201", "v_cvt_i32_i16_e32 v5, v1.h", None), ("gfx1100", "v_cvt_u32_u16_e64 v5, v1.h", None),
    ("gfx1100", "v_mad_u32_u16 v5, v0, v1, v2", 0x2222 * 0x4444 + 0x55556666),
    ("gfx1100", "v_mad_u32_u16 v5, v0, v1, v2 op_sel:[1,0,0,0]", None),
    ("gfx1030", "v_mad_i32_i16 v5, v0, v1, v2 op_sel:[0,1,0,0]", None),
    ("gfx90a", "v_mad_u32_u16 v5, v0, v1, v2 op_sel:[0,1,0,0]", None),
])
def test_upper_halves_are_not_taken_for_lower_ones(name: str, text: str, wanted: int | None) -> None:
    words = {0: 0x11112222, 1: 0x33334444, 2: 0x55556666}
    isa = instruction_set(target(name))
    found = evaluate(isa.parse(text), lambda file, index: constant(words[index])).get((RegFile.VGPR, 5))
    assert (found.constant if isinstance(found, Number) else None) == wanted


def test_one_register_of_a_pair_says_nothing_of_the_other_half() -> None:
    isa = instruction_set(target("gfx90a"))
    (low,) = assignments(isa.parse("s_mov_b32 exec_lo, 0"), 64)
    assert [outcome(low.table, (bit,)) for bit in (0, 1)] == [0, None] and low.sources == (EXEC,)
    (other,) = assignments(isa.parse("s_mov_b32 s4, exec_hi"), 64)
    assert other.mask == 4 and [outcome(other.table, (None, bit)) for bit in (0, 1)] == [None, None]


def random_known(chosen: random.Random) -> Known:
    kind = chosen.randrange(5)
    if kind == 0:
        return None
    if kind == 1:
        return constant(chosen.choice(CONSTANTS))
    if kind == 2:
        return UNIFORM
    factor = chosen.choice([1, 2, 4, 12, 16, 64, 1024, -4])
    line = sum_of([(Varying.LANE, factor), *([(Varying.X, 128)] if kind == 3 else [])])
    return Number(line.terms, chosen.choice([None, 0, chosen.choice(CONSTANTS)]))


def value_of(known: Known, lane: int, x: int, shared: int) -> int:
    """One choice of what is not known: ``shared`` is the same in all lanes."""
    if isinstance(known, Number):
        at = {Varying.LANE: lane, Varying.X: x, Varying.Y: 0, Varying.Z: 0}
        start = shared if known.constant is None else known.constant
        return (start + sum(factor * at[what] for what, factor in known.terms)) & NUMBER
    return known[lane] if known is not None else OTHER.getrandbits(32)


@pytest.mark.parametrize(("name", "wave_size"), TARGETS[:3])
def test_what_is_known_of_all_lanes_holds_in_each(name: str, wave_size: int) -> None:
    isa, told = instruction_set(target(name), wave_size), 0
    chosen = random.Random(2)
    for inst in random_instructions(isa, OpFlag.VALU, 2, 12):
        given: dict[Dword, Known] = {}

        def read(file: RegFile, index: int, given: dict[Dword, Known] = given) -> Known:
            if (file, index) not in given:
                known = random_known(chosen)
                scalar = chosen.choice([UNIFORM, constant(chosen.choice(CONSTANTS))])
                given[file, index] = scalar if file is RegFile.SGPR else known
            return given[file, index]

        claims = {place: known for place, known in evaluate(inst, read).items() if known is not None}
        if claims:
            check_claims(inst, given, claims, chosen)
            told += any(isinstance(known, tuple) and known != UNIFORM for known in claims.values())
    assert told > 50


def check_claims(inst: Inst, given: dict[Dword, Known], claims: dict[Dword, Known], chosen: random.Random) -> None:
    """With values instead of what is unknown the meaning gives what was claimed, alike in all lanes."""
    shared = {place: chosen.getrandbits(32) for place in given}
    unknown: dict[Dword, set[int]] = {}
    for lane, x in ((0, 5), (1, 900), (7, 7), (30, 1023)):
        values = {place: value_of(known, lane, x, shared[place]) for place, known in given.items()}
        after = evaluate(inst, lambda file, index, values=values: constant(values[file, index]))
        for place, claim in claims.items():
            found = after.get(place)
            if not isinstance(found, Number) or found.constant is None:
                continue  # floats: uniform operands give uniform results, and nothing more is claimed
            rest = found.constant - value_of(claim, lane, x, 0) & NUMBER
            if isinstance(claim, Number) and claim.constant is None:
                unknown.setdefault(place, set()).add(rest)
            else:
                assert rest == 0, inst
    assert all(len(rests) == 1 for rests in unknown.values()), inst
