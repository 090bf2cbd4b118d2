"""Lanes that read other lanes of a row, and vector registers that M0 names.

In: nothing. Out: data rows. Sources: RDNA 3 ISA, 16.12 (V_PERMLANE16_B32), 16.8 (V_MOVRELS_B32 and its like);
RDNA 4 ISA, 16.12 (V_PERMLANE16_VAR_B32). For groups of gfx1250: HIP, amd_warp_functions.h (__shfl and its like, with
comments on V_PERMLANE_BCAST_B32 and _UP_), and a public test of lane permutes by AMD's CDNA 5 ISA, 15.14.
"""

from __future__ import annotations

from enum import Enum, auto

from luthier_py.base.records import dataclass
from luthier_py.isa.semantics.meaning import Lanes, declare, signature


@dataclass(frozen=True, slots=True)
class GatherInRow:
    """vdst = src0 of a lane of the row of 16, of the other row of the same 32 if ``other_row``.

    Which lane: src2:src1 has four bits for each lane of a row, or if ``own`` src1 of the lane itself. One outside EXEC
    is read with op_sel[0] (FI), gives 0 with op_sel[1] (BOUND_CTRL), and else the lane that asks for it is not written.
    """

    other_row: bool
    own: bool


for _word, _other_row in ("V_PERMLANE16", False), ("V_PERMLANEX16", True):
    declare(f"{_word}_B32", GatherInRow(_other_row, own=False))
    declare(f"{_word}_VAR_B32", GatherInRow(_other_row, own=True))


class GatherInGroup(Enum):
    """vdst = src0 of a lane of the group of src2 lanes that a lane is in; src1 says which. No source says what a lane
    outside EXEC gives, or what groups of another size than a power of two are."""

    ONE = auto()     # number src1 of the group, which counts by its lowest bits
    BELOW = auto()   # so many below; the lane itself where the group has none
    ABOVE = auto()
    CROSSED = auto()  # whose number differs in these bits; the lane itself where that is behind the group
    ADDRESS = auto()  # vdst = where DS_BPERMUTE_B32 finds lane number src0 of the group of src1 lanes


declare("V_PERMLANE_BCAST_B32", GatherInGroup.ONE)
declare("V_PERMLANE_UP_B32", GatherInGroup.BELOW)
declare("V_PERMLANE_DOWN_B32", GatherInGroup.ABOVE)
declare("V_PERMLANE_XOR_B32", GatherInGroup.CROSSED)
declare("V_PERMLANE_IDX_GEN_B32", GatherInGroup.ADDRESS)


@dataclass(frozen=True, slots=True)
class RelativeMove:
    """``row`` on other registers: bits of M0, as (first, how many), are added to the number of src0, and of vdst."""

    source: tuple[int, int] | None
    target: tuple[int, int] | None
    row: Lanes


_ALL, _LOW, _HIGH = (0, 32), (0, 10), (16, 10)
_MOVE = Lanes(signature("u32 -> u32"), lambda a: a)
_SWAP = Lanes(signature("u32 old -> u32 u32"), lambda a, old: (a, old))
declare("V_MOVRELS_B32", RelativeMove(_ALL, None, _MOVE))
declare("V_MOVRELD_B32", RelativeMove(None, _ALL, _MOVE))
declare("V_MOVRELSD_B32", RelativeMove(_ALL, _ALL, _MOVE))
declare("V_MOVRELSD_2_B32", RelativeMove(_LOW, _HIGH, _MOVE))
declare("V_SWAPREL_B32", RelativeMove(_LOW, _HIGH, _SWAP))
