"""Numbers of the formats of floats, as people read them."""

from __future__ import annotations

import numpy as np

from luthier_py.isa import Reg
from luthier_py.isa.properties.float_results import FloatFormat, FloatPart

_TYPES = {FloatFormat.F16: ("<u2", "<f2"), FloatFormat.F32: ("<u4", "<f4"), FloatFormat.F64: ("<u8", "<f8")}


def number(kind: FloatFormat, bits: int) -> float:
    """The value of bits."""
    if kind is FloatFormat.BF16:
        kind, bits = FloatFormat.F32, bits << 16
    unsigned, floating = _TYPES[kind]
    return float(np.array(bits, unsigned).view(floating))


def operand(part: FloatPart, bits: int) -> float:
    """What the instruction makes of an operand: its modifiers are applied."""
    sign = 1 << part.format.bits - 1
    bits = part.place if not isinstance(part.place, Reg) else bits
    bits = bits & ~sign if part.absolute else bits
    return number(part.format, bits ^ sign if part.negate else bits)
