"""Which lanes a payload runs in: whether EXEC comes back, and what happens in lanes that were not active at its start.

In: a payload's instructions and the ways between them. Out: Ways of a lane, and what it writes there. Invariant: it is
followed through every way that it may take, active at the start or not; a mask whose bit is not known with both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from luthier_py.base.records import dataclass
from luthier_py.isa import EXEC, Inst, InstructionSet, OpFlag
from luthier_py.isa.model.registers import SCALARS
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.control import Branch
from luthier_py.proof.lanes import ON, State, compute_needed_before, next_states
from luthier_py.proof.masks import MASKS, Change, change

START = 1 << 200  # a mask beside others: lanes that were active at the start
MOST_STATES = 1 << 19  # some 7 microseconds each
BOTH: tuple[State, State] = ((ON | START, ON | START), (ON | START, 0))

Jumps = list[tuple[int, ...]]


class Point(NamedTuple):
    """Before instruction ``at``, or at the end; with what is known of a lane there, if it is followed alone."""

    at: int
    state: State | None

    @property
    def on(self) -> bool:
        """Whether the lane is active."""
        return self.state is None or bool(self.state[1] & ON)


@dataclass(frozen=True, slots=True)
class Ways:
    """Where points lead, from ``starts`` on."""

    starts: tuple[Point, ...]
    onward: Mapping[Point, tuple[Point, ...]]


def ways_of_wave(jumps: Jumps) -> Ways:
    """All ways, whichever lanes take them."""
    return Ways((Point(0, None),), {Point(k, None): tuple(Point(to, None) for to in ways)
                                    for k, ways in enumerate(jumps)})


def ways_of_lanes(isa: InstructionSet, insts: Sequence[Inst], jumps: Jumps) -> Ways | None:
    """Those of a lane alone; None where there are too many."""
    changes = [change(isa, inst) for inst in insts]
    wanted = _solve_needed_masks(changes, jumps)
    starts = tuple(Point(0, state) for state in BOTH)
    onward: dict[Point, tuple[Point, ...]] = {}
    work = list(starts)
    while work:
        point = work.pop()
        if point in onward or point.state is None:
            continue
        if len(onward) > MOST_STATES:
            return None
        state, at = point.state, point.at
        ways = _open_to(insts[at], jumps[at], bool(state[1] & ON)) if at < len(insts) else ()
        onward[point] = tuple(Point(to, on) for to in ways for on in _after(changes[at], state, wanted[to]))
        work += onward[point]
    return Ways(starts, onward)


def follow_exec(
    insts: Sequence[Inst], lanes: Ways | None, private: Callable[[Inst], bool]
) -> tuple[int, bool, bool]:
    """What is written in lanes that were not active at the start, whether EXEC comes back, and whether memory may be
    touched in such lanes that is not ``private``."""
    writes = [inst.writes.bits & ~SCALARS for inst in insts]
    if not any(inst.writes.sgpr >> EXEC & 3 for inst in insts):
        lanes = Ways((), {})
    if lanes is None:
        return reduce(or_, writes, 0), False, True
    far, wide, back = 0, False, True
    for k, inst in enumerate(insts):
        if OpFlag.IGNORES_EXEC in inst.op.flags:
            far |= writes[k]
    for at, state in lanes.onward:
        assert state is not None
        if at == len(insts):
            back = back and bool(state[1] & ON) is bool(state[1] & START)
        elif state[1] & ON and not state[1] & START:
            far |= writes[at]
            wide = wide or OpFlag.VMEM in insts[at].op.flags and not private(insts[at])
    return far, back, wide


def _open_to(inst: Inst, ways: tuple[int, ...], on: bool) -> tuple[int, ...]:
    """Those that a lane may take: while it is active, EXEC is not zero."""
    row = find_meaning(inst.op)
    if not on or len(ways) != 2 or not isinstance(row, Branch) or row.register != "exec":
        return ways
    return ways[:1] if row.if_zero else ways[1:]


def _solve_needed_masks(changes: Sequence[Change | None], jumps: Jumps) -> list[int]:
    """Masks that may come to matter to EXEC, before each instruction and at the end."""
    wanted, grew = [ON] * (len(changes) + 1), True
    while grew:
        grew = False
        for k in range(len(changes) - 1, -1, -1):
            behind, each = reduce(or_, (wanted[to] for to in jumps[k])), changes[k]
            before = behind if each is None else compute_needed_before(each, behind) & MASKS
            grew = grew or before != wanted[k]
            wanted[k] = before
    return wanted


def _after(each: Change | None, state: State, wanted: int) -> Iterator[State]:
    """The next states of a lane: each mask that was written has a bit for it, if only one that is not known."""
    kept = wanted | START
    if each is None:
        yield state[0] & kept, state[1] & kept
        return
    for known, has in next_states(each, state, kept):
        found = [(known, has)]
        unknown = each.written & wanted & ~known
        while unknown:
            mask = unknown & -unknown
            found = [(known | mask, bits) for known, has in found for bits in (has, has | mask)]
            unknown ^= mask
        yield from found
