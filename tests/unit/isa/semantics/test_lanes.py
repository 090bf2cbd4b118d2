"""Moves between lanes and registers: DPP, lane access, permutes, indexed registers; MODE inside a function."""

from __future__ import annotations

import numpy as np
import pytest
from waves import FULL, ISA, MODE, run

from luthier_py.base.errors import Unsupported
from luthier_py.emulator.instructions.crosslane import swizzle_sources
from luthier_py.isa import EXEC, M0, VCC, agpr, sgpr, vgpr

LANES = np.arange(64, dtype=np.uint32)
RNG = np.random.default_rng(7)
WORDS = RNG.integers(0, 1 << 32, (8, 64), dtype=np.uint64).astype(np.uint32)
PARTIAL = 0x0F0F_FFFF_1248_FFF1


def lanes_of(mask):
    return (np.uint64(mask) >> np.arange(64, dtype=np.uint64)) & np.uint64(1) == 1


def dpp_sources(control):
    """For each lane the lane it reads (AMD's "Data Parallel Primitives"), -1 for none."""
    def source(lane):
        row, place = lane // 16 * 16, lane % 16
        amount = control & 15
        if control <= 0xFF:
            return lane // 4 * 4 + (control >> 2 * (lane % 4) & 3)
        kind = control >> 4
        inside = {0x10: place + amount, 0x11: place - amount, 0x12: (place - amount) % 16, 0x15: amount}.get(kind)
        if control == 0x140:
            inside = 15 - place
        elif control == 0x141:
            inside = place // 8 * 8 + 7 - place % 8
        if inside is not None:
            return row + inside if 0 <= inside < 16 else -1
        return {0x130: lane + 1 if lane < 63 else -1, 0x134: (lane + 1) % 64, 0x138: lane - 1, 0x13C: (lane - 1) % 64,
                0x142: row - 1, 0x143: 31 if lane >= 32 else -1}[control]

    return np.array([source(lane) for lane in range(64)])


CONTROLS = [
    0x00,
    0x1B,
    0xE4,
    0xB1,
    0x101,
    0x10F,
    0x111,
    0x118,
    0x121,
    0x12C,
    0x130,
    0x134,
    0x138,
    0x13C,
    0x140,
    0x141,
    0x142,
    0x143,
    0x150,
    0x15A,
]


@pytest.mark.parametrize("mask", [FULL, PARTIAL])
@pytest.mark.parametrize("bound", [0, 1])
def test_dpp(mask, bound):
    """Lanes without a valid, active source are left alone, or read 0 with bound_ctrl."""
    code = []
    for i, control in enumerate(CONTROLS):
        code += [
            ISA.make("v_mov_b32_e32", vgpr(8 + i), 99),
            ISA.make(
                "v_add_u32_dpp",
                vgpr(8 + i),
                vgpr(0),
                vgpr(1),
                dpp_ctrl=control,
                row_mask=0xF,
                bank_mask=0xF,
                bound_ctrl=bound,
            ),
        ]
    state = run(code, vgprs={0: WORDS[0], 1: WORDS[1]}, exec_mask=mask)
    active = lanes_of(mask)
    for i, control in enumerate(CONTROLS):
        sources = dpp_sources(control)
        valid = (sources >= 0) & active[sources]
        value = np.where(valid, WORDS[0][sources], 0) + WORDS[1]
        written = active & (valid | bool(bound))
        expected = np.where(written, value, np.where(active, 99, 0))
        np.testing.assert_array_equal(state.vgpr(8 + i), expected, hex(control))


def test_dpp_masks():
    state = run(
        [ISA.make("v_mov_b32_dpp", vgpr(4), vgpr(0), dpp_ctrl=0xE4, row_mask=0b1010, bank_mask=0b0110, bound_ctrl=1)],
        vgprs={0: WORDS[0], 4: WORDS[1]},
    )
    chosen = ((LANES >> 4) & 1 == 1) & np.isin((LANES >> 2) & 3, (1, 2))
    np.testing.assert_array_equal(state.vgpr(4), np.where(chosen, WORDS[0], WORDS[1]))


def test_dpp_chain_inside_a_strip():
    """A row sum by four shifts: each reads what the one before wrote in other lanes."""
    code = []
    for amount in 1, 2, 4, 8:
        code.append(
            ISA.make(
                "v_add_u32_dpp",
                vgpr(0),
                vgpr(0),
                vgpr(0),
                dpp_ctrl=0x110 | amount,
                row_mask=0xF,
                bank_mask=0xF,
                bound_ctrl=1,
            )
        )
    state = run(code, vgprs={0: LANES})
    np.testing.assert_array_equal(state.vgpr(0), np.cumsum(LANES.reshape(4, 16), axis=1, dtype=np.uint32).reshape(64))


def test_lane_access():
    state = run([
        ISA.make("v_readlane_b32", sgpr(4), vgpr(0), 37), ISA.make("v_readlane_b32", sgpr(5), vgpr(0), sgpr(10)),
        ISA.make("v_readfirstlane_b32", sgpr(6), vgpr(0)), ISA.make("v_writelane_b32", vgpr(1), sgpr(11), 3),
        ISA.make("v_add_u32_e32", vgpr(2), 1, vgpr(1)), ISA.make("s_mov_b64", sgpr(EXEC, 2), 0),
        ISA.make("v_readfirstlane_b32", sgpr(7), vgpr(0)),
    ], vgprs={0: WORDS[0], 1: WORDS[1]}, exec_mask=0xFF00, sgprs={10: 64 + 5, 11: 1234})
    assert [state.sgpr(i) for i in (4, 5, 6, 7)] == [WORDS[0][i] for i in (37, 5, 8, 0)]
    written = WORDS[1].copy()
    written[3] = 1234
    np.testing.assert_array_equal(state.vgpr(1), written)
    np.testing.assert_array_equal(state.vgpr(2)[8:16], written[8:16] + 1)


def test_counting_lanes():
    state = run([
        ISA.make("v_mbcnt_lo_u32_b32", vgpr(0), -1, 0), ISA.make("v_mbcnt_hi_u32_b32", vgpr(1), -1, vgpr(0)),
        ISA.make("v_mbcnt_lo_u32_b32", vgpr(2), sgpr(4), 7), ISA.make("v_mbcnt_hi_u32_b32", vgpr(3), sgpr(5), vgpr(2)),
    ], sgprs={4: 0xF0F0F0F0, 5: 0x12345678})
    np.testing.assert_array_equal(state.vgpr(1), LANES)
    mask = 0x12345678_F0F0F0F0
    np.testing.assert_array_equal(state.vgpr(3), [7 + (mask & (1 << i) - 1).bit_count() for i in range(64)])


@pytest.mark.parametrize("mask", [FULL, PARTIAL])
def test_permutes(mask):
    active = lanes_of(mask)
    addresses = RNG.integers(0, 1 << 12, 64).astype(np.uint32)
    unique = RNG.permutation(64).astype(np.uint32) * 4
    state = run(
        [
            ISA.make("ds_bpermute_b32", vgpr(4), vgpr(0), vgpr(1), offset=8),
            ISA.make("ds_permute_b32", vgpr(5), vgpr(2), vgpr(1)),
        ],
        vgprs={0: addresses, 1: WORDS[0], 2: unique},
        exec_mask=mask,
    )
    givers = (addresses + 8) // 4 % 64
    np.testing.assert_array_equal(state.vgpr(4), np.where(active, np.where(active[givers], WORDS[0][givers], 0), 0))
    sent = np.zeros(64, np.uint32)
    sent[(unique // 4)[active]] = WORDS[0][active]
    np.testing.assert_array_equal(state.vgpr(5), np.where(active, sent, 0))


def test_swizzles():
    patterns = [0x8000 | 0x1B, 0x041F, 0x7C1F, 0x00E0 | 0x0003, 0xC000 | 5 << 5, 0xC000 | 1 << 10 | 3 << 5 | 0x10]
    state = run(
        [ISA.make("ds_swizzle_b32", vgpr(4 + i), vgpr(0), offset=pattern) for i, pattern in enumerate(patterns)],
        vgprs={0: WORDS[0]},
        exec_mask=PARTIAL,
    )
    active = lanes_of(PARTIAL)
    for i, pattern in enumerate(patterns):
        sources = np.array(swizzle_sources(pattern, 64))
        expected = np.where(active & active[sources], WORDS[0][sources], 0)
        np.testing.assert_array_equal(state.vgpr(4 + i), expected, hex(pattern))
    assert swizzle_sources(0x041F, 64)[:4] == [1, 0, 3, 2], "xor with 1"
    assert swizzle_sources(0xC000 | 5 << 5, 64)[:2] == [5, 6], "rotation by 5"


def test_accumulators():
    state = run([ISA.make("v_accvgpr_write_b32", agpr(3), vgpr(0)), ISA.make("v_accvgpr_read_b32", vgpr(4), agpr(3)),
                 ISA.make("v_accvgpr_mov_b32", agpr(9), agpr(3))], vgprs={0: WORDS[0]}, exec_mask=PARTIAL)
    expected = np.where(lanes_of(PARTIAL), WORDS[0], 0)
    for row in (state.agpr(3), state.vgpr(4), state.agpr(9)):
        np.testing.assert_array_equal(row, expected)


def test_indexed_registers():
    """Sources and destinations relative to M0; a fixed index past the file wraps inside it."""
    state = run(
        [
            ISA.make("s_set_gpr_idx_on", sgpr(4), 1),
            ISA.make("v_mov_b32_e32", vgpr(10), vgpr(0)),
            ISA.make("s_set_gpr_idx_off"),
            ISA.make("s_set_gpr_idx_on", sgpr(5), 8),
            ISA.make("v_add_u32_e32", vgpr(11), 5, vgpr(1)),
            ISA.make("s_set_gpr_idx_off"),
            ISA.make("v_mov_b32_e32", vgpr(20), vgpr(13)),
            ISA.make("s_mov_b32", sgpr(M0), 3),
            ISA.make("s_movrels_b32", sgpr(8), sgpr(4)),
            ISA.make("s_movreld_b32", sgpr(9), 77),
            ISA.make("s_mov_b32", sgpr(20), sgpr(12)),
        ],
        vgprs={i: WORDS[i] for i in range(8)},
        sgprs={4: 3, 5: 2, 7: 4242},
        exec_mask=PARTIAL,
    )
    active = lanes_of(PARTIAL)
    np.testing.assert_array_equal(state.vgpr(10), np.where(active, WORDS[3], 0))
    np.testing.assert_array_equal(state.vgpr(13), np.where(active, WORDS[1] + 5, 0))
    np.testing.assert_array_equal(state.vgpr(20), state.vgpr(13))
    assert (state.sgpr(8), state.sgpr(12), state.sgpr(20)) == (4242, 77, 77)


def test_mode_changes_inside_a_function():
    """s_setreg of the denormal bits takes effect from the next instruction on."""
    tiny = np.full(64, 1e-40, np.float32)
    change = ISA.make("s_setreg_imm32_b32", 0x901, 3)  # hwreg(HW_REG_MODE, 4, 2)
    state = run(
        [
            ISA.make("v_add_f32_e32", vgpr(1), vgpr(0), vgpr(0)),
            change,
            ISA.make("v_add_f32_e32", vgpr(2), vgpr(0), vgpr(0)),
            ISA.make("s_getreg_b32", sgpr(4), 0x901),
            ISA.make("s_setreg_imm32_b32", 0x901, 0),
        ],
        vgprs={0: tiny},
        mode=MODE & ~0x30,
    )
    assert not state.vgpr(1, np.float32).any()
    np.testing.assert_array_equal(state.vgpr(2, np.float32), tiny + tiny)
    assert state.sgpr(4) == 3


@pytest.mark.parametrize("code", [
    [ISA.make("s_setreg_imm32_b32", 0x801 | 0x800, 1)], [ISA.make("s_getreg_b32", sgpr(0), 0x802)],
    [ISA.make("s_set_gpr_idx_on", sgpr(4), 1)],
])  # fmt: skip
def test_what_cannot_be_emulated_is_named(code):
    with pytest.raises(Unsupported):
        run(code)


def test_vcc_as_a_plain_operand():
    state = run([ISA.make("v_cmp_gt_u32_e32", sgpr(VCC, 2), 5, vgpr(0)), ISA.make("v_mov_b32_e32", vgpr(1), sgpr(VCC)),
                 ISA.make("s_bcnt1_i32_b64", sgpr(4), sgpr(VCC, 2))], vgprs={0: LANES})
    assert set(state.vgpr(1)) == {0x1F}
    assert state.sgpr(4) == 5
