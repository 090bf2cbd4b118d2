"""Proof that an instrumented copy is harmless, from the original's bytes, the copy's, and a claim.

So far: the copy has every loaded byte of the original where it was, and the clones that the claim names.
"""

from __future__ import annotations

from luthier_py.errors import CheckFailed, Location
from luthier_py.loader import load
from luthier_py.proof.claim import Claim

__all__ = ["Claim", "prove"]


def prove(original: bytes, patched: bytes, claim: Claim, apart: bool = False) -> None:
    """Raises CheckFailed, which says where, at which instruction, and what is wrong. ``apart``: the copy has nothing of
    the original in it, and is bound to one that lies at its own addresses."""
    old, new = load(original), load(patched)
    for function in claim.functions:
        symbol = new.symbol(function.symbol)
        if symbol is None:
            raise CheckFailed(f"the copy has no symbol {function.symbol}", Location(function.name))
        for stretch in () if apart else function.stretches:
            if old.read(stretch.original, stretch.size) != new.read(stretch.original, stretch.size):
                raise CheckFailed("the copy changes the original's code", Location(function.name, stretch.original))
