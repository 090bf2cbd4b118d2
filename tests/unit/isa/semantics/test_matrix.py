"""Matrix instructions against NumPy's matmul, with elements placed as AMD's lab notes on matrix cores say."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from matrix_places import BYTES, RNG, exact_values, place_source, result_place, values
from reference.small import FORMATS
from waves import ISA, run

from luthier_py.base.errors import Unsupported
from luthier_py.isa import agpr, instruction_set, target, vgpr

pytestmark = pytest.mark.usefixtures("compiled_fast")
# name, size, depth, blocks, elements of a lane, kind
SHAPES = [
    ("f32_32x32x1f32", 32, 1, 2, 1, "f32"),
    ("f32_32x32x2f32", 32, 2, 1, 1, "f32"), ("f32_16x16x1f32", 16, 1, 4, 1, "f32"),
    ("f32_16x16x4f32", 16, 4, 1, 1, "f32"), ("f32_4x4x1f32", 4, 1, 16, 1, "f32"),
    ("f32_32x32x4f16", 32, 4, 2, 4, "f16"),
    ("f32_32x32x8f16", 32, 8, 1, 4, "f16"), ("f32_16x16x4f16", 16, 4, 4, 4, "f16"),
    ("f32_16x16x16f16", 16, 16, 1, 4, "f16"), ("f32_4x4x4f16", 4, 4, 16, 4, "f16"),
    ("f32_32x32x2bf16", 32, 2, 2, 2, "bf16"),
    ("f32_32x32x4bf16", 32, 4, 1, 2, "bf16"), ("f32_16x16x8bf16", 16, 8, 1, 2, "bf16"),
    ("f32_16x16x2bf16", 16, 2, 4, 2, "bf16"), ("f32_4x4x2bf16", 4, 2, 16, 2, "bf16"),
    ("f32_32x32x4bf16_1k", 32, 4, 2, 4, "bf16"), ("f32_32x32x8bf16_1k", 32, 8, 1, 4, "bf16"),
    ("f32_16x16x4bf16_1k", 16, 4, 4, 4, "bf16"),
    ("f32_16x16x16bf16_1k", 16, 16, 1, 4, "bf16"), ("f32_4x4x4bf16_1k", 4, 4, 16, 4, "bf16"),
    ("i32_32x32x4i8", 32, 4, 2, 4, "i8"), ("i32_32x32x8i8", 32, 8, 1, 4, "i8"), ("i32_16x16x4i8", 16, 4, 4, 4, "i8"),
    ("i32_16x16x16i8", 16, 16, 1, 4, "i8"), ("i32_4x4x4i8", 4, 4, 16, 4, "i8"),
    ("f64_16x16x4f64", 16, 4, 1, 1, "f64"), ("f64_4x4x4f64", 4, 4, 4, 1, "f64"),
]  # fmt: skip
NEWER = {  # and the target that has them
    "gfx942": [
        ("i32_16x16x32_i8", 16, 32, 1, 8, "i8"), ("i32_32x32x16_i8", 32, 16, 1, 8, "i8"),
        ("f32_16x16x8_xf32", 16, 8, 1, 2, "xf32"), ("f32_32x32x4_xf32", 32, 4, 1, 2, "xf32"),
        ("f32_16x16x32_fp8_fp8", 16, 32, 1, 8, "fp8 fp8"), ("f32_32x32x16_bf8_fp8", 32, 16, 1, 8, "bf8 fp8"),
    ],
    "gfx950": [
        ("f32_16x16x32_fp8_bf8", 16, 32, 1, 8, "fp8 bf8"), ("f32_32x32x16_bf8_bf8", 32, 16, 1, 8, "bf8 bf8"),
        ("f32_16x16x32_f16", 16, 32, 1, 8, "f16"), ("f32_32x32x16_f16", 32, 16, 1, 8, "f16"),
        ("f32_16x16x32_bf16", 16, 32, 1, 8, "bf16"), ("f32_32x32x16_bf16", 32, 16, 1, 8, "bf16"),
        ("i32_16x16x64_i8", 16, 64, 1, 16, "i8"), ("i32_32x32x32_i8", 32, 32, 1, 16, "i8"),
    ],
}  # fmt: skip
@pytest.mark.parametrize("name,size,depth,blocks,per_lane,kind", SHAPES, ids=[shape[0] for shape in SHAPES])
@pytest.mark.parametrize("accumulators", [False, True])
def test_shape(name, size, depth, blocks, per_lane, kind, accumulators):
    check(ISA, name, size, depth, blocks, per_lane, kind, accumulators)


@pytest.mark.parametrize("gpu,shape", [(gpu, shape) for gpu, shapes in NEWER.items() for shape in shapes])
def test_newer_shape(gpu, shape):
    check(instruction_set(target(gpu)), *shape, accumulators=False)


def check(isa, name, size, depth, blocks, per_lane, kind, accumulators):
    kind, kind_of_b = (kind.split() * 2)[:2]
    a, b = values(kind, (blocks, size, depth)), values(kind_of_b, (blocks, size, depth))  # b: [block][column][k]
    out = {"i8": np.int32, "f64": np.float64}.get(kind, np.float32)
    c = RNG.integers(-1000, 1000, (blocks, size, size)).astype(out)
    registers = size * size * blocks // 64
    rows = np.zeros((registers, 64), out)
    for block, i, j in itertools.product(range(blocks), range(size), range(size)):
        lane, register = result_place(size, kind, i, j, block)
        rows[register, lane] = c[block, i, j]
    words = 2 if out is np.float64 else 1
    source_words = max(per_lane * BYTES[kind] // 4, 1)
    file = agpr if accumulators else vgpr
    bits = rows.view(np.uint64 if words == 2 else np.uint32)
    placed = {64 + words * r: bits[r] for r in range(registers)}
    sources = {
        first + number: words for first, matrix, kind in ((0, a, kind), (4, b, kind_of_b))
        for number, words in place_source(matrix, size, blocks, per_lane, kind).items()
    }  # fmt: skip
    whole = file(64, registers * words)
    state = run(
        [isa.make(f"v_mfma_{name}", whole, vgpr(0, source_words), vgpr(4, source_words), whole)],
        vgprs={**sources, **({} if accumulators else placed)},
        agprs=placed if accumulators else {},
        exec_mask=0,
        isa=isa,
    )
    exact = np.float64 if kind != "i8" else np.int64
    fnuz = isa.target.fnuz_floats
    factors = exact_values(a, kind, fnuz, exact), exact_values(b, kind_of_b, fnuz, exact)
    expected = c.astype(exact) + np.einsum("bik,bjk->bij", *factors)
    actual = np.zeros_like(expected)
    for block, i, j in itertools.product(range(blocks), range(size), range(size)):
        lane, register = result_place(size, kind, i, j, block)
        low = (state.agpr if accumulators else state.vgpr)(64 + words * register)[lane : lane + 1]
        if words == 2:
            high = (state.agpr if accumulators else state.vgpr)(65 + 2 * register)[lane : lane + 1]
            low = np.array([int(low[0]) | int(high[0]) << 32], np.uint64)
        actual[block, i, j] = low.view(out)[0]
    if kind == "i8":
        np.testing.assert_array_equal(actual, expected)
    else:
        np.testing.assert_allclose(
            actual, expected, rtol=1e-12 if kind == "f64" else 1e-5, atol=1e-12 if kind == "f64" else 1e-3
        )


@pytest.mark.parametrize("gpu, product, total", [("gfx90a", 0, 0), ("gfx942", 3, 5)])
@pytest.mark.parametrize("name, denormal, one", [("16x16x16f16", 3, 0x3C00), ("16x16x16bf16_1k", 3, 0x3F80)])
def test_denormals_of_half_matrices(gpu, product, total, name, denormal, one):
    """They are zeros on MI200 (MIOpen, "MI200 MFMA behavior specifics"); normal results of them cannot come back."""
    isa, empty = instruction_set(target(gpu)), np.zeros(64, np.uint32)
    unit = 1 << 16 if "bf16" in name else 2.0**-24
    as_f32 = np.uint32 if "bf16" in name else np.float32
    first = np.full(64, one, np.uint32)
    state = run([isa.make(f"v_mfma_f32_{name}", vgpr(8, 4), vgpr(0, 2), vgpr(4, 2), 0),
                 isa.make(f"v_mfma_f32_{name}", vgpr(16, 4), vgpr(2, 2), vgpr(4, 2), vgpr(12, 4))], isa=isa,
                vgprs={0: np.full(64, denormal, np.uint32), 1: empty, 2: empty, 3: empty, 4: first, 5: empty,
                       **{12 + i: np.full(64, 5, np.uint32) for i in range(4)}})
    assert set(state.vgpr(8, as_f32) / unit) == {4 * product}
    assert set(state.vgpr(16)) == {total}


def test_constant_addend():
    a, b = values("f32", (1, 16, 4)), values("f32", (1, 16, 4))
    state = run([ISA.make("v_mfma_f32_16x16x4f32", vgpr(8, 4), vgpr(0), vgpr(4), 1.0)],
                vgprs={0: place_source(a, 16, 1, 1, "f32")[0], 4: place_source(b, 16, 1, 1, "f32")[0]})
    expected = 1 + a[0].astype(np.float64) @ b[0].T
    actual = np.array([[state.vgpr(8 + r, np.float32)[lane] for lane, r in [result_place(16, "f32", i, j, 0)]][0]
                       for i in range(16) for j in range(16)]).reshape(16, 16)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("addend,result", [(2, 4), (4, 2), (2, 2), (2, 6)])
def test_result_that_overlaps_the_addend(addend, result):
    """All of C is read before any of D is written."""
    c = np.array([1, 2, 4, 0.5], np.float32).view(np.uint32)
    state = run([ISA.make("v_mfma_f32_16x16x4f32", vgpr(result, 4), vgpr(10), vgpr(1), vgpr(addend, 4))],
                vgprs={addend + number: np.full(64, word) for number, word in enumerate(c)})
    for number, word in enumerate(c):
        np.testing.assert_array_equal(state.vgpr(result + number), word)


@pytest.mark.parametrize("name,size,depth,blocks,per_lane,kind", [
    shape for shape in SHAPES if shape[0] in (
        "f32_32x32x1f32", "f32_16x16x1f32", "f32_4x4x4f16", "f32_4x4x1f32", "i32_4x4x4i8", "f32_32x32x8f16")
])  # fmt: skip
@pytest.mark.parametrize("cbsz,abid,blgp", [(0, 0, 1), (0, 0, 2), (0, 0, 3), (0, 0, 6), (1, 1, 0), (1, 0, 7), (2, 3, 0),
                                            (4, 9, 4)])
def test_broadcast(name, size, depth, blocks, per_lane, kind, cbsz, abid, blgp):
    """A's block abid of each 2 ** cbsz, and B's lanes moved as the matrix instruction calculator says."""
    registers, words = size * size * blocks // 64, max(per_lane * BYTES[kind] // 4, 1)
    if 1 << cbsz > blocks:
        with pytest.raises(Unsupported, match="cbsz"):
            run([ISA.make(f"v_mfma_{name}", vgpr(64, registers), vgpr(0, words), vgpr(4, words), 0, cbsz=cbsz,
                          abid=abid)])
        return
    a, b = values(kind, (blocks, size, depth)), values(kind, (blocks, size, depth))
    moved = np.arange(64) if blgp == 0 else (np.arange(64) + 16) % 64 if blgp == 3 else (
        np.arange(64) % 32 + 32 * (blgp - 1) if blgp < 3 else np.arange(64) % 16 + 16 * (blgp - 4))
    placed = place_source(b, size, blocks, per_lane, kind)
    sources = {**place_source(a, size, blocks, per_lane, kind), **{4 + i: row for i, row in placed.items()}}
    state = run([ISA.make(f"v_mfma_{name}", vgpr(64, registers), vgpr(0, words), vgpr(4, words), 0, cbsz=cbsz,
                          abid=abid, blgp=blgp)], vgprs=sources)
    taken = {i: row[moved] for i, row in placed.items()}
    groups = np.arange(blocks) >> cbsz << cbsz
    plain = run([ISA.make(f"v_mfma_{name}", vgpr(64, registers), vgpr(0, words), vgpr(4, words), 0)],
                vgprs={**place_source(a[groups + abid], size, blocks, per_lane, kind),
                       **{4 + i: row for i, row in taken.items()}})
    for register in range(64, 64 + registers):
        np.testing.assert_array_equal(state.vgpr(register), plain.vgpr(register))


@pytest.mark.parametrize("negated", range(8))
def test_negated_doubles(negated):
    """From gfx942 on blgp of f64 negates A, B and C."""
    isa = instruction_set(target("gfx942"))
    numbers = RNG.normal(size=(3, 64))
    rows = {2 * i + half: (number.view(np.uint64) >> np.uint64(32 * half)).astype(np.uint32)
            for i, number in enumerate(numbers) for half in range(2)}
    state = run([isa.make("v_mfma_f64_4x4x4f64", vgpr(8, 2), vgpr(0, 2), vgpr(2, 2), vgpr(4, 2), blgp=negated),
                 isa.make("v_mfma_f64_4x4x4f64", vgpr(10, 2), vgpr(0, 2), vgpr(2, 2), 0)], vgprs=rows, isa=isa)
    signs = [-1 if negated >> number & 1 else 1 for number in range(3)]
    expected = signs[2] * numbers[2] + signs[0] * signs[1] * state.vgpr(10, np.float64)
    np.testing.assert_allclose(state.vgpr(8, np.float64), expected, rtol=1e-13, atol=1e-13)


def test_negated_doubles_of_others_are_refused():
    with pytest.raises(Unsupported, match="blgp"):
        run([ISA.make("v_mfma_f64_4x4x4f64", vgpr(8, 2), vgpr(0, 2), vgpr(2, 2), 0, blgp=1)])


def place_codes(codes, bits):
    """(row, k) -> words of each lane: bytes in runs of 16 from group to group, smaller ones 32 in a lane."""
    size, depth = codes.shape
    groups, run = 64 // size, 16 if bits == 8 else 32
    lanes = [0] * 64
    for i, k in itertools.product(range(size), range(depth)):
        group, turn = k // run % groups, k // (run * groups)
        lanes[i + size * group] |= int(codes[i, k]) << bits * (turn * run + k % run)
    return {word: np.array([lane >> 32 * word & 0xFFFFFFFF for lane in lanes], np.uint32) for word in range(bits)}


@pytest.mark.parametrize("first,further,size", [
    pytest.param(first, further, size, marks=() if (further, size) == (1, 16) or first == 2 else pytest.mark.slow)
    for further, size in ((1, 16), (0, 16), (3, 32)) for first in range(5)])
def test_mixed_formats(first, further, size):
    second = (first + further) % 5
    isa, kinds = instruction_set(target("gfx950")), ["fp8", "bf8", "fp6", "bf6", "fp4"]
    bits = [FORMATS[kinds[number]].top.bit_length() for number in (first, second)]
    factors, placed = [], {}
    for number, start, width in ((first, 0, bits[0]), (second, 8, bits[1])):
        small = FORMATS[kinds[number]]
        some = RNG.integers(0, small.codes, (size, 2048 // size)) | RNG.integers(0, 2, (size, 2048 // size)) * small.top
        factors.append(np.array([float(small.number(code) or 0) for code in range(2 * small.top)])[some])
        placed |= {start + word: lanes for word, lanes in place_codes(some, width).items()}
    registers = size * size // 64
    state = run([isa.make(f"v_mfma_f32_{size}x{size}x{2048 // size}_f8f6f4", vgpr(64, registers), vgpr(0, 8),
                          vgpr(8, 8), 1.0, cbsz=first, blgp=second)], vgprs=placed, isa=isa)
    expected = 1 + factors[0] @ factors[1].T
    actual = np.zeros_like(expected)
    for i, j in itertools.product(range(size), range(size)):
        lane, register = result_place(size, "f32", i, j, 0)
        actual[i, j] = state.vgpr(64 + register, np.float32)[lane]
    largest = np.abs(factors[0]).max() * np.abs(factors[1]).max()
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5 * largest)


@pytest.mark.parametrize("size,first,second,bytes_chosen", [(16, 0, 4, (0, 3)), (16, 3, 1, (2, 1)), (32, 4, 0, (1, 2))])
def test_scaled_formats(size, first, second, bytes_chosen):
    isa, kinds = instruction_set(target("gfx950")), ["fp8", "bf8", "fp6", "bf6", "fp4"]
    factors, placed = [], {}
    for side, number in enumerate((first, second)):
        small = FORMATS[kinds[number]]
        some = RNG.integers(1, small.codes // 2, (size, 2048 // size))
        scales = RNG.integers(120, 135, (size, 2048 // size // 32))
        numbers = np.array([float(small.number(code) or 0) for code in range(small.codes)])[some]
        factors.append(numbers * 2.0 ** (np.repeat(scales, 32, 1) - 127))
        placed |= {8 * side + word: lanes for word, lanes in place_codes(some, small.top.bit_length()).items()}
        lanes = RNG.integers(0, 1 << 32, 64, dtype=np.uint64) & ~np.uint64(0xFF << 8 * bytes_chosen[side])
        for i, block in itertools.product(range(size), range(scales.shape[1])):
            lanes[i + size * block] |= np.uint64(int(scales[i, block]) << 8 * bytes_chosen[side])
        placed[16 + side] = lanes.astype(np.uint32)
    registers = size * size // 64
    low, high = ([byte >> bit & 1 for byte in bytes_chosen] for bit in (0, 1))
    inst = isa.make(f"v_mfma_scale_f32_{size}x{size}x{2048 // size}_f8f6f4", vgpr(64, registers), vgpr(0, 8),
                    vgpr(8, 8), 0, vgpr(16), vgpr(17), cbsz=first, blgp=second)
    for side in range(2):
        inst = isa.with_field(inst, f"src{side}_modifiers", 4 * low[side] + 8 * high[side])
    state = run([inst], vgprs=placed, isa=isa)
    expected = factors[0] @ factors[1].T
    actual = np.zeros_like(expected)
    for i, j in itertools.product(range(size), range(size)):
        lane, register = result_place(size, "f32", i, j, 0)
        actual[i, j] = state.vgpr(64 + register, np.float32)[lane]
    np.testing.assert_allclose(actual, expected, rtol=1e-5)
