"""SMFMAC against NumPy's matmul: what is there of A put where the index says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from matrix_places import BYTES, RNG, exact_values, place_source, result_place, values
from waves import run

from luthier_py.isa import instruction_set, target, vgpr

pytestmark = pytest.mark.usefixtures("compiled_fast")
SPARSE = [
    ("gfx942", "f32_16x16x32_f16", 16, 32, "f16"), ("gfx950", "f32_32x32x16_bf16", 32, 16, "bf16"),
    ("gfx942", "i32_16x16x64_i8", 16, 64, "i8"), ("gfx950", "i32_32x32x32_i8", 32, 32, "i8"),
    ("gfx942", "f32_32x32x32_fp8_bf8", 32, 32, "fp8 bf8"), ("gfx950", "f32_16x16x64_bf8_fp8", 16, 64, "bf8 fp8"),
]  # fmt: skip


@pytest.mark.parametrize("gpu,name,size,depth,kind", SPARSE)
@pytest.mark.parametrize("part", [0, 1, None])
def test_sparse(gpu, name, size, depth, kind, part):
    """Two of four elements of A, put where the index says, times B; None: cbsz, which takes the lowest index."""
    isa, (kind_a, kind_b) = instruction_set(target(gpu)), (kind.split() * 2)[:2]
    groups = 64 // size
    per_b = depth // groups
    per_a = per_b // 2
    kept, b = values(kind_a, (1, size, depth // 2)), values(kind_b, (1, size, depth))
    chosen = np.sort(RNG.random((size, depth // 4, 4)).argsort(2)[:, :, :2], 2)  # of each four, two
    exact = np.int64 if kind_a == "i8" else np.float64
    numbers = exact_values(kept, kind_a, isa.target.fnuz_floats, exact)[0]
    whole = np.zeros((size, depth), exact)
    for i, block, which in itertools.product(range(size), range(depth // 4), range(2)):
        whole[i, 4 * block + chosen[i, block, which]] = numbers[i, 2 * block + which]
    noise = RNG.integers(0, 1 << 32, 64, dtype=np.uint64)
    index = np.zeros(64, np.uint64)
    for group, i, element in itertools.product(range(groups), range(size), range(per_a)):
        block, which = divmod(group * per_a + element, 2)
        index[i + size * group] |= np.uint64(int(chosen[i, block, which]) << 2 * element)
    bits = 2 * per_a
    shift = np.uint64(bits * (part or 0))
    index = index << shift | noise & ~np.uint64((1 << bits) - 1 << int(shift))
    c = RNG.integers(-1000, 1000, (size, size)).astype(np.int32 if kind_a == "i8" else np.float32)
    rows = np.zeros((size * size // 64, 64), c.dtype)
    for i, j in itertools.product(range(size), range(size)):
        lane, register = result_place(size, kind_a, i, j, 0)
        rows[register, lane] = c[i, j]
    sources = {**place_source(kept, size, 1, per_a, kind_a),
               **{8 + n: words for n, words in place_source(b, size, 1, per_b, kind_b).items()},
               16: index.astype(np.uint32), **{64 + n: row.view(np.uint32) for n, row in enumerate(rows)}}
    modifiers = {"cbsz": 1, "abid": 1} if part is None else {"abid": part}
    state = run([isa.make(f"v_smfmac_{name}", vgpr(64, len(rows)), vgpr(0, per_a * BYTES[kind_a] // 4),
                          vgpr(8, per_b * BYTES[kind_b] // 4), vgpr(16), **modifiers)], vgprs=sources, isa=isa)
    expected = c + whole @ exact_values(b, kind_b, isa.target.fnuz_floats, exact)[0].T
    actual = np.zeros_like(expected)
    for i, j in itertools.product(range(size), range(size)):
        lane, register = result_place(size, kind_a, i, j, 0)
        actual[i, j] = state.vgpr(64 + register)[lane : lane + 1].view(c.dtype)[0]
    np.testing.assert_allclose(actual, expected, rtol=0 if kind_a == "i8" else 1e-5, atol=0 if kind_a == "i8" else 1e-3)


def eights(size, depth, bits):
    """(group of lanes, element) of each element of the depth of B: eights in turn."""
    groups = 64 // size
    return [(k // 8 % groups, k // (8 * groups) * 8 + k % 8) for k in range(depth)]


def scattered(size, depth, bits):
    """(group of lanes, element) of each element that is there of A, and of its bits in the index: as hip-fpsan has them
    (amdgcn_smfmac.hpp), 16x16x128 and 32x32x64 of bytes from the bits of its number."""
    if bits == 16:
        return [divmod(c, 8) for c in range(depth // 2)]
    if size == 16:
        return [((c >> 5) * 2 + (c >> 3 & 1), 8 * (c >> 2 & 1) + 4 * (c >> 4 & 1) + c % 4) for c in range(depth // 2)]
    return [(c >> 4, 8 * (c >> 2 & 1) + 4 * (c >> 3 & 1) + c % 4) for c in range(depth // 2)]


@pytest.mark.parametrize("name,size,depth,kind", [
    ("f32_16x16x64_f16", 16, 64, "f16"), ("f32_16x16x64_bf16", 16, 64, "bf16"), ("f32_32x32x32_f16", 32, 32, "f16"),
    ("f32_32x32x32_bf16", 32, 32, "bf16"), ("f32_16x16x128_fp8_bf8", 16, 128, "fp8 bf8"),
    ("f32_32x32x64_bf8_fp8", 32, 64, "bf8 fp8"), ("i32_16x16x128_i8", 16, 128, "i8"), ("i32_32x32x64_i8", 32, 64, "i8"),
])  # fmt: skip
@pytest.mark.parametrize("part", [0, 1])
def test_wide_sparse(name, size, depth, kind, part):
    """CDNA 4's shapes with 256 bits of B in a lane; of bytes there is but one index."""
    isa, (kind_a, kind_b) = instruction_set(target("gfx950")), (kind.split() * 2)[:2]
    bits, exact = 8 * BYTES[kind_a], np.int64 if kind_a == "i8" else np.float64
    kept, b = values(kind_a, (size, depth // 2)), values(kind_b, (size, depth))
    chosen = np.sort(RNG.random((size, depth // 4, 4)).argsort(2)[:, :, :2], 2)
    whole, factor = np.zeros((size, depth), exact), exact_values(kept, kind_a, False, exact)
    lanes, index = np.zeros((64, 128 // bits), kept.dtype), np.zeros(64, np.uint64)
    for i, c in itertools.product(range(size), range(depth // 2)):
        place = chosen[i, c // 2, c % 2]
        whole[i, c // 2 * 4 + place] = factor[i, c]
        group, element = scattered(size, depth, bits)[c]
        lanes[i + size * group, element] = kept[i, c]
        index[i + size * group] |= np.uint64(int(place) << 2 * element + (16 * part if bits == 16 else 0))
    of_b = np.zeros((64, 256 // bits), b.dtype)
    for j, (k, (group, element)) in itertools.product(range(size), enumerate(eights(size, depth, bits))):
        of_b[j + size * group, element] = b[j, k]
    c = RNG.integers(-1000, 1000, (size, size)).astype(np.int32 if kind_a == "i8" else np.float32)
    rows = np.zeros((size * size // 64, 64), c.dtype)
    for i, j in itertools.product(range(size), range(size)):
        lane, register = result_place(size, kind_a, i, j, 0)
        rows[register, lane] = c[i, j]
    sources = {16: index.astype(np.uint32), **{64 + n: row.view(np.uint32) for n, row in enumerate(rows)}}
    for first, held in ((0, lanes), (8, of_b)):
        held = (held.view(np.uint32) >> 16).astype(np.uint16) if held.dtype == np.float32 else held
        words = np.ascontiguousarray(held).view(np.uint32)
        sources |= {first + n: np.ascontiguousarray(words[:, n]) for n in range(words.shape[1])}
    state = run([isa.make(f"v_smfmac_{name}", vgpr(64, len(rows)), vgpr(0, 4), vgpr(8, 8), vgpr(16), abid=part)],
                vgprs=sources, isa=isa)
    expected = c + whole @ exact_values(b, kind_b, False, exact).T
    actual = np.zeros_like(expected)
    for i, j in itertools.product(range(size), range(size)):
        lane, register = result_place(size, kind_a, i, j, 0)
        actual[i, j] = state.vgpr(64 + register)[lane : lane + 1].view(c.dtype)[0]
    np.testing.assert_allclose(actual, expected, rtol=0 if kind_a == "i8" else 1e-5, atol=0 if kind_a == "i8" else 1e-3)
