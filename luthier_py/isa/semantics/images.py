"""Images without a sampler: loads, stores and atomics of one element, as data.

In: nothing. Out: rows. Sources: RDNA 3 ISA, 10.1, 10.2 and 10.4 (DMASK, D16, which registers have coordinates); what
elements are is in `elements`. Invariant: which components move is a matter of the instruction's dmask.
"""

from __future__ import annotations

from luthier_py.base.records import dataclass
from luthier_py.isa.semantics.meaning import declare
from luthier_py.isa.semantics.memory import Atomic, Modify


@dataclass(frozen=True, slots=True)
class ImageMove:
    """An element to registers, or the other way round; ``level``: the last coordinate is that of a mip level."""

    stores: bool
    level: bool = False


@dataclass(frozen=True, slots=True)
class ImageAtomic:
    """Of an element of 32 bits, or of 64 where dmask has twice as many bits."""

    modify: Modify
    kind: str = "u"

    def of(self, bits: int) -> Atomic:
        """The row for elements of ``bits``, 32 or 64."""
        return Atomic(self.modify, self.kind, bits)


@dataclass(frozen=True, slots=True)
class ImageQuery:
    """Sizes of a level, and how many levels there are (RDNA 4 ISA, 10.1: IMAGE_GET_RESINFO)."""


declare("IMAGE_GET_RESINFO", ImageQuery())
for _level, _suffix in (False, ""), (True, "_MIP"):
    declare(f"IMAGE_LOAD{_suffix}", ImageMove(False, _level))
    declare(f"IMAGE_STORE{_suffix}", ImageMove(True, _level))
for _word, _modify, _kind in (
    ("SWAP", Modify.SWAP, "u"), ("CMPSWAP", Modify.COMPARE_SWAP, "u"), ("ADD", Modify.ADD, "u"),
    ("SUB", Modify.SUB, "u"), ("SMIN", Modify.MIN, "i"), ("UMIN", Modify.MIN, "u"), ("SMAX", Modify.MAX, "i"),
    ("UMAX", Modify.MAX, "u"), ("AND", Modify.AND, "u"), ("OR", Modify.OR, "u"), ("XOR", Modify.XOR, "u"),
    ("INC", Modify.INC, "u"), ("DEC", Modify.DEC, "u"), ("FCMPSWAP", Modify.COMPARE_SWAP, "f"),
    ("FMIN", Modify.MIN, "f"), ("FMAX", Modify.MAX, "f"), ("ADD_FLT", Modify.ADD, "f"), ("MIN_FLT", Modify.MIN, "f"),
    ("MAX_FLT", Modify.MAX, "f"), ("PK_ADD_F16", Modify.ADD, "p"), ("PK_ADD_BF16", Modify.ADD, "b"),
):
    declare(f"IMAGE_ATOMIC_{_word}", ImageAtomic(_modify, _kind))
