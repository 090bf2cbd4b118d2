"""WMMA of mixed formats and with scales (gfx1250) against NumPy's matmul in doubles.

Elements lie as MX has it: 16 bytes, or 32 smaller numbers, in turn in lanes 0 to 15 and 16 to 31; each 32 (or 16)
elements of a row have a scale, a byte in the lane of the row.

Code for each combination is large, and made for it alone: what always runs has each format, scale and half on each side
once; the other combinations are marked slow.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from reference.small import FORMATS, UE5M3
from waves import run

from luthier_py.base.errors import Unsupported
from luthier_py.isa import instruction_set, target, vgpr

pytestmark = pytest.mark.usefixtures("compiled_fast")
RNG = np.random.default_rng(7)
ISA = instruction_set(target("gfx1250"), 32)
KINDS = ["fp8", "bf8", "fp6", "bf6", "fp4"]
A, B, C, D, SCALES = 0, 16, 32, 48, (64, 66)
DEPTH = 128


def also(case):
    return pytest.param(*case, marks=pytest.mark.slow)


def numbers(name, rows):
    """Codes of finite numbers, and the numbers."""
    small = FORMATS[name]
    codes = RNG.integers(0, small.codes, (rows, DEPTH)) | RNG.integers(0, 2, (rows, DEPTH)) * small.top
    return codes, np.array([float(small.number(code) or 0) for code in range(2 * small.top)])[codes]


def placed(first, codes, bits):
    """Registers of A (whose rows 16 to 31 lie in further ones) or B."""
    run_length, words = 16 if bits == 8 else 32, [[0] * 32 for _ in range(codes.shape[0] // 16)]
    for i, k in itertools.product(range(codes.shape[0]), range(DEPTH)):
        turn, place = divmod(k, run_length)
        words[i // 16][i % 16 + turn % 2 * 16] |= int(codes[i, k]) << bits * (turn // 2 * run_length + place)
    registers = {}
    for block, lanes in enumerate(words):
        for number in range(2 * bits):
            dwords = [lane >> 32 * number & 0xFFFFFFFF for lane in lanes]
            registers[first + block * 2 * bits + number] = np.resize(np.array(dwords, np.uint32), 64)
    return registers


def scales_of(rows, count, format):
    """Bytes for each row, and what they are: exponents near 127, or numbers of a format."""
    if format == 0:
        codes = RNG.integers(120, 135, (rows, count))
        return codes, 2.0 ** (codes - 127)
    small = UE5M3 if format == 1 else FORMATS["fp8"]
    codes = RNG.integers(0x30, 0x50, (rows, count))
    return codes, np.array([float(small.number(code) or 0) for code in range(256)])[codes]


def words_of(codes, upper):
    """Registers of scales; lanes that hold none have noise."""
    count = codes.shape[1] // 4
    words = RNG.integers(0, 1 << 32, (count, 64), dtype=np.uint64)
    for i, k in itertools.product(range(codes.shape[0]), range(codes.shape[1])):
        lane = i + 16 * upper
        mask = np.uint64(0xFF << 8 * (k % 4))
        words[k // 4, lane] = words[k // 4, lane] & ~mask | np.uint64(int(codes[i, k]) << 8 * (k % 4))
    return words.astype(np.uint32)


def execute(name, kinds, rows=16, fewer=0, formats=(0, 0), upper=(0, 0)):
    (a, left), (b, right) = numbers(kinds[0], rows), numbers(kinds[1], 16)
    bits = [FORMATS[kind].top.bit_length() for kind in kinds]
    registers = placed(A, a, bits[0]) | placed(B, b, bits[1])
    modifiers, operands = {}, []
    for number, side in enumerate("ab" if fewer else ""):
        codes, factors = scales_of((rows, 16)[number], DEPTH // fewer, formats[number])
        words = words_of(codes, upper[number])
        registers |= {SCALES[number] + i: row for i, row in enumerate(words)}
        operands.append(vgpr(SCALES[number], len(words)))
        modifiers |= {f"matrix_{side}_scale": upper[number], f"matrix_{side}_scale_fmt": formats[number]}
        repeated = np.repeat(factors, fewer, axis=1)
        left, right = (left * repeated, right) if number == 0 else (left, right * repeated)
    if "f8f6f4" in name:
        modifiers |= {"matrix_a_fmt": KINDS.index(kinds[0]), "matrix_b_fmt": KINDS.index(kinds[1])}
    c = RNG.normal(size=(rows, 16)).astype(np.float32)
    for i, j in itertools.product(range(rows), range(16)):
        register = C + i // 16 * 8 + i % 8
        row = registers.setdefault(register, np.zeros(64, np.uint32))
        row[j + i % 16 // 8 * 16] = c[i, j].view(np.uint32)
    inst = ISA.make(name, vgpr(D, rows // 2), vgpr(A, 16), vgpr(B, 16 if "f8f6f4" in name else 8), vgpr(C, rows // 2),
                    *operands, **modifiers)
    state = run([inst], vgprs=registers, exec_mask=0, isa=ISA)
    expected = c + left @ right.T
    actual = np.array([[state.vgpr(D + i // 16 * 8 + i % 8, np.float32)[j + i % 16 // 8 * 16] for j in range(16)]
                       for i in range(rows)])
    limit = np.abs(left) @ np.abs(right).T * 1e-5 + 1e-5
    assert (np.abs(actual - expected) <= limit).all()


@pytest.mark.parametrize("first,second", [(1, 0), (2, 3), (0, 4), (3, 1), (4, 2), *map(also, [(0, 0), (4, 4)])])
def test_mixed_formats(first, second):
    execute("v_wmma_f32_16x16x128_f8f6f4", (KINDS[first], KINDS[second]))


def test_thirty_two_rows():
    execute("v_wmma_f32_32x16x128_f4", ("fp4", "fp4"), rows=32)


SCALED = [
    (0, 0, (0, 0), (0, 0)), (0, 1, (0, 0), (1, 0)), (4, 4, (2, 2), (1, 1)),
    (4, 4, (0, 0), (0, 1)), (0, 4, (0, 1), (0, 0)), (2, 0, (0, 0), (1, 1)),
]  # fmt: skip
BY_32, BY_16 = ("", 32), ("16", 16)


@pytest.mark.parametrize("word,fewer,first,second,formats,upper", [
    *((*BY_32, *each) for each in SCALED[:3]), *((*BY_16, *each) for each in SCALED[3:]),
    *(also((*BY_32, *each)) for each in SCALED[3:]), *(also((*BY_16, *each)) for each in SCALED[:3]),
])  # fmt: skip
def test_scales(word, fewer, first, second, formats, upper):
    execute(f"v_wmma_scale{word}_f32_16x16x128_f8f6f4", (KINDS[first], KINDS[second]), fewer=fewer, formats=formats,
            upper=upper)


@pytest.mark.parametrize("word,fewer", [BY_16, also(BY_32)])
def test_scales_of_thirty_two_rows(word, fewer):
    execute(f"v_wmma_scale{word}_f32_32x16x128_f4", ("fp4", "fp4"), rows=32, fewer=fewer, upper=(0, 1))


def test_scales_of_thirty_two_rows_take_all_lanes():
    with pytest.raises(Unsupported, match="matrix_a_scale"):
        execute("v_wmma_scale_f32_32x16x128_f4", ("fp4", "fp4"), rows=32, fewer=32, upper=(1, 0))


def test_a_scale_of_255_is_no_number():
    """And one of 0 is 2**-127."""
    ones = {A + i: np.full(64, 0x38383838, np.uint32) for i in range(32)}  # fp8: 1
    for byte, expected in ((255, np.nan), (0, DEPTH * 2.0**-127)):
        scale = {SCALES[0]: np.full(64, byte * 0x01010101, np.uint32), SCALES[1]: np.full(64, 0x7F7F7F7F, np.uint32)}
        inst = ISA.make("v_wmma_scale_f32_16x16x128_f8f6f4", vgpr(D, 8), vgpr(A, 16), vgpr(B, 16), 0, vgpr(SCALES[0]),
                        vgpr(SCALES[1]))
        result = run([inst], vgprs=ones | scale, isa=ISA).vgpr(D, np.float32)[:32]
        np.testing.assert_array_equal(result.astype(np.float64), np.full(32, expected))
