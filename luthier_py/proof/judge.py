"""The whole proof of one copy, in the order in which its parts rely on each other.

In: the original, the copy and the claim. Out: nothing, or CheckFailed. Invariant: the one that the package
states in its docstring.
"""

from __future__ import annotations

from luthier_py.base.errors import CheckFailed
from luthier_py.binary.loader import LastObject, load
from luthier_py.isa import instruction_set
from luthier_py.proof.claim import Claim
from luthier_py.proof.descriptors import check_kernels
from luthier_py.proof.objects import check_apart, check_objects
from luthier_py.proof.whole import Proved, prove_functions

_ORIGINAL = LastObject()
"""The proof's own: it believes nothing that the rewriter has read."""


def prove(original: bytes, patched: bytes, claim: Claim, apart: bool = False) -> None:
    """Raises CheckFailed, which says where, at which instruction, and what is wrong. ``apart``: the copy is standalone,
    and is bound to an original that lies at its own addresses."""
    if not claim.functions:
        if patched != original and not apart:
            raise CheckFailed("the copy is not the original, though nothing was inserted")
        return
    old, new = _ORIGINAL.load(original), load(patched)
    if apart:
        check_apart(old, new, claim)
    else:
        check_objects(old, new, claim)
    proved: dict[int, Proved] = {}
    for wave_size in sorted({function.wave_size for function in claim.functions}):
        if wave_size not in old.target.wave_sizes:
            raise CheckFailed(f"the claim has waves of {wave_size} lanes, and the target has not")
        isa = instruction_set(old.target, wave_size)
        proved |= prove_functions(isa, old, new, claim, [f for f in claim.functions if f.wave_size == wave_size], apart)
    check_kernels(old, new, claim, proved)
