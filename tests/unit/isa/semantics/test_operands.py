"""Operand modifiers: packed op_sel, mixed precision, halves of registers, SDWA."""

from __future__ import annotations

import numpy as np
import pytest
from waves import FULL, ISA, run

from luthier_py.isa import instruction_set, sgpr, target, vgpr

LANES = np.arange(64, dtype=np.uint32)
RNG = np.random.default_rng(7)
WORDS = RNG.integers(0, 1 << 32, (8, 64), dtype=np.uint64).astype(np.uint32)
HALVES = RNG.normal(size=(4, 64, 2)).astype(np.float16)
FLOATS = RNG.normal(size=(6, 64)).astype(np.float32)
PARTIAL = 0x0F0F_FFFF_1248_FFF1


def halves(i):
    return HALVES[i].view(np.uint32).reshape(64)


def picked(op_sel=0, op_sel_hi=0, neg_lo=0, neg_hi=0, destination=0, sources=3):
    """Modifier fields from the assembler's op_sel and neg masks, bit i for source i."""
    fields = {
        f"src{i}_modifiers": (neg_lo >> i & 1)
        | (neg_hi >> i & 1) << 1
        | (op_sel >> i & 1) << 2
        | (op_sel_hi >> i & 1) << 3
        for i in range(sources)
    }
    fields["src0_modifiers"] |= destination << 3
    return fields


def lanes_of(mask):
    return (np.uint64(mask) >> np.arange(64, dtype=np.uint64)) & np.uint64(1) == 1


def test_packed_halves_select():
    """Every combination of op_sel and op_sel_hi for two sources, with one sign flipped in each half."""
    code, expected = [], []
    a, b = HALVES[0], HALVES[1]
    for choice in range(16):
        low_a, low_b, high_a, high_b = (choice >> i & 1 for i in range(4))
        code.append(ISA.make("v_pk_add_f16", vgpr(4 + choice), vgpr(0), vgpr(1),
                             **picked(low_a | low_b << 1, high_a | high_b << 1, neg_lo=1, neg_hi=2, sources=2)))
        result = np.stack([-a[:, low_a] + b[:, low_b], a[:, high_a] - b[:, high_b]], axis=1)
        expected.append(result.view(np.uint32).reshape(64))
    state = run(code, vgprs={0: halves(0), 1: halves(1)})
    for choice in range(16):
        np.testing.assert_array_equal(state.vgpr(4 + choice), expected[choice], str(choice))


def test_packed_float_pairs():
    a, b, c = (FLOATS[2 * i : 2 * i + 2] for i in range(3))
    pairs = {2 * i: np.ascontiguousarray(x.T).view(np.uint64).reshape(64) for i, x in enumerate((a, b, c))}
    state = run([
        ISA.make("v_pk_fma_f32", vgpr(6, 2), vgpr(0, 2), vgpr(2, 2), vgpr(4, 2), **picked(0b001, 0b101)),
        ISA.make("v_pk_mul_f32", vgpr(8, 2), sgpr(4, 2), vgpr(2, 2), **picked(0, 0b11, sources=2)),
        ISA.make("v_pk_add_f32", vgpr(10, 2), vgpr(0, 2), vgpr(2, 2), **picked(0, 0b11, 2, 1, sources=2)),
        ISA.make("v_pk_mov_b32", vgpr(12, 2), vgpr(0, 2), vgpr(2, 2), **picked(0b01, sources=2)),
    ], vgprs=pairs, sgprs={4: int(np.float32(2.5).view(np.uint32)), 5: int(np.float32(-3).view(np.uint32))})

    def fused(x, y, z):
        return (x.astype(np.float64) * y + z).astype(np.float32)

    np.testing.assert_allclose(state.vgpr(6, np.float32), fused(a[1], b[0], c[0]), rtol=2e-7)
    np.testing.assert_allclose(state.vgpr(7, np.float32), fused(a[1], b[0], c[1]), rtol=2e-7)
    np.testing.assert_array_equal(state.vgpr(8, np.float32), np.float32(2.5) * b[0])
    np.testing.assert_array_equal(state.vgpr(9, np.float32), np.float32(-3) * b[1])
    np.testing.assert_array_equal(state.vgpr(10, np.float32), a[0] - b[0])
    np.testing.assert_array_equal(state.vgpr(11, np.float32), -a[1] + b[1])
    np.testing.assert_array_equal(state.vgpr(12, np.float32), a[1])
    np.testing.assert_array_equal(state.vgpr(13, np.float32), b[0])


def test_mixed_precision():
    """Each source is a float, or either half of a register, by op_sel_hi and op_sel."""
    state = run([
        ISA.make("v_fma_mix_f32", vgpr(4), vgpr(0), vgpr(1), vgpr(2), **picked(0b100, 0b101)),
        ISA.make("v_fma_mixlo_f16", vgpr(5), vgpr(0), vgpr(1), vgpr(2), **picked(0, 0b001)),
        ISA.make("v_fma_mixhi_f16", vgpr(6), vgpr(0), vgpr(1), vgpr(1), **picked(0b001, 0b001)),
    ], vgprs={0: halves(0), 1: FLOATS[0], 2: halves(1), 5: WORDS[0], 6: WORDS[1]})
    low, high = HALVES[0][:, 0].astype(np.float64), HALVES[0][:, 1].astype(np.float64)
    x = FLOATS[0].astype(np.float64)
    np.testing.assert_allclose(state.vgpr(4, np.float32), low * x + HALVES[1][:, 1], rtol=1e-6, atol=1e-6)
    mixed = (low * x + halves(1).view(np.float32)).astype(np.float32).astype(np.float16)
    np.testing.assert_array_equal(state.vgpr(5) & 0xFFFF, mixed.view(np.uint16))
    np.testing.assert_array_equal(state.vgpr(5) >> 16, WORDS[0] >> 16)
    np.testing.assert_array_equal(state.vgpr(6) & 0xFFFF, WORDS[1] & 0xFFFF)
    assert np.isclose(
        (state.vgpr(6) >> 16).astype(np.uint16).view(np.float16), high * x + x, rtol=2e-3, atol=1e-3
    ).all()


def test_constants_of_mixed_precision():
    """Of an f32 by op_sel_hi all 32 bits of a literal, and 1.0 is the f32; else they are an f16."""
    isa, literal = instruction_set(target("gfx1100"), 32), int(np.float32(1.4142135).view(np.uint32))
    as_f32, as_f16 = "000020cc {} 020a04", "000020cc {} 020a0c"  # v_fma_mix_f32 v0, CONSTANT, v1, v2
    x, y = FLOATS[0], FLOATS[1]
    for text, constant in ((as_f32.format("f2"), 1.0), (as_f16.format("f2"), 1.0), (as_f16.format("f7"), -4.0),
                           (as_f32.format("ff") + literal.to_bytes(4, "little").hex(), np.float32(1.4142135)),
                           (as_f16.format("ff") + "00410000", 2.5)):
        state = run([isa.decode(bytes.fromhex(text))], isa=isa,
                    vgprs={1: x.view(np.uint32), 2: y.view(np.uint32)})
        expected = (x.astype(np.float64) * constant + y).astype(np.float32)
        np.testing.assert_allclose(state.vgpr(0, np.float32)[:32], expected[:32], rtol=1e-6, atol=1e-7)


def test_results_in_half_a_register():
    """op_sel of VOP3 picks halves of sources, and of the destination, whose other half stays."""
    state = run([
        ISA.make("v_mad_u16", vgpr(4), vgpr(0), vgpr(1), vgpr(2), **picked(0b001, destination=1)),
        ISA.make("v_mad_u16", vgpr(5), vgpr(0), vgpr(1), vgpr(2), **picked(0b110)),
        ISA.make("v_add_u16_e32", vgpr(6), vgpr(0), vgpr(1)),
    ], vgprs={0: WORDS[0], 1: WORDS[1], 2: WORDS[2], 4: WORDS[4], 5: WORDS[5], 6: WORDS[6]})
    low, high = (lambda i: WORDS[i] & 0xFFFF), (lambda i: WORDS[i] >> 16)
    first = (high(0) * low(1) + low(2)) & 0xFFFF
    np.testing.assert_array_equal(state.vgpr(4), (WORDS[4] & 0xFFFF) | first << 16)
    second = (low(0) * high(1) + high(2)) & 0xFFFF
    np.testing.assert_array_equal(state.vgpr(5), (WORDS[5] & 0xFFFF0000) | second)
    np.testing.assert_array_equal(state.vgpr(6), (low(0) + low(1)) & 0xFFFF, "gfx9 clears the high half of e32 results")


@pytest.mark.parametrize(("name", "text", "low"), [
    ("gfx1100", "v_fmac_f16_e32 v4.h, v0.l, v1.h", False), ("gfx1100", "v_fmac_f16_e32 v4.l, v0.h, v1.l", True),
    ("gfx1201", "v_fmac_f16_e64 v4.h, v0.l, v1.h", False), ("gfx1250", "v_fmac_f16_e64 v4.l, v0.h, v1.l", True),
])
def test_half_a_register_is_added_to(name, text, low):
    """The half that the sum goes to, not always the lower one (RDNA 3 ISA, V_FMAC_F16: D.f16 is a source)."""
    isa = instruction_set(target(name), 32)
    state = run([isa.parse(text)], isa=isa, vgprs={0: halves(0), 1: halves(1), 4: halves(2)})
    old, expected = HALVES[2][:32], HALVES[2][:32].copy()
    place = 0 if low else 1
    a, b = HALVES[0][:32, int(low)], HALVES[1][:32, int(not low)]
    expected[:, place] = (a.astype(np.float64) * b + old[:, place]).astype(np.float16)
    np.testing.assert_array_equal(state.vgpr(4)[:32], expected.view(np.uint32).reshape(32))


def test_halves_change_places():
    isa = instruction_set(target("gfx1100"), 32)
    state = run([isa.parse("v_swap_b16 v4.h, v5.l")], isa=isa, vgprs={4: WORDS[4], 5: WORDS[5]})
    a, b = WORDS[4][:32], WORDS[5][:32]
    np.testing.assert_array_equal(state.vgpr(4)[:32], a & 0xFFFF | b << 16)
    np.testing.assert_array_equal(state.vgpr(5)[:32], b & 0xFFFF0000 | a >> 16)


SELECTS = [
    (0, 0xFF, 0),
    (1, 0xFF, 8),
    (2, 0xFF, 16),
    (3, 0xFF, 24),
    (4, 0xFFFF, 0),
    (5, 0xFFFF, 16),
    (6, 0xFFFFFFFF, 0),
]


def test_sdwa_sources():
    code, expected = [], []
    for select, mask, place in SELECTS:
        for extend in 0, 1:
            code.append(
                ISA.make(
                    "v_add_u32_sdwa",
                    vgpr(4 + len(expected)),
                    vgpr(0),
                    vgpr(1),
                    src0_sel=select,
                    src1_sel=6,
                    dst_sel=6,
                    src0_modifiers=16 * extend,
                )
            )
            value = WORDS[0] >> place & mask
            if extend and mask != 0xFFFFFFFF:
                bits = mask.bit_length()
                value = ((value ^ (1 << bits - 1)) - np.uint32(1 << bits - 1)).astype(np.uint32)
            expected.append(value + WORDS[1])
    state = run(code, vgprs={0: WORDS[0], 1: WORDS[1]})
    for i, value in enumerate(expected):
        np.testing.assert_array_equal(state.vgpr(4 + i), value, str(SELECTS[i // 2]))


def test_sdwa_destinations():
    code, expected = [], []
    for select, mask, place in SELECTS[:-1]:
        for unused in 0, 1, 2:
            target = 4 + len(expected)
            code += [
                ISA.make("v_mov_b32_e32", vgpr(target), vgpr(2)),
                ISA.make(
                    "v_add_u32_sdwa",
                    vgpr(target),
                    vgpr(0),
                    vgpr(1),
                    src0_sel=6,
                    src1_sel=6,
                    dst_sel=select,
                    dst_unused=unused,
                ),
            ]
            value = (WORDS[0] + WORDS[1]) & np.uint32(mask)
            placed = value << np.uint32(place)
            if unused == 1:
                bits = mask.bit_length()
                placed = (
                    ((value ^ (1 << bits - 1)) - np.uint32(1 << bits - 1)).astype(np.uint32) << np.uint32(place)
                ).astype(np.uint32)
            elif unused == 2:
                placed = (WORDS[2] & ~np.uint32(mask << place & 0xFFFFFFFF)) | placed
            expected.append(placed)
    state = run(code, vgprs={0: WORDS[0], 1: WORDS[1], 2: WORDS[2]}, exec_mask=FULL)
    for i, value in enumerate(expected):
        np.testing.assert_array_equal(state.vgpr(4 + i), value, str((SELECTS[i // 3], i % 3)))


def test_sdwa_floats_and_comparisons():
    state = run(
        [
            ISA.make(
                "v_mul_f32_sdwa",
                vgpr(4),
                vgpr(0),
                vgpr(1),
                src0_sel=6,
                src1_sel=6,
                dst_sel=6,
                src0_modifiers=2,
                src1_modifiers=1,
                clamp=0,
            ),
            ISA.make("v_cmp_lt_u32_sdwa", sgpr(8, 2), vgpr(2), vgpr(3), src0_sel=0, src1_sel=3),
        ],
        vgprs={0: FLOATS[0], 1: FLOATS[1], 2: WORDS[0], 3: WORDS[1]},
        exec_mask=PARTIAL,
    )
    active = lanes_of(PARTIAL)
    np.testing.assert_array_equal(state.vgpr(4, np.float32)[active], (np.abs(FLOATS[0]) * -FLOATS[1])[active])
    less = ((WORDS[0] & 0xFF) < (WORDS[1] >> 24)) & active
    assert state.sgpr(8, 2) == int(sum(int(flag) << i for i, flag in enumerate(less)))
