"""exp2, log2, sin and cos of vectors, as LLVM IR (polynomials in double precision)."""

from __future__ import annotations


def transcendental(name: str) -> str:
    raise NotImplementedError(name)
