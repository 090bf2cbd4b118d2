"""Lanes that read other lanes, registers that M0 names, skipped vector code, and counters in LDS: against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from waves import FULL, ISA, run

from luthier_py.emulator.records.layout import Fault, Status
from luthier_py.isa import EXEC, M0, VCC, instruction_set, sgpr, target, vgpr

RDNA = instruction_set(target("gfx1100"), 64)
LANES = np.arange(64, dtype=np.uint32)
DATA = (LANES * 2654435761 + 12345).astype(np.uint32)
OLD = np.full(64, 0xAAAAAAAA, np.uint32)
PARTIAL = 0x8F0F_FFFF_1248_FFF1


def active(mask: int) -> np.ndarray:
    return np.array([mask >> lane & 1 for lane in range(64)], bool)


@pytest.mark.parametrize("fetch", (0, 1))
@pytest.mark.parametrize("bound", (0, 1))
@pytest.mark.parametrize("name, other", (("v_permlane16_b32", 0), ("v_permlanex16_b32", 16)))
def test_lanes_of_a_row(name: str, other: int, fetch: int, bound: int) -> None:
    selectors = 0x0FEDCBA987654321 * 3 % 2**64
    inst = RDNA.make(name, vgpr(2), vgpr(1), sgpr(4), sgpr(5), src0_modifiers=4 * fetch, src1_modifiers=4 * bound)
    state = run([inst], isa=RDNA, vgprs={1: DATA, 2: OLD}, sgprs={4: selectors & 0xFFFFFFFF, 5: selectors >> 32},
                exec_mask=PARTIAL)
    giver = (LANES & ~np.uint32(15)) ^ other | [selectors >> 4 * (lane % 16) & 15 for lane in range(64)]
    on = active(PARTIAL)
    reads = on[giver] | bool(fetch)
    expected = np.where(reads, DATA[giver], 0 if bound else OLD)
    np.testing.assert_array_equal(state.vgpr(2), np.where(on, expected, OLD))
    assert not reads[on].all() or fetch


def test_the_other_half_of_a_wave() -> None:
    state = run([RDNA.make("v_permlane64_b32", vgpr(2), vgpr(1))], isa=RDNA, vgprs={1: DATA, 2: OLD}, exec_mask=PARTIAL)
    np.testing.assert_array_equal(state.vgpr(2), np.where(active(PARTIAL), DATA[LANES ^ 32], OLD))


def test_swizzle_for_fourier_transforms() -> None:
    """With no bit kept it reverses the bits of the lane's number in 32, with all it does nothing."""
    for kept in (0, 31):
        state = run([ISA.make("ds_swizzle_b32", vgpr(2), vgpr(1), offset=0xE000 | kept)], vgprs={1: DATA})
        backwards = np.array([lane & 32 | int(f"{lane & 31:05b}"[::-1], 2) for lane in range(64)])
        np.testing.assert_array_equal(state.vgpr(2), DATA if kept else DATA[backwards])


@pytest.mark.parametrize("name, source, target_, m0", (
    ("v_movrels_b32", 17, 5, 10), ("v_movreld_b32", 7, 15, 10), ("v_movrelsd_b32", 17, 15, 10),
    ("v_movrelsd_2_b32", 17, 25, 20 << 16 | 10),
))
def test_moves_relative_to_m0(name: str, source: int, target_: int, m0: int) -> None:
    """The examples of the manual (RDNA 3 ISA, 16.8): v5, v7 in the encoding."""
    state = run([RDNA.make(name, vgpr(5), vgpr(7))], isa=RDNA, vgprs={source: DATA, target_: OLD}, sgprs={M0: m0},
                exec_mask=PARTIAL)
    np.testing.assert_array_equal(state.vgpr(target_), np.where(active(PARTIAL), DATA, OLD))


def test_swap_relative_to_m0() -> None:
    state = run([RDNA.make("v_swaprel_b32", vgpr(5), vgpr(7))], isa=RDNA, vgprs={17: DATA, 25: OLD},
                sgprs={M0: 20 << 16 | 10}, exec_mask=PARTIAL)
    on = active(PARTIAL)
    np.testing.assert_array_equal(state.vgpr(25), np.where(on, DATA, OLD))
    np.testing.assert_array_equal(state.vgpr(17), np.where(on, OLD, DATA))


@pytest.mark.parametrize("name, sign", (("ds_append", 1), ("ds_consume", -1)))
def test_counters_in_lds(name: str, sign: int) -> None:
    """Every active lane sees what the count was before any of them; none at all leaves it alone."""
    for mask in (FULL, PARTIAL, 0):
        lds = np.zeros(256, np.uint8)
        lds.view(np.uint32)[7] = 100
        state = run([ISA.make(name, vgpr(2), offset=12)], vgprs={2: OLD}, lds=lds, sgprs={M0: 16}, exec_mask=mask)
        assert lds.view(np.uint32)[7] == 100 + sign * mask.bit_count()
        np.testing.assert_array_equal(state.vgpr(2), np.where(active(mask), 100, OLD))


SKIPPED = (
    ISA.make("v_mov_b32_e32", vgpr(2), 1),
    ISA.make("v_cmp_eq_u32_e32", sgpr(VCC, 2), vgpr(1), vgpr(1)),
    ISA.make("v_readfirstlane_b32", sgpr(8), vgpr(1)),
    ISA.make("ds_write_b32", vgpr(3), vgpr(1)),
)


@pytest.mark.parametrize("bit", (3, 4))
def test_skipped_vector_code(bit: int) -> None:
    """S_SETVSKIP takes one bit of a register; scalar code goes on, and so does vector code after the next one."""
    code = [ISA.make("s_setvskip", sgpr(4), bit), *SKIPPED, ISA.make("s_mov_b32", sgpr(9), 5),
            ISA.make("s_setvskip", 0, 0), ISA.make("v_mov_b32_e32", vgpr(4), sgpr(9))]
    lds = np.zeros(256, np.uint8)
    state = run(code, vgprs={1: DATA, 2: OLD, 3: LANES * 4}, sgprs={4: 1 << 3, 8: 77}, lds=lds, exec_mask=FULL, vcc=6)
    assert state.status is Status.JUMP
    skips = bit == 3
    np.testing.assert_array_equal(state.vgpr(2), OLD if skips else np.ones(64))
    assert state.vcc == (6 if skips else FULL) and state.sgpr(8) == (77 if skips else DATA[0])
    np.testing.assert_array_equal(lds.view(np.uint32), np.zeros(64) if skips else DATA)
    assert state.sgpr(9) == 5 and (state.vgpr(4) == 5).all() and state.sgpr(EXEC, 2) == FULL


def test_a_function_is_not_left_while_it_skips() -> None:
    state = run([ISA.make("s_setvskip", 1, 0)])
    assert state.status is Status.FAULT and state.fault()[0] == Fault.SKIPS
