"""Corners of operations: operands or settings of MODE for which sources leave the result open, or disagree.

In: an operation's name. Out: what is open of it, what is done here, and where that is documented. Invariant: whatever
is not listed here, and is no implementation-defined result that `readers/implementation_defined` finds in a meaning,
has a source."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple


class OpenCorner(NamedTuple):
    """``names``: of operations, a regular expression for the whole of one; ``before``: a generation, if later ones have
    no such corner."""

    names: str
    open: str
    here: str
    source: str
    before: int = 99


CORNERS = (
    OpenCorner(r"V_DIV_SCALE_F(32|64)", "the first source is neither the denominator nor the numerator",
               "steps that scale one of these leave it as it is",
               "RDNA3 ISA, V_DIV_SCALE_F32, asks for one of them, and so does AMD's rocjitsu (division.h), which was "
               "held to gfx1100 and gfx1201"),
    OpenCorner(r"V_DIV_FIXUP_F(16|32|64)", "quotients out of range where MODE does not round to the nearest",
               "infinity or zero", "RDNA3 ISA, V_DIV_FIXUP_F32, has these; rocjitsu (division.h) rounds by MODE"),
    OpenCorner(r"V_CVT_(RPI|FLR)_I32_F32", "NaN",
               "0", "RDNA4 ISA, V_CVT_NEAREST_I32_F32, has this; gfx1201 gives the bound on the side of its sign "
               "(rocjitsu, conversion.h)"),
    OpenCorner(r"V_CVT_PKRTZ_F16_F32", "denormal results where MODE flushes those of f16",
               "they stay", "no manual says it: RDNA3 ISA, V_CVT_PK_RTZ_F16_F32"),
    OpenCorner(r"(BUFFER|FLAT|GLOBAL|IMAGE|DS)_(ATOMIC_)?(F?MIN|F?MAX)(_RTN)?(_F32|_F64)?", "NaN in memory",
               "as IEEE 754-2008 has it: a signalling one stays, a quiet one does not",
               "MI200 ISA, 9.5.3, has this; RDNA3 ISA, BUFFER_ATOMIC_MIN_F32, compares with <, so any would stay",
               before=12),
)


@cache
def corners(base: str, generation: int) -> tuple[OpenCorner, ...]:
    """The open corners of an operation on targets of that generation."""
    return tuple(each for each in CORNERS if generation < each.before and re.fullmatch(each.names, base))
