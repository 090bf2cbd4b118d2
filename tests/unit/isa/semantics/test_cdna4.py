"""What CDNA 4 adds, against NumPy: truth tables, bfloat16, minimum with NaNs, swapped rows, transposed loads."""

from __future__ import annotations

import numpy as np
import pytest
from waves import FULL, run

from luthier_py.isa import instruction_set, target

ISA = instruction_set(target("gfx950"))
RNG = np.random.default_rng(11)
LANES = np.arange(64)
A, B, C = (RNG.integers(0, 1 << 32, 64, dtype=np.uint64).astype(np.uint32) for _ in range(3))
HALVES = 0x0F0F_FFFF_1248_FFF1
SPECIAL = np.array([0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00001, 0x7F800001, 0x3F808000, 0x3F818000, 0x7F7FFFFF],
                   np.uint32)


def words(kind=None):
    """Random floats' bits with special ones among them."""
    values = RNG.normal(size=64).astype(np.float32).view(np.uint32)
    values[: len(SPECIAL)] = RNG.permutation(SPECIAL)
    return values if kind is None else values.view(kind)


def after(text, *registers, **setup):
    """Rows 8, 9, ... after one instruction."""
    state = run([ISA.parse(text)], isa=ISA, **setup)
    return [state.vgpr(register) for register in registers]


@pytest.mark.parametrize("table", [0x6C, 0xFE, 0x01, 0x80, 0xE8, 0x00, 0xFF, *RNG.integers(0, 256, 8).tolist()])
def test_truth_tables(table):
    (found,) = after(f"v_bitop3_b32 v8, v0, v1, v2 bitop3:{table}", 8, vgprs={0: A, 1: B, 2: C})
    expected = np.zeros(64, np.uint32)
    for bit in range(32):
        index = (A >> bit & 1) << 2 | (B >> bit & 1) << 1 | (C >> bit & 1)
        expected |= (np.uint32(table) >> index & 1) << np.uint32(bit)
    assert np.array_equal(found, expected)
    (half,) = after(f"v_bitop3_b16 v8, v0, v1, v2 bitop3:{table}", 8, vgprs={0: A, 1: B, 2: C, 8: C})
    assert np.array_equal(half & 0xFFFF, expected & 0xFFFF)


def bf16(bits):
    """To nearest, ties to even; NaNs quiet."""
    nan = np.isnan(bits.view(np.float32))
    rounded = (bits.astype(np.uint64) + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(nan, bits >> 16 | 0x40, rounded).astype(np.uint32)


def test_conversions():
    a, b = words(), words()
    (packed,) = after("v_cvt_pk_bf16_f32 v8, v0, v1", 8, vgprs={0: a, 1: b})
    assert np.array_equal(packed, bf16(b) << 16 | bf16(a))
    (wide,) = after("v_cvt_f32_bf16 v8, v0", 8, vgprs={0: A})
    assert np.array_equal(wide, A << 16)
    a, b = (RNG.normal(size=64).astype(np.float32) for _ in range(2))
    (packed,) = after("v_cvt_pk_f16_f32 v8, v0, v1", 8, vgprs={0: a.view(np.uint32), 1: b.view(np.uint32)})
    halves = [x.astype(np.float16).view(np.uint16).astype(np.uint32) for x in (a, b)]
    assert np.array_equal(packed, halves[1] << 16 | halves[0])


@pytest.mark.parametrize("name,of", [("minimum3", np.minimum), ("maximum3", np.maximum)])
def test_nans_win(name, of):
    a, b, c = (words(np.float32) for _ in range(3))
    rows = {number: value.view(np.uint32) for number, value in enumerate((a, b, c))}
    (found,) = after(f"v_{name}_f32 v8, v0, v1, v2", 8, vgprs=rows)
    np.testing.assert_array_equal(found.view(np.float32), of(of(a, b), c))
    zeros = {0: np.full(64, 0x80000000, np.uint32), 1: np.zeros(64, np.uint32), 2: np.zeros(64, np.uint32)}
    (found,) = after(f"v_{name}_f32 v8, v0, v1, v2", 8, vgprs=zeros)
    assert set(found.tolist()) == {0x80000000 if name == "minimum3" else 0}


def test_random_numbers_and_packed_shifts():
    (found,) = after("v_prng_b32 v8, v0", 8, vgprs={0: A})
    assert np.array_equal(found, A << 1 ^ np.where(A >> 31, 0xC5, 0).astype(np.uint32))
    for name, low, high in (("i8", -128, 127), ("u8", 0, 255)):
        (found,) = after(f"v_ashr_pk_{name}_i32 v8, v0, v1, 22", 8, vgprs={0: A, 1: B})
        first, second = (np.clip(x.view(np.int32) >> 22, low, high) & 0xFF for x in (A, B))
        assert np.array_equal(found & 0xFFFF, (first | second << 8).astype(np.uint32))


@pytest.mark.parametrize("size", [16, 32])
@pytest.mark.parametrize("mask", [FULL, HALVES])
@pytest.mark.parametrize("how", ["", " bound_ctrl:1", " fi:1"])
def test_rows_change_places(size, mask, how):
    found = after(f"v_permlane{size}_swap_b32 v0, v1{how}", 0, 1, vgprs={0: A, 1: B}, exec_mask=mask)
    active = [mask >> lane & 1 for lane in range(64)]
    expected = [A.copy(), B.copy()]
    for lane in range(64):
        for number, (own, other) in enumerate(((A, B), (B, A))):
            changes = lane // size % 2 != number
            giver = lane ^ size if changes else lane
            if active[lane] and (active[giver] or how):
                value = (other if changes else own)[giver]
                expected[number][lane] = value if active[giver] or "fi" in how else 0
    assert np.array_equal(found[0], expected[0]) and np.array_equal(found[1], expected[1])


@pytest.mark.parametrize("bits", [16, 8])
def test_transposed_loads(bits):
    """Each 16 lanes read rows of 16 elements, and get columns."""
    kind = {16: np.uint16, 8: np.uint8}[bits]
    height = 64 // bits
    tiles = RNG.integers(0, 1 << bits, (4, height, 16)).astype(kind)
    lds = np.concatenate([np.zeros(16, np.uint8), tiles.view(np.uint8).ravel()])
    addresses = (8 * LANES).astype(np.uint32)
    found = after(f"ds_read_b64_tr_b{bits} v[8:9], v0 offset:16", 8, 9, vgprs={0: addresses}, lds=lds)
    columns = np.ascontiguousarray(tiles.transpose(0, 2, 1)).reshape(64, height).view(np.uint32)
    assert np.array_equal(found[0], columns[:, 0]) and np.array_equal(found[1], columns[:, 1])


def test_scalars_in_a_truth_table():
    (found,) = after("v_bitop3_b32 v8, v0, s3, 1 bitop3:0xca", 8, vgprs={0: A}, sgprs={3: 0x12345678})
    assert np.array_equal(found, A & np.uint32(0x12345678) | ~A & np.uint32(1))
