"""Branches that do not reach: a clone whose branches all do.

In: a clone. Out: the same with islands, lone branches that need no register and no SCC. Invariant: every direct branch
reaches its target within 16 bits of displacement, and control may come to every island and around it. Islands are in
groups, over which the code before them jumps if it continues there, and branches to the same target share them: so a
function of any size is done in few passes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence

from luthier_py.base.records import replace
from luthier_py.isa import InstructionSet, OpFlag
from luthier_py.isa.build import jump, nothing
from luthier_py.isa.hazards.wait_states import unsafe_displacement
from luthier_py.rewrite.inject.items import Cause, Clone, Edit, Item, Label, Single, Slice

REACH_BYTES = range(-4 * 32768, 4 * 32768)  # of s_branch: signed 16-bit dwords (AMD ISA, SOPP)
STEP_BYTES = 4 * 28000   # from a branch to an island, at most: leaves room for islands that come later
GROUP_BYTES = 4 * 7000   # from one group of islands to the next
_EDIT = Edit(Cause.ISLAND)


def relax(isa: InstructionSet, clone: Clone) -> Clone:
    """The clone with islands where branches would not reach, and with s_nop behind those whose displacement
    hangs the target (isa.hazards)."""
    items: Sequence[Item] = clone.items
    while True:
        distances = _distances(items)
        if any(distance not in REACH_BYTES for distance in distances.values()):
            items = _with_islands(isa, _cut(items))
        elif unsafe := {n for n, distance in distances.items() if unsafe_displacement(isa.target, distance // 4)}:
            more = Single(nothing(isa), edit=_EDIT)
            items = [new for n, item in enumerate(items) for new in (item, *[more] * (n in unsafe))]
        else:
            return replace(clone, items=tuple(items))


def _distances(items: Sequence[Item]) -> dict[int, int]:
    """How far branches go, in bytes from their ends, by number."""
    starts = offsets(items)
    at = {item: start for item, start in zip(items, starts, strict=True) if isinstance(item, Label)}
    return {number: at[item.jump] - starts[number] - item.size_bytes
            for number, item in enumerate(items) if isinstance(item, Single) and item.jump is not None}


def offsets(items: Sequence[Item]) -> list[int]:
    """Where each item starts, in bytes."""
    found, at = [], 0
    for item in items:
        found.append(at)
        if not isinstance(item, Label):
            at += item.size_bytes
    return found


def _cut(items: Sequence[Item]) -> list[Item]:
    """The items, with slices cut so often that islands may stand between them."""
    found: list[Item] = []
    for item in items:
        while isinstance(item, Slice) and (at := item.place(item.pc + GROUP_BYTES)) < item.stop:
            *before, item = item.cut(at)
            found += before
        found.append(item)
    return found


def _with_islands(isa: InstructionSet, items: Sequence[Item]) -> list[Item]:
    """The items with islands, through which branches that do not reach go now."""
    starts, distances = offsets(items), _distances(items)
    groups = _group_numbers(items, starts)
    places = [starts[number] for number in groups]
    islands: dict[tuple[int, Label], Label] = {}
    changed: dict[int, Item] = {}
    for number, distance in distances.items():
        branch = items[number]
        if distance not in REACH_BYTES and isinstance(branch, Single) and branch.jump is not None:
            at = starts[number]
            which = bisect_right(places, at + STEP_BYTES) - 1 if distance > 0 else bisect_left(places, at - STEP_BYTES)
            island = islands.setdefault((groups[which], branch.jump), Label())
            changed[number] = replace(branch, jump=island)
    standing: dict[int, list[Item]] = defaultdict(list)
    for (group, destination), island in islands.items():
        standing[group] += [island, Single(jump(isa), edit=_EDIT, jump=destination)]
    out: list[Item] = []
    for number, item in enumerate(items):
        if number in standing:
            over = Label()
            enters = _goes_on(items[number - 1])
            out += [Single(jump(isa), edit=_EDIT, jump=over), *standing[number], over] if enters else standing[number]
        out.append(changed.get(number, item))
    return out


def _goes_on(item: Item) -> bool:
    """Whether control may fall through an item to the next."""
    if isinstance(item, Label):
        return True
    flags = (item.inst if isinstance(item, Single) else item.inst(item.stop - 1)).op.flags
    return OpFlag.TERMINATOR not in flags or OpFlag.CONDITIONAL in flags


def _group_numbers(items: Sequence[Item], starts: Sequence[int]) -> list[int]:
    """Items before which islands may stand: not between an instruction and the label of its end."""
    bases = {item.reference.base for item in items if isinstance(item, Single) and item.reference is not None}
    found, last = [], 0
    for number, start in enumerate(starts):
        if start >= last + GROUP_BYTES and items[number] not in bases:
            found.append(number)
            last = start
    return found
