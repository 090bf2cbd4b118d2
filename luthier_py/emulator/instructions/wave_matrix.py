"""WMMA and SWMMAC: calls of one support function for each shape (see matrix_function).

In: an instruction and its WaveMatrix row. Out: a call. Modifiers (RDNA 3 ISA, 7.9): neg_lo and neg_hi of A and B negate
the elements in lower and upper halves, of integers neg_lo says that they are signed; those of C are negation and
magnitude. op_sel of C chooses the half of C and D on RDNA 3. Which matrix registers are used again
(matrix_a_reuse) is for caches alone.
"""

from __future__ import annotations

import struct

from luthier_py.base.errors import Unsupported
from luthier_py.emulator.instructions.matrix import SCALE_ROW, call, scale, vector_place
from luthier_py.emulator.instructions.operands import NEG, NEG_HI, OP_SEL, field
from luthier_py.emulator.instructions.wave_code import WaveCode
from luthier_py.emulator.native.matrix_function import Arguments, MatrixOptions, in_halves
from luthier_py.isa.encoding.instruction import Inst
from luthier_py.isa.semantics.matrix import BITS
from luthier_py.isa.semantics.wave_matrices import GROUP, WaveMatrix, WaveMixedMatrix, WaveTile

_INDEX_KEYS = "index_key_8bit", "index_key_16bit", "index_key_32bit"
_LOW, _HIGH = 0x8000, 0x80000000


def wave_matrix(w: WaveCode, inst: Inst, row: WaveMatrix) -> None:
    """Everything before it is written first."""
    modifiers = [field(inst, f"src{number}_modifiers") for number in range(3)]
    signs = bool(modifiers[0] & NEG), bool(modifiers[1] & NEG)
    tile = row.tile(w.wave_size, w.settings.target.replicates_matrices, signs)
    if BITS[row.outcome] == 16 and w.context.mode.keeps_finite:
        raise Unsupported(f"{inst.op.mnemonic} with MODE.FP16_OVFL: no manual at hand says what becomes of infinity")
    integers = row.addend == "i32"
    extras: Arguments = []
    if row.sparse:
        extras += [("ptr", vector_place(w, inst, "src2")), ("i32", str(first_bit(inst, tile)))]
    if in_halves(tile):
        extras += [("i32", "16" if modifiers[2] & OP_SEL else "0")]
    options = MatrixOptions(clamped=bool(field(inst, "clamp")), signs=not integers and any(modifiers))
    if options.signs:
        extras += sign_masks(tile, modifiers, row.sparse)
    addend = "vdst" if row.sparse else "src2"
    call(w, inst, tile, options, extras, addend, None if row.sparse else addend_bits(inst, row.addend))


def wave_mixed(w: WaveCode, inst: Inst, row: WaveMixedMatrix) -> None:
    """With the kinds that the instruction says, and with scales."""
    matrix = row.of(field(inst, "matrix_a_fmt"), field(inst, "matrix_b_fmt"))
    formats = [field(inst, f"matrix_{side}_scale_fmt") for side in "ab"]
    if matrix is None or max(formats) > 2:
        raise Unsupported(f"{inst.op.mnemonic} with formats that there are not")
    tile, extras = matrix.tile(w.wave_size, False), Arguments()
    modifiers = [0, 0, field(inst, "src2_modifiers")]
    if modifiers[2]:
        extras += sign_masks(tile, modifiers)
    for number, side in enumerate("ab" if row.fewer else ""):
        dwords = 32 // row.fewer
        pointer = scale(w, inst, f"scale_src{number}", SCALE_ROW + 2 * number, dwords)
        upper = field(inst, f"matrix_{side}_scale")
        if upper and side == "a" and row.rows > GROUP:
            raise Unsupported(f"{inst.op.mnemonic} with matrix_a_scale, whose rows take all lanes")
        extras.append(("ptr", w.at(pointer, 4 * GROUP) if upper else pointer))
    options = MatrixOptions(signs=bool(modifiers[2]), fewer=row.fewer, formats=formats[0] + 4 * formats[1])
    call(w, inst, tile, options, extras, constant=addend_bits(inst, "f32"))


def first_bit(inst: Inst, tile: WaveTile) -> int:
    """Of the index, by the key that the instruction has."""
    key = next((field(inst, name) for name in _INDEX_KEYS if inst.find(name) is not None), 0)
    bit = key * tile.index_bits
    if key and bit >= 32:
        raise Unsupported(f"{inst.op.mnemonic} with an index key, where the index takes all bits that there are")
    return bit


def sign_masks(tile: WaveTile, modifiers: list[int], sparse: bool = False) -> Arguments:
    """What A and B are combined with by exclusive or, and C by and, then by exclusive or."""
    flips = []
    for number, kind in enumerate(tile.kinds):
        whole = BITS[kind] == 32
        low = (_HIGH if whole else _LOW) if modifiers[number] & NEG else 0
        flips.append(low | (_HIGH if modifiers[number] & NEG_HI and not whole else 0))
    both = _LOW | _HIGH if BITS[tile.addend] == 16 else _HIGH
    of_c = 0 if sparse else modifiers[2]
    keep = ~both & 0xFFFFFFFF if of_c & NEG_HI else 0xFFFFFFFF
    return [("i32", str(bits)) for bits in (*flips, keep, both if of_c & NEG else 0)]


def addend_bits(inst: Inst, kind: str) -> int | None:
    """Of a constant, in a register; None where C is no constant. LLVM gives those of RDNA 3 as f64."""
    operand = inst["src2"]
    if operand.reg is not None:
        return None
    value = operand.value
    if value >> 32 and value >> 32 != 0xFFFFFFFF:  # a float
        number = struct.unpack("<d", struct.pack("<Q", value))[0]
        value = struct.unpack("<H", struct.pack("<e", number))[0] if kind == "f16" else (
            struct.unpack("<I", struct.pack("<f", number))[0] >> (16 if kind == "bf16" else 0))
    return (value & 0xFFFF) * 0x10001 if BITS[kind] == 16 else value & 0xFFFFFFFF
