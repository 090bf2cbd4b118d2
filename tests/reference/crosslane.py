"""Instructions that look at other lanes: lane access, permutes, swaps, matrices.

In: a wave, an instruction and its row. Out: the wave after it; everything is read before anything is written.
Sources: AMD Instinct MI200 ISA, 7 (matrices), 11.4 and 12.13 (permutes); CDNA 4 ISA, 12.8 (swaps).
"""

from __future__ import annotations

import itertools

from luthier_py.isa import Inst, Reg
from luthier_py.isa.semantics.algebra import F16, F32
from luthier_py.isa.semantics.cdna4 import SwapRows
from luthier_py.isa.semantics.control import CrossLane
from luthier_py.isa.semantics.crossings import GatherInGroup, GatherInRow
from luthier_py.isa.semantics.lds import Permute
from luthier_py.isa.semantics.matrix import Matrix, MixedMatrix, SparseMatrix
from reference import floats
from reference.algebra import NEW_NAN, flushed
from reference.small import FORMATS, widened
from reference.vector import OP_SEL, field, raw
from reference.wave import LANES, M32, Freedom, Wave


def cross_lane(wave: Wave, inst: Inst, row: CrossLane) -> None:
    if row is CrossLane.OTHER_HALF:
        _other_half(wave, inst)
        return
    if row is CrossLane.WRITE:
        target = inst["vdst"].reg
        assert target is not None
        wave.set_vector(target, raw(wave, inst["src1"], 0, 32) % wave.size, raw(wave, inst["src0"], 0, 32))
        return
    target = (inst.find("sdst") or inst["vdst"]).reg
    assert target is not None
    lane = next(wave.lanes(), 0) if row is CrossLane.READ_FIRST else raw(wave, inst["src1"], 0, 32) % wave.size
    wave.set_scalar(target.index, raw(wave, inst["src0"], lane, 32))


def _other_half(wave: Wave, inst: Inst) -> None:
    """V_PERMLANE64_B32 (RDNA 3 ISA, 16.8): no operation in waves of 32."""
    source, target = inst["src0"].reg, inst["vdst"].reg
    assert source is not None and target is not None
    if wave.size == 64:
        old = [wave.vector(source, lane) for lane in range(64)]
        for lane in wave.lanes():
            wave.set_vector(target, lane, old[(lane + 32) % 64])


def gather(wave: Wave, inst: Inst, row: GatherInRow) -> None:
    """V_PERMLANE16_B32, X16 and VAR (RDNA 3 ISA, 16.12; RDNA 4 ISA, 16.12)."""
    source, target = inst["src0"].reg, inst["vdst"].reg
    assert source is not None and target is not None
    fetch, bound = (field(inst, f"src{number}_modifiers") & OP_SEL for number in (0, 1))
    old = [wave.vector(source, lane) for lane in range(wave.size)]
    new = {}
    for lane in wave.lanes():
        if row.own:
            nibble = raw(wave, inst["src1"], lane, 32) % 16
        else:
            nibble = (raw(wave, inst["src1"], 0, 32) | raw(wave, inst["src2"], 0, 32) << 32) >> lane % 16 * 4 & 15
        number = lane // 16
        if row.other_row:
            number += -1 if number % 2 else 1
        giver = number * 16 + nibble
        if fetch or wave.active(giver):
            new[lane] = old[giver]
        elif bound:
            new[lane] = 0
    for lane, value in new.items():
        wave.set_vector(target, lane, value)


def gather_in_group(wave: Wave, inst: Inst, row: GatherInGroup) -> None:
    """As HIP's shuffles define it (amd_warp_functions.h): __shfl, __shfl_up, __shfl_down, __shfl_xor."""
    source, target = inst["src0"].reg, inst["vdst"].reg
    assert source is not None and target is not None
    first, width = (raw(wave, inst[name], 0, 32) for name in (
        ("src1", "src1") if row is GatherInGroup.ADDRESS else ("src1", "src2")))
    old, new = [wave.vector(source, lane) for lane in range(wave.size)], {}
    for me in wave.lanes():
        group = range(me - me % width, me - me % width + width)
        if row is GatherInGroup.ADDRESS:
            new[me] = 4 * group[old[me] % width]
            continue
        if row is GatherInGroup.ONE:
            giver = group[first % width]
        elif row is GatherInGroup.CROSSED:
            giver = me ^ first if me ^ first < group.stop else me
        else:
            giver = me - first if row is GatherInGroup.BELOW else me + first
            giver = giver if giver in group else me
        assert wave.active(giver)
        new[me] = old[giver]
    for me, value in new.items():
        wave.set_vector(target, me, value)


def permute(wave: Wave, inst: Inst, row: Permute) -> None:
    target, address = inst["vdst"].reg, inst["addr"].reg
    assert target is not None and address is not None
    found, reach = dict.fromkeys(range(wave.size), 0), 32 if wave.permutes_halves else wave.size
    for lane in range(wave.size):
        if row is Permute.SWIZZLE:
            other = _swizzled(field(inst, "offset"), lane)
            found[lane] = wave.vector(address, other) if wave.active(other) else 0
            continue
        other = lane // reach * reach + (wave.vector(address, lane) + field(inst, "offset") >> 2) % reach
        giver, taker = (lane, other) if row is Permute.FORWARD else (other, lane)
        if wave.active(giver) or row is Permute.BACKWARD_ANY:
            found[taker] = raw(wave, inst["data0"], giver, 32)
    for lane in list(wave.lanes()):
        wave.set_vector(target, lane, found[lane])


def _swizzled(pattern: int, lane: int) -> int:
    """DS_SWIZZLE_B32: Fourier transform, rotation, quads, or bit masks within 32 lanes (CDNA 4 ISA, 12.12)."""
    half, place = lane & 32, lane & 31
    if pattern >> 13 == 0b111:
        kept = pattern & 31
        return half | int(f"{place:05b}"[::-1], 2) >> bin(kept).count("1") | place & kept
    if pattern >> 13 == 0b110:
        amount = pattern >> 5 & 31
        moved = place + (-amount if pattern >> 10 & 1 else amount)
        return half | place & pattern & 31 | moved & ~pattern & 31
    if pattern >> 15:
        return lane & ~3 | pattern >> 2 * (lane & 3) & 3
    return half | (place & pattern & 31 | pattern >> 5 & 31) ^ pattern >> 10 & 31


def swap(wave: Wave, inst: Inst, row: SwapRows) -> None:
    """Odd rows of vdst with the even rows before them of src0."""
    first, second = inst["vdst"].reg, inst["src0"].reg
    assert first is not None and second is not None
    old = [[wave.vector(reg, lane) for lane in range(LANES)] for reg in (first, second)]
    new = []
    for lane in wave.lanes():
        other, odd = lane ^ row.lanes, bool(lane & row.lanes)
        changed = 0 if odd else 1  # which register changes in this lane
        value = old[1 - changed][other]
        if not wave.active(other) and not field(inst, "fi"):
            if not field(inst, "bound_ctrl"):
                continue
            value = 0
        new.append(((first, second)[changed], lane, value))
    for reg, lane, value in new:
        wave.set_vector(reg, lane, value)


def matrix(wave: Wave, inst: Inst, row: Matrix, scales: list[list[int]] | None = None, formats: bool = False) -> None:
    """D = C + A * B, products added in the order of the depth; EXEC does not matter. ``formats``: CBSZ and BLGP say
    what A and B are, and not where they come from.

    On MI200 denormals are zeros where A and B are f16 or bf16 (MIOpen, "MI200 MFMA behavior specifics").
    """
    flushes = wave.half_products_flush and row.kind in ("f16", "bf16")
    width = {"f64": 64}.get(row.kind, 32)
    sources = [_elements(wave, inst[name].reg, row, flushes, kind, 0, scale)
               for name, kind, scale in zip(("src0", "src1"), row.kinds, scales or (None, None), strict=True)]
    cbsz, abid, moved = (0, 0, 0) if formats else (field(inst, name) for name in ("cbsz", "abid", "blgp"))
    negated = moved if width == 64 and wave.negates_doubles else 0
    target = inst["vdst"].reg
    assert target is not None
    words, results = width // 32, {}
    for register in range(row.results):
        for lane in range(LANES):
            i, j, block = row.result(register, lane)
            total = _addend(wave, inst, register, lane, width) ^ (negated >> 2) << 63
            total = flushed(total, width) if flushes else total
            fresh = False
            for k in range(row.depth):
                taken = block - block % (1 << cbsz) + abid if cbsz else block
                a = sources[0][row.source(i, k, taken, row.kinds[0])]
                lane_of_b, element = row.source(j, k, block, row.kinds[1])
                b = sources[1][lane_of_b if width == 64 else _moved(lane_of_b, moved), element]
                a, b = a ^ (negated & 1) << 63, b ^ (negated >> 1 & 1) << 63
                total = a * b + total & M32 if row.kind == "i8" else floats.fused(a, b, total, width)
                fresh |= row.kind != "i8" and floats.is_nan(total, width)
            results[register, lane] = flushed(total, width) if flushes else total, fresh
    for (register, lane), (total, fresh) in results.items():
        reg = Reg(target.file, target.index + register * words, words)
        wave.set_vector(reg, lane, total)
        for word in range(words if fresh else 0):
            freedom = Freedom(frozenset({NEW_NAN}), width, 32 * word)
            wave.free[reg.file, reg.index + word, lane] = freedom


def _moved(lane: int, blgp: int) -> int:
    """Whose B a lane takes (matrix instruction calculator, BLGP): of the first or second 32, those 16 further on, of
    the first to fourth 16."""
    return (lane, lane % 32, lane % 32 + 32, (lane + 16) % 64, *(lane % 16 + 16 * part for part in range(4)))[blgp]


def mixed(wave: Wave, inst: Inst, row: MixedMatrix) -> None:
    kinds = row.of(field(inst, "cbsz"), field(inst, "blgp"))
    assert kinds is not None
    if not row.scaled:
        matrix(wave, inst, kinds, formats=True)
        return
    scales = []
    for number in range(2):
        byte = field(inst, f"src{number}_modifiers") >> 2 & 3
        words = [raw(wave, inst[f"scale_src{number}"], lane, 32) >> 8 * byte & 0xFF for lane in range(LANES)]
        scales.append([word << 23 for word in words])
    matrix(wave, inst, kinds, scales, formats=True)


def sparse(wave: Wave, inst: Inst, row: SparseMatrix) -> None:
    """D += A * B: A's pairs meet two of four elements of B each (CDNA3 ISA, 7.3)."""
    shape, target, sets = row.matrix, inst["vdst"].reg, 32 // (2 * row.per_lane)
    flushes = wave.half_products_flush and shape.kind in ("f16", "bf16")
    assert target is not None
    a, b = (_elements(wave, inst[name].reg, shape, flushes, kind, count) for name, kind, count in zip(
        ("src0", "src1"), shape.kinds, (shape.per_lane // 2, shape.per_lane), strict=True))
    part = 0 if field(inst, "cbsz") else field(inst, "abid") % sets
    groups = range(LANES // shape.rows)
    of_a = {_compressed(shape, place): place for place in itertools.product(groups, range(row.per_lane))}
    of_b = {_whole(shape, place): place for place in itertools.product(groups, range(shape.per_lane))}
    results = {}
    for register in range(shape.results):
        for lane in range(LANES):
            i, j, _ = shape.result(register, lane)
            total = wave.vector(Reg(target.file, target.index + register, 1), lane)
            total = flushed(total, 32) if flushes else total
            fresh = False
            for number in range(shape.depth // 2):
                group, element = of_a[number]
                here = group * shape.rows + i
                index = raw(wave, inst["idx"], here, 32) >> part * 32 // sets + 2 * element & 3
                other, place = of_b[number // 2 * 4 + index]
                x, y = a[here, element], b[other * shape.rows + j, place]
                total = x * y + total & M32 if shape.kind == "i8" else floats.fused(x, y, total, 32)
                fresh |= shape.kind != "i8" and floats.is_nan(total, 32)
            results[register, lane] = flushed(total, 32) if flushes else total, fresh
    for (register, lane), (total, fresh) in results.items():
        reg = Reg(target.file, target.index + register, 1)
        wave.set_vector(reg, lane, total)
        if fresh:
            wave.free[reg.file, reg.index, lane] = Freedom(frozenset({NEW_NAN}), 32, 0)


def _compressed(shape: Matrix, place: tuple[int, int]) -> int:
    """Which of the elements that are there of a row of A has (group of lanes, element). Of 32 bytes of B in a lane A's
    bytes lie in fours, which are scattered (hip-fpsan, amdgcn_smfmac.hpp)."""
    group, element = place
    if shape.per_lane != 32:
        return group * (shape.per_lane // 2) + element
    four, byte = divmod(element, 4)
    if shape.rows == 16:
        return 32 * (group // 2) + 16 * (four % 2) + 8 * (group % 2) + 4 * (four // 2) + byte
    return 16 * group + 8 * (four % 2) + 4 * (four // 2) + byte


def _whole(shape: Matrix, place: tuple[int, int]) -> int:
    """The place in the depth of B's (group of lanes, element): in eights in turn, where a lane has 256 bits."""
    group, element = place
    if shape.per_lane * (2 if shape.kind in ("f16", "bf16") else 1) != 32:
        return group * shape.per_lane + element
    return (element // 8 * (LANES // shape.rows) + group) * 8 + element % 8


def _addend(wave: Wave, inst: Inst, register: int, lane: int, width: int) -> int:
    operand = inst["src2"]
    if operand.reg is None:
        return operand.value & ((1 << width) - 1)
    words = width // 32
    return wave.vector(Reg(operand.reg.file, operand.reg.index + register * words, words), lane)


def _scale_lane(row: Matrix, lane: int, element: int, bits: int) -> int:
    """Which lane has the scale: those of the first 32 of the depth, then those of the next."""
    group, inside = divmod(lane, row.rows)
    turn, place = divmod(element, 16 if bits == 8 else 32)
    k = (group + turn * (LANES // row.rows)) * (16 if bits == 8 else 32) + place
    return inside + row.rows * (k // 32)


def _elements(wave: Wave, reg: Reg | None, row: Matrix, flushes: bool, kind: str, count: int = 0,
              scales: list[int] | None = None) -> dict[tuple[int, int], int]:
    """(lane, element) to the bits of it in the type of D."""
    assert reg is not None
    bits = {"f32": 32, "xf32": 32, "f16": 16, "bf16": 16, "i8": 8, "fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6,
            "fp4": 4, "f64": 64}[kind]
    found = {}
    for lane in range(LANES):
        whole = wave.vector(reg, lane)
        for element in range(count or row.per_lane):
            part = whole >> bits * element & ((1 << bits) - 1)
            if flushes:
                part = flushed(part << 16, F32.bits) >> 16 if kind == "bf16" else flushed(part, F16.bits)
            if kind == "f16":
                part = floats.resized(part, F16.bits, F32.bits)
            elif kind == "bf16":
                part <<= 16
            elif kind == "i8":
                part = part - 256 if part >> 7 else part
            elif kind == "xf32":  # the mantissa has 10 bits, the others are cut off
                part &= 0xFFFFE000
            elif kind in FORMATS:
                small = FORMATS[f"{kind} fnuz" if wave.fnuz_floats and bits == 8 else kind]
                scale = scales[_scale_lane(row, lane, element, bits)] if scales else 0x3F800000
                part = widened(small, part, scale, "f32")
            found[lane, element] = part
    return found
