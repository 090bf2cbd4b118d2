"""V_FMA_F16 rounds once, and gives the first NaN of several."""

from __future__ import annotations

import random
import struct
from fractions import Fraction

import numpy as np
from emulated import ISA, LANES, Bench, code_object

from luthier_py.isa import sgpr, vgpr

CORNERS = (0, 1, 0x3FF, 0x400, 0x1400, 0x3BFF, 0x3C00, 0x3C01, 0x7BFF, 0x7C00, 0x7D01, 0x7E02)
ROUNDS = 40


def fma(*operands: int) -> int:
    """Bits of the sum of exact numbers, rounded once."""
    for bits in operands:
        if bits & 0x7FFF > 0x7C00:
            return bits | 0x200
    a, b, c = (float(np.uint16(bits).view(np.float16)) for bits in operands)
    if not np.isfinite([a, b, c]).all():
        with np.errstate(all="ignore"):
            found = np.float64(a) * b + c
        return 0xFE00 if np.isnan(found) else int(np.float16(found).view(np.uint16))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    with np.errstate(over="ignore"):
        return int(np.float16(float(exact) if exact else a * b + c).view(np.uint16))


def test_halves_are_multiplied_and_added_with_one_rounding() -> None:
    chance = random.Random(1)
    sets = [chance.choices([*CORNERS, *(0x8000 | corner for corner in CORNERS)], k=3 * LANES) for _ in range(ROUNDS)]
    sets += [chance.choices(range(1 << 16), k=3 * LANES) for _ in range(ROUNDS)]
    near = range(0x2C00, 0x4C00)  # of which one does not vanish in the others
    sets += [[chance.choice(near) | chance.choice((0, 0x8000)) for _ in range(3 * LANES)] for _ in range(ROUNDS)]
    load = [ISA.make("global_load_dword", vgpr(2 + row), vgpr(1), sgpr(0, 2), offset=4 * row * LANES).raw
            for row in range(3)]
    rows = [("s_load_dwordx2", sgpr(0, 2), sgpr(4, 2), 0), ("s_waitcnt", 0), ("v_lshlrev_b32", vgpr(1), 2, vgpr(0)),
            *load, ("s_waitcnt", 0), ISA.make("v_fma_f16", vgpr(2), vgpr(2), vgpr(3), vgpr(4)).raw,
            ISA.make("global_store_dword", vgpr(1), vgpr(2), sgpr(0, 2)).raw, ("s_endpgm",)]
    code = code_object({"k": rows})
    for given in sets:
        left = Bench(struct.pack(f"<{3 * LANES}I", *given)).run(code, "k").buffers[0]
        found = [word & 0xFFFF for word in struct.unpack(f"<{3 * LANES}I", left)[:LANES]]
        operands = list(zip(*(given[LANES * row : LANES * (row + 1)] for row in range(3)), strict=True))
        expected = [fma(*each) for each in operands]
        assert found == expected, next(each for each in zip(operands, found, expected, strict=True)
                                       if each[1] != each[2])
