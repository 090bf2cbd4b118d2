"""Whether a clone is what a pass promises, checked behind each pass where LUTHIER_VERIFY=1 (program/ir/verifier).

In: a clone, and the pass that made it. Out: nothing, or AssertionError with pass, clone, item and fault. From the first
pass to the last:

* order: the application's instructions, or their replacements, are there, each once, in their order; what is left
  out is whole blocks, which nothing falls into. No slice is empty, and none has an instruction that moves control: its
  target would be the original's.
* labels: each occurs once; what a branch or a reference names occurs; that of a block is before the block's first
  instruction.
* reasons: a single is the application's, or inserted by an edit, or replaces one of the application's by an edit
  INSTEAD. A run is a hook's, and not empty; of a hook only branches are singles.
* targets: branches, and nothing else, name the label that they go to; inserted instructions with a placeholder for a
  literal, and no others, have the reference that fills it in.

What inserted code does, and with which registers, is not checked here: the proof checks that by the bytes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from luthier_py.isa import OpFlag
from luthier_py.isa.build import PLACEHOLDER, PLACEHOLDER64
from luthier_py.isa.columns import Columns
from luthier_py.rewrite.inject.items import Cause, Clone, Item, Label, Run, Single, Slice

MOVES = OpFlag.BRANCH | OpFlag.CALL  # what may not be copied as it is
LEAVES = OpFlag.TERMINATOR | OpFlag.CALL  # control does not come behind it, or not for certain


def verify(clone: Clone, behind: str) -> None:
    """``behind``: the name of the pass. Raises AssertionError at the first fault."""
    for item, fault in (*_order(clone), *_labels(clone), *_singles(clone)):
        at = clone.items.index(item) if item in clone.items else len(clone.items)
        raise AssertionError(f"behind {behind}, clone {clone.name} is wrong at item {at}, {_describe(item)}: {fault}")


def _describe(item: Item | None) -> str:
    if isinstance(item, Label):
        return "a label" if item.address is None else f"the label of 0x{item.address:x}"
    if isinstance(item, Slice):
        return f"a slice from {item.start} to {item.stop}"
    if isinstance(item, Run):
        return f"a run of {item.edit.cause.value} {item.edit.number} {item.edit.name}"
    if isinstance(item, Single):
        return f"{item.inst.op.mnemonic}{'' if item.origin is None else f' of 0x{item.origin.pc:x}'}"
    return "the end"


def _own_code(clone: Clone) -> Iterator[tuple[Item, Columns, int, int]]:
    """Items that stand for the application's code: which, from where to where."""
    for item in clone.items:
        if isinstance(item, Slice):
            yield item, item.code, item.start, item.stop
        elif isinstance(item, Single) and item.origin is not None:
            yield item, item.origin.code, item.origin.at, item.origin.at + 1


def _order(clone: Clone) -> Iterator[tuple[Item | None, str]]:
    own = list(_own_code(clone))
    if not own:
        return
    code, at = own[0][1], 0
    moves = code.find_flagged(MOVES)
    for item, of, start, stop in own:
        if of is not code or start < at or start >= stop:
            yield item, "it is empty, or the application's instructions are not in their order, each once"
        elif not _may_lack(clone, code, at, start):
            yield item, "an instruction of the application is missing before it"
        first = bisect_left(moves, start)
        if isinstance(item, Slice) and first < len(moves) and moves[first] < stop:
            yield item, f"0x{code.pcs[moves[first]]:x} is copied, but moves"
        at = stop
    if not _may_lack(clone, code, at, len(code)):
        yield None, "an instruction of the application is missing"


def _may_lack(clone: Clone, code: Columns, start: int, stop: int) -> bool:
    """Whether places from ``start`` to ``stop`` may be in no item: they are blocks that the clone does not have."""
    if start == stop:
        return True
    first, last = int(code.pcs[start]), int(code.pcs[stop - 1])
    before = code.inst(start - 1).op.flags if start else OpFlag.TERMINATOR
    return bool(before & LEAVES) and not before & OpFlag.CONDITIONAL and not any(
        first <= address <= last for address in clone.labels)


def _labels(clone: Clone) -> Iterator[tuple[Item | None, str]]:
    standing = Counter(item for item in clone.items if isinstance(item, Label))
    yield from ((label, "the label stands twice") for label, count in standing.items() if count > 1)
    for label in clone.labels.values():
        if label not in standing:
            yield None, f"{_describe(label)} stands nowhere"
    at = 0
    for item in reversed(clone.items):
        if isinstance(item, Slice):
            at = item.pc
        elif isinstance(item, Label):
            if item.address not in (None, at):
                yield item, "the label stands elsewhere"
        elif isinstance(item, Single):
            named = [item.jump]
            if item.reference is not None:
                named += item.reference.base, item.reference.target.label
            if not standing.keys() >= {*named} - {None}:
                yield item, "it names a label that stands nowhere"
            at = at if item.origin is None else item.origin.pc


def _singles(clone: Clone) -> Iterator[tuple[Item | None, str]]:
    for item in clone.items:
        if isinstance(item, Run) and (item.start >= item.stop or item.edit.cause is not Cause.CALL):
            yield item, "the run is empty, or no hook's"
        if not isinstance(item, Single):
            continue
        if item.origin is None and item.edit is None or item.instead != (
                item.edit is not None and item.edit.cause is Cause.INSTEAD and item.origin is not None):
            yield item, "it is neither the application's nor inserted, or both"
        if item.payload and (item.edit is None or item.edit.cause is not Cause.CALL or item.jump is None):
            yield item, "of hooks only branches stand for themselves"
        if (item.jump is None) == bool(item.inst.op.flags & OpFlag.BRANCH):
            yield item, "it names no place to go to, or is no branch"
        waiting = item.inst.literal in (PLACEHOLDER, PLACEHOLDER64)
        if item.inserted and not item.payload and (item.reference is None) == waiting:
            yield item, "its literal is not filled in, or is none"
