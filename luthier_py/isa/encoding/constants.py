"""Inline constants and literals: operand encodings to the bits that the instruction sees, and back.

In: a source encoding (128..208, 240..248, 255) with the operand's type. Out: bits at the operand's width.
Sources: AMD ISA manuals ("Inline constants"); for packed types LLVM's getInlineEncodingV216, which records
what the hardware does: integers are sign-extended 32-bit values; floats are one f16 in the low half for
packed f16, and the f32 pattern for packed integers.
"""

from __future__ import annotations

import struct
from functools import cache

LITERAL = 255
LITERAL64 = 254
ZERO = 128
FLOATS = {240: 0.5, 241: -0.5, 242: 1.0, 243: -1.0, 244: 2.0, 245: -2.0, 246: 4.0, 247: -4.0}
INVERSE_TWO_PI = 248  # 1 / (2 * pi), rounded to the operand's format
_INVERSE_TWO_PI_BITS = {"e": 0x3118, "f": 0x3E22F983, "d": 0x3FC45F306DC9C882}


def is_constant(code: int) -> bool:
    """Whether a source encoding is an inline constant: an integer from -16 to 64, or one of nine floats. Not a
    literal."""
    return ZERO <= code <= 208 or 240 <= code <= INVERSE_TWO_PI


def width_of(type_name: str) -> int:
    """Bits of one operand of LLVM's OperandType ``type_name``; packed pairs of 16 count as 32."""
    if type_name.endswith("64"):
        return 64
    if "V2" in type_name:
        return 32
    return 16 if "16" in type_name else 32


def float_format(type_name: str) -> str:
    """struct code of the format in which float constants reach an operand of this type."""
    if "64" in type_name:
        return "d"
    packed_integers = "V2INT16" in type_name
    return "e" if "16" in type_name and not packed_integers else "f"


@cache
def constant_bits(code: int, type_name: str) -> int:
    """What inline constant ``code`` is worth in an operand of type ``type_name``."""
    if code <= 208:
        value = code - ZERO if code <= 192 else 192 - code
        return value & ((1 << width_of(type_name)) - 1)
    layout = float_format(type_name)
    if code == INVERSE_TWO_PI:
        if "BF16" in type_name:
            return _INVERSE_TWO_PI_BITS["f"] >> 16
        return _INVERSE_TWO_PI_BITS[layout]
    if "BF16" in type_name:
        return int.from_bytes(struct.pack("<f", FLOATS[code]), "little") >> 16
    return int.from_bytes(struct.pack("<" + layout, FLOATS[code]), "little")


def literal_bits(literal: int, type_name: str, signed: bool) -> int:
    """What a 32-bit literal is worth: the high half of an f64, extended for integers of 64 bits, else cut."""
    if type_name.endswith("FP64"):
        return literal << 32
    width = width_of(type_name)
    if width == 64:
        return (literal | (0xFFFFFFFF << 32)) if signed and literal >> 31 else literal
    return literal & ((1 << width) - 1)


@cache
def inline_codes(type_name: str) -> dict[int, int]:
    """Bits at the operand's width -> inline constant, for every inline constant of the type."""
    codes = [*range(240, 249), *range(ZERO, 209)]  # integers win where both exist
    return {constant_bits(code, type_name): code for code in codes}
