"""The meaning of an opcode, from the rows of all modules here that declare some: importing this imports them."""

from __future__ import annotations

from functools import cache

from luthier_py.isa.encoding.dual import is_dual, operations
from luthier_py.isa.encoding.instruction import OpInfo
from luthier_py.isa.semantics import (  # noqa: F401 (each declares rows)
    bfloats,
    cdna4,
    compare,
    control,
    conversions,
    crossings,
    dots,
    elements,
    floats,
    images,
    lds,
    matrix,
    memory,
    rdna,
    scalar,
    scalar_floats,
    scaled_floats,
    small_floats,
    steps,
    transfers,
    vector,
    wave_matrices,
)
from luthier_py.isa.semantics.meaning import Dual, Meaning, rows

__all__ = ["find_meaning", "rows"]


def find_meaning(op: OpInfo) -> Meaning | None:
    """The row of ``op``'s operation; None if it has none yet."""
    row = rows().get(op.base)
    return _pair(op.base) if row is None and is_dual(op) else row


@cache
def _pair(base: str) -> Dual | None:
    first, second = (rows().get(name) for name in operations(base))
    return Dual((first, second)) if first is not None and second is not None else None
