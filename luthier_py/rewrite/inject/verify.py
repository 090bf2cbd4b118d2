"""Whether a clone is what its passes promise; asked between them, by tests and by whoever looks for a fault.

In: a clone. Out: nothing, or AssertionError that says what is wrong: a fault of ours, never of the input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from luthier_py.isa import OpFlag
from luthier_py.isa.build import PLACEHOLDER, PLACEHOLDER64
from luthier_py.rewrite.inject.items import Cause, Clone, Label, Run, Single, Slice

MOVES = OpFlag.BRANCH | OpFlag.CALL  # what may not be copied as it is


def verify(clone: Clone) -> None:
    """What holds from the first pass to the last."""
    for fault in (*_order(clone), *_labels(clone), *_singles(clone)):
        raise AssertionError(f"{clone.name}: {fault}")


def _order(clone: Clone) -> Iterator[str]:
    """The application's instructions: all of them, in their order, each once; nothing that moves is in a slice."""
    slices = [item for item in clone.items if isinstance(item, Slice)]
    if any(piece.start >= piece.stop for piece in slices):
        yield "a slice is empty"
    copied = [instr for piece in slices for instr in piece.instrs]
    yield from (f"0x{instr.pc:x} is copied, but moves" for instr in copied if instr.op.flags & MOVES)
    pcs = [pc for item in clone.items for pc in _pcs(item)]
    if pcs != sorted(set(pcs)):
        yield "the application's instructions are not in their order"
    if slices and pcs != slices[0].code.pcs.tolist():
        yield "an instruction of the application is missing"


def _pcs(item: object) -> list[int]:
    if isinstance(item, Slice):
        return [instr.pc for instr in item.instrs]
    return [item.origin.pc] if isinstance(item, Single) and item.origin is not None else []


def _labels(clone: Clone) -> Iterator[str]:
    """Labels stand once; what is named stands; a block's label stands before its first instruction."""
    standing = Counter(item for item in clone.items if isinstance(item, Label))
    singles = [item for item in clone.items if isinstance(item, Single)]
    references = [item.reference for item in singles if item.reference is not None]
    named = {*clone.labels.values(), *(item.jump for item in singles), *(reference.base for reference in references),
             *(reference.target.label for reference in references)} - {None}
    if any(count > 1 for count in standing.values()) or not named <= standing.keys():
        yield "a label stands twice, or nowhere"
    at = 0
    for item in reversed(clone.items):
        at = next(iter(_pcs(item)), at)
        if isinstance(item, Label) and item.address is not None and item.address != at:
            yield f"the label of 0x{item.address:x} stands elsewhere"


def _singles(clone: Clone) -> Iterator[str]:
    """Each has one reason to be there; branches name where they go, and literals that are filled in what they are."""
    for item in clone.items:
        if isinstance(item, Run) and (item.start >= item.stop or item.edit.cause is not Cause.CALL):
            yield "a run is empty, or no hook's"
        if not isinstance(item, Single):
            continue
        if item.origin is None and item.edit is None or item.instead != (
                item.edit is not None and item.edit.cause is Cause.INSTEAD and item.origin is not None):
            yield "an instruction is neither the application's nor inserted, or both"
        if item.payload and (item.edit is None or item.edit.cause is not Cause.CALL or item.jump is None):
            yield "of hooks only branches stand for themselves"
        if (item.jump is None) == bool(item.inst.op.flags & OpFlag.BRANCH):
            yield f"{item.inst} names no place to go to, or is no branch"
        waiting = item.inst.literal in (PLACEHOLDER, PLACEHOLDER64)
        if item.inserted and not item.payload and (item.reference is None) == waiting:
            yield f"{item.inst} is not filled in"
