"""What every instruction does, written once; see meaning for the form and algebra for the words."""

from __future__ import annotations

from luthier_py.isa.instruction import OpInfo
from luthier_py.isa.semantics import (
    cdna4,
    compare,
    control,
    conversions,
    floats,
    lds,
    matrix,
    memory,
    scalar,
    steps,
    vector,
)
from luthier_py.isa.semantics.meaning import Lanes, Meaning, Scalar, Signature, SignaturePart, rows

__all__ = [
    "Lanes", "Meaning", "Scalar", "Signature", "SignaturePart", "cdna4", "compare", "control", "conversions", "floats",
    "lds", "matrix", "meaning", "memory", "rows", "scalar", "steps", "vector",
]


def meaning(op: OpInfo) -> Meaning | None:
    """The row of ``op``'s operation; None if it has none yet."""
    return rows().get(op.base)
