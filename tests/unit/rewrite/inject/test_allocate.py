"""Groups, pins and pools: where a fragment's registers go."""

from __future__ import annotations

import pytest

from luthier_py.base.errors import Location, OutOfRegisters
from luthier_py.isa import VCC, RegFile, RegSet, instruction_set, sgpr, target, vgpr
from luthier_py.isa.encoding.legal import why_illegal
from luthier_py.rewrite.inject.allocate import Pin, Pool, fragment_groups, place
from luthier_py.rewrite.inject.fragment import general_registers

ISA = instruction_set(target("gfx90a"))
GENERAL = general_registers(ISA)


def pool(*regs):
    return Pool(RegSet.of(*regs), lambda: Location("k"))


def registers(instrs):
    reads, writes = RegSet(), RegSet()
    for inst in instrs:
        reads, writes = reads | inst.reads, writes | inst.writes
    return (reads | writes) & GENERAL, writes & GENERAL


def test_pool_takes_the_lowest_aligned_run():
    free = pool(sgpr(3, 2), sgpr(8, 2), vgpr(7))
    assert free.take(RegFile.SGPR, 2) == sgpr(8, 2)  # s[3:4] is not even
    assert free.take(RegFile.SGPR) == sgpr(3)
    assert free.take(RegFile.VGPR) == vgpr(7)
    with pytest.raises(OutOfRegisters, match="kernel k"):
        free.take(RegFile.SGPR, 2)


def test_registers_of_one_tuple_stay_together():
    code = [ISA.make("s_mov_b64", sgpr(0, 2), 0), ISA.make("s_mov_b32", sgpr(4), sgpr(1))]
    groups = fragment_groups(code, [], GENERAL)
    assert [(g.low, g.high) for g in groups] == [(0, 2), (4, 5)]
    used, written = registers(code)
    placed = place(groups, used, written, [], pool(sgpr(10, 8)))
    pair, lone = placed(sgpr(0, 2)), placed(sgpr(4))
    assert pair.index % 2 == 0 and not RegSet.of(pair).overlaps(RegSet.of(lone))
    assert placed(sgpr(1)).index == pair.index + 1


def test_special_registers_are_never_renamed():
    code = [ISA.make("v_cmp_eq_u32_e32", sgpr(VCC, 2), vgpr(0), vgpr(1))]
    assert all(g.file is RegFile.VGPR for g in fragment_groups(code, [], GENERAL))


def test_a_read_only_argument_is_used_where_it_lives():
    code = [ISA.make("s_add_u32", sgpr(2), sgpr(0), 1)]
    used, written = registers(code)
    pin = Pin(sgpr(0), sgpr(30), writable=False)
    placed = place(fragment_groups(code, [sgpr(0)], GENERAL), used, written, [pin], pool(sgpr(8, 4)))
    assert placed(sgpr(0)) == sgpr(30)


def test_an_argument_that_is_overwritten_is_copied_unless_its_home_gets_the_result():
    code = [ISA.make("s_add_u32", sgpr(0), sgpr(0), 1)]
    used, written = registers(code)
    groups = lambda: fragment_groups(code, [sgpr(0)], GENERAL)  # noqa: E731
    kept = place(groups(), used, written, [Pin(sgpr(0), sgpr(30), writable=False)], pool(sgpr(8, 4)))
    assert kept(sgpr(0)) == sgpr(8)
    both = [Pin(sgpr(0), sgpr(30), writable=True), Pin(sgpr(0), sgpr(30), writable=True)]
    assert place(groups(), used, written, both, pool(sgpr(8, 4)))(sgpr(0)) == sgpr(30)


def test_two_groups_never_share_a_home():
    code = [ISA.make("s_add_u32", sgpr(4), sgpr(0), sgpr(2))]
    used, written = registers(code)
    pins = [Pin(sgpr(0), sgpr(30), False), Pin(sgpr(2), sgpr(30), False)]
    placed = place(fragment_groups(code, [sgpr(0), sgpr(2)], GENERAL), used, written, pins, pool(sgpr(8, 4)))
    assert len({placed(sgpr(i)) for i in (0, 2, 4)}) == 3


def test_a_misaligned_home_is_not_granted():
    code = [ISA.make("s_mov_b64", sgpr(2, 2), sgpr(0, 2))]
    used, written = registers(code)
    placed = place(
        fragment_groups(code, [], GENERAL), used, written, [Pin(sgpr(0, 2), sgpr(31, 2), False)], pool(sgpr(8, 8))
    )
    assert placed(sgpr(0, 2)) == sgpr(8, 2)


def test_tuples_at_odd_registers_do_not_swallow_their_neighbours():
    """Targets without aligned VGPR tuples: v[1:2] beside v0."""
    isa = instruction_set(target("gfx908"))
    code = [isa.make("global_load_dwordx2", vgpr(1, 2), vgpr(1, 2), "off"), isa.make("v_mov_b32", vgpr(0), 0)]
    groups = fragment_groups(code, [], GENERAL)
    assert [(g.low, g.high) for g in groups] == [(0, 1), (1, 3)]
    used, written = registers(code)
    placed = place(groups, used, written, [], pool(vgpr(20, 8)))
    assert not RegSet.of(placed(vgpr(0))).overlaps(RegSet.of(placed(vgpr(1, 2))))
    assert placed(vgpr(1, 2)).index % 2 == 1  # as LLVM had it


def test_a_home_is_not_granted_where_its_neighbours_are_not_free():
    code = [ISA.make("s_mov_b64", sgpr(2, 2), sgpr(0, 2))]
    used, written = registers(code)
    placed = place(fragment_groups(code, [], GENERAL), used, written, [Pin(sgpr(0), sgpr(30), False)], pool(sgpr(8, 8)))
    assert placed(sgpr(0, 2)) == sgpr(8, 2)  # s31 is somebody's


def test_four_scalars_are_aligned_to_four():
    assert pool(sgpr(2, 4), sgpr(8, 4)).take(RegFile.SGPR, 4) == sgpr(8, 4)
    assert pool(vgpr(2, 4), vgpr(8, 4)).take(RegFile.VGPR, 4) == vgpr(2, 4)


@pytest.mark.parametrize("free", range(1, 1 << 4))
def test_halves_of_dual_instructions_keep_their_banks(free: int) -> None:
    """Whichever registers are free: what LLVM or an author has chosen reads from different banks."""
    isa = instruction_set(target("gfx1100"))
    insts = [isa.parse("v_dual_mul_f32 v0, v1, v2 :: v_dual_add_f32 v5, v4, v7")]
    general = RegSet.by_file(vgpr=(1 << 256) - 1)
    registers = RegSet.by_file(vgpr=sum(1 << k for k in range(10, 120) if free >> k % 4 & 1 or k > 60))
    groups = fragment_groups(insts, [], general)
    placement = place(groups, insts[0].named, insts[0].writes, [], Pool(registers, Location))
    made = isa.with_registers(insts[0], lambda operand: placement(operand.reg).index)
    assert made.raw != insts[0].raw and why_illegal(isa.target, made) is None
