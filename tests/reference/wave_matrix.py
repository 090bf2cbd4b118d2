"""Matrix instructions of RDNA 3 and later: registers to matrices of numbers, their product, and back.

In: a wave, an instruction and its row. Out: the wave after it. Sources: RDNA 3 ISA, 7.9 and the figures there; RDNA 4
ISA, 7.12 as ROCm's hip-fpsan packs matrices (tests/rdna4_int_isa_matrix_test.cpp, amdgcn_swmmac_gfx12.hpp) and, for
gfx1250, amdgcn_swmmac_gfx1250.hpp. Lanes are read forward there: what an element of a lane is.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from luthier_py.isa import Inst, Reg
from luthier_py.isa.semantics.wave_matrices import WaveMatrix, WaveMixedMatrix
from reference import floats
from reference.algebra import NEW_NAN
from reference.small import FORMATS, UE5M3, Small, widened
from reference.vector import BOTH, field, raw
from reference.wave import M32, Freedom, Wave

NEG, MAGNITUDE, OP_SEL = 1, 2, 4
WIDTHS = {"f32": 32, "f16": 16, "bf16": 16, "iu8": 8, "iu4": 4, "fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4}
EXPONENT_1 = 127 << 23
Scale = tuple[list[int], Small | None, int]  # a word for each row or column, its format, elements to a byte
Numbers = dict[tuple[int, int], int]


def wave_mixed(wave: Wave, inst: Inst, row: WaveMixedMatrix) -> None:
    """With a scale for each 32 or 16 elements: bytes of the word in the lane of the row or column (hip-fpsan,
    amdgcn_matrix.hpp, wmma_scale)."""
    kinds = row.of(field(inst, "matrix_a_fmt"), field(inst, "matrix_b_fmt"))
    assert kinds is not None
    scales = []
    for number, side in enumerate("ab" if row.fewer else ""):
        first = 16 * field(inst, f"matrix_{side}_scale")
        words = [raw(wave, inst[f"scale_src{number}"], first + index, 1024 // row.fewer)
                 for index in range(row.rows if side == "a" else 16)]
        format = (None, UE5M3, FORMATS["fp8"])[field(inst, f"matrix_{side}_scale_fmt")]
        scales.append((words, format, row.fewer))
    wave_matrix(wave, inst, kinds, scales)


def wave_matrix(wave: Wave, inst: Inst, row: WaveMatrix, scales: list[Scale] | None = None) -> None:
    modifiers = [field(inst, f"src{number}_modifiers") for number in range(3)]
    depth_of_a = row.depth // 2 if row.sparse else row.depth
    a = _numbers(wave, inst["src0"].reg, row.kinds[0], depth_of_a, modifiers[0], row.rows)
    b = _numbers(wave, inst["src1"].reg, row.kinds[1], row.depth, modifiers[1], 16, 2 if row.sparse else 1)
    for numbers, scale in zip((a, b), scales or (), strict=False):
        for index, k in numbers:
            numbers[index, k] = _scaled(numbers[index, k], index, k, *scale)
    steps = {i: _steps(wave, inst, row, i, depth_of_a) for i in range(row.rows)}
    half = bool(modifiers[2] & OP_SEL) and not row.sparse
    results = {}
    for number, lane, i, j in _places(wave, row.rows):
        addend = _addend(wave, inst, row, number, lane, half, 0 if row.sparse else modifiers[2])
        results[number, lane] = _sum(row, [(a[i, x], b[j, y]) for x, y in steps[i]], addend, field(inst, "clamp"))
    for (number, lane), (bits, fresh) in results.items():
        _give(wave, inst, row, number, lane, half, bits, fresh)


def _places(wave: Wave, rows: int) -> Iterator[tuple[int, int, int, int]]:
    """(number of the element in its lane, lane, row, column) of each of D."""
    for lane in range(wave.size):
        group, column = divmod(lane, 16)
        for number in range(rows * 16 // wave.size):
            if wave.replicates_matrices:
                row = wave.size // 16 * number + group
            elif wave.size == 64:
                row = number + (0, 8, 4, 12)[group]
            else:
                row = number % 8 + 8 * group + 16 * (number // 8)
            yield number, lane, row, column


def _numbers(wave: Wave, reg: Reg | None, kind: str, depth: int, modifiers: int, rows: int, longer: int = 1) -> Numbers:
    """(row or column, k) to what is multiplied: an integer, or the bits of an f32."""
    assert reg is not None
    width, found = WIDTHS[kind], {}
    of_a_row = reg.dwords * 32 // width * 16 // rows
    run = of_a_row if wave.size == 64 else min(of_a_row, longer * {6: 32}.get(width, 128 // width))
    for lane in range(16 if wave.replicates_matrices else wave.size):
        group, index = divmod(lane, 16)
        if wave.size == 64 and depth // run == 4:
            group = (0, 2, 1, 3)[group]
        whole = wave.vector(reg, lane)
        for element in range(reg.dwords * 32 // width):
            block, place = divmod(element, of_a_row)
            turn, inside = divmod(place, run)
            groups = 1 if wave.replicates_matrices else wave.size // 16
            k = (turn * groups + group) * run + inside
            if k < depth:
                code = whole >> width * element & (1 << width) - 1
                found[index + 16 * block, k] = _number(wave, code, kind, modifiers, element)
    return found


def _number(wave: Wave, code: int, kind: str, modifiers: int, element: int) -> int:
    width = WIDTHS[kind]
    if kind.startswith("iu"):
        return code - (1 << width) if modifiers & NEG and code >> width - 1 else code
    if kind in FORMATS:
        return widened(FORMATS[kind], code, EXPONENT_1, "f32")
    negated = modifiers & (MAGNITUDE if width == 16 and element % 2 else NEG)
    code ^= 1 << width - 1 if negated else 0
    return _as_f32(code, kind)


def _as_f32(code: int, kind: str) -> int:
    return {"f32": code, "bf16": code << 16}[kind] if kind != "f16" else floats.resized(code, 16, 32)


def _scaled(bits: int, index: int, k: int, words: list[int], format: Small | None, fewer: int) -> int:
    byte = words[index] >> 8 * (k // fewer) & 0xFF
    if format is not None:
        return floats.fused(bits, widened(format, byte, EXPONENT_1, "f32"), bits & 1 << 31 ^ _sign(format, byte), 32)
    if byte == 255 or floats.is_nan(bits, 32) or floats.is_infinite(bits, 32) or not bits << 1 & M32:
        return (bits | floats.default_nan(32)) & M32 if byte == 255 else bits
    value = floats.number(bits, 32) * Fraction(2) ** (byte - 127)
    return floats.rounded(abs(value), 32) | bits & 1 << 31


def _sign(format: Small, byte: int) -> int:
    """What makes a product that is zero one of the right sign: an addend of that."""
    return 1 << 31 if byte & format.top else 0


def _steps(wave: Wave, inst: Inst, row: WaveMatrix, i: int, depth_of_a: int) -> list[tuple[int, int]]:
    """Which element of a row of A meets which of a column of B (RDNA 4 ISA, 7.12.3)."""
    if not row.sparse:
        return [(k, k) for k in range(row.depth)]
    reg = inst["src2"].reg
    assert reg is not None
    of_a_lane = 2 * max(16 * depth_of_a // wave.size, 32 // WIDTHS[row.kinds[0]] if wave.size == 64 else 0)
    bits = of_a_lane if wave.size == 64 else row.depth // 2
    key = max(field(inst, f"index_key_{size}bit") for size in (8, 16, 32))
    lanes = 2 * row.depth // 2 // bits  # of 16, that hold indices
    found = []
    for element in range(depth_of_a):
        part, place = divmod(2 * element, bits)
        group = (0, 2, 1, 3)[part] if lanes == 4 else part
        index = raw(wave, inst["src2"], i + 16 * group, 32 * reg.dwords) >> key * bits + place & 3
        found.append((element, element // 2 * 4 + index))
    return found


def _addend(wave: Wave, inst: Inst, row: WaveMatrix, number: int, lane: int, half: bool, modifiers: int) -> int:
    """An integer, or bits of an f32."""
    operand, width = inst["vdst" if row.sparse else "src2"], 16 if row.addend in ("f16", "bf16") else 32
    if operand.reg is None:
        bits = operand.value
        if bits >> 32 not in (0, M32):  # LLVM has those of RDNA 3 as f64
            as_f32 = floats.resized(bits, 64, 32)
            bits = {"f16": floats.resized(bits, 64, 16), "bf16": as_f32 >> 16}.get(row.addend, as_f32)
        bits &= (1 << width) - 1
    elif width == 32:
        bits = wave.vector(Reg(operand.reg.file, operand.reg.index + number, 1), lane)
    else:
        register, place = (number, half) if wave.replicates_matrices else divmod(number, 2)
        bits = wave.vector(Reg(operand.reg.file, operand.reg.index + register, 1), lane) >> 16 * place & 0xFFFF
    if row.addend == "i32":
        return bits - (1 << 32) if bits >> 31 else bits
    bits &= (1 << width - 1) - 1 if modifiers & MAGNITUDE else (1 << width) - 1
    bits ^= 1 << width - 1 if modifiers & NEG else 0
    return _as_f32(bits, row.addend)


def _sum(row: WaveMatrix, factors: list[tuple[int, int]], total: int, clamps: int) -> tuple[int, bool]:
    """Bits, and whether there may be another NaN."""
    if row.addend == "i32":
        size = len(factors) // row.stages
        for start in range(0, len(factors), size):
            total += sum(x * y for x, y in factors[start : start + size])
            total = min(max(total, -(1 << 31)), (1 << 31) - 1) if clamps else total
        return total & M32, False
    fresh = False
    for x, y in factors:
        total = floats.fused(x, y, total, 32)
        fresh |= floats.is_nan(total, 32)
    if row.outcome == "f16":
        return floats.resized(total, 32, 16), fresh
    if row.outcome == "bf16":
        quiet = total >> 16 | 0x40
        return (quiet if floats.is_nan(total, 32) else total + 0x7FFF + (total >> 16 & 1) >> 16), fresh
    return total, fresh


def _give(wave: Wave, inst: Inst, row: WaveMatrix, number: int, lane: int, half: bool, bits: int, fresh: bool) -> None:
    target = inst["vdst"].reg
    assert target is not None
    narrow = row.outcome in ("f16", "bf16")
    register, place = (number, half) if wave.replicates_matrices or not narrow else divmod(number, 2)
    reg = Reg(target.file, target.index + register, 1)
    if narrow:
        old = wave.vector(reg, lane)
        bits = old & ~(0xFFFF << 16 * place) & M32 | bits << 16 * place
    packed = narrow and not wave.replicates_matrices
    fresh |= packed and place == 1 and (reg.file, reg.index, lane) in wave.free
    wave.set_vector(reg, lane, bits)
    if fresh:
        freedom = Freedom(frozenset({NEW_NAN}), 16 if narrow else 32, BOTH if packed else 16 * place)
        wave.free[reg.file, reg.index, lane] = freedom
