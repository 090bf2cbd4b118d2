"""Terms of vector registers, some lanes of which may hold scalars.

In: terms (`meanings`). Out: terms. Invariant: what a term says of a lane is so in every run.

A vector register's term is what its lanes hold, or ("lanes", below, ((lane, term), ...)): ``below``, but for lanes that
have terms of their own, in ascending order.
"""

from __future__ import annotations

from collections.abc import Callable

from luthier_py.proof.code import lane_number
from luthier_py.proof.meanings import UNKNOWN, Term


def in_lanes(term: Term) -> bool:
    """Whether some lanes have terms of their own: the term is ("lanes", below, ...)."""
    return not isinstance(term, int) and term[0] == "lanes"


def below(term: Term) -> Term:
    """What is there but for lanes which have terms of their own."""
    return term[1] if in_lanes(term) else term


def lane_of(term: Term, lane: int) -> Term:
    """What ``lane`` holds; of a register that is as it was at the start, what that lane held then."""
    for each, own in term[2] if in_lanes(term) else ():
        if each == lane:
            return own
    whole = below(term)
    return ("reg", lane_number(whole[1], lane)) if not isinstance(whole, int) and whole[0] == "reg" else UNKNOWN


def with_lane(term: Term, lane: int, value: Term) -> Term:
    """The term with ``value`` in ``lane``. A lane that holds what the rest of the register gives it anyway has no
    separate term, so equal registers have equal terms; UNKNOWN in a lane stays."""
    lanes, whole = dict(term[2]) if in_lanes(term) else {}, below(term)
    lanes[lane] = value
    if value == lane_of(whole, lane) != UNKNOWN:
        del lanes[lane]
    return ("lanes", whole, tuple(sorted(lanes.items(), key=lambda each: each[0]))) if lanes else whole


def both(x: Term, y: Term, join: Callable[[Term, Term], Term]) -> Term:
    """What is there where two ways meet; ``join`` says it of what has no lanes."""
    found = join(below(x), below(y))
    for lane in sorted({lane for term in (x, y) if in_lanes(term) for lane, _ in term[2]}):
        found = with_lane(found, lane, join(lane_of(x, lane), lane_of(y, lane)))
    return found


def unless_mixed(term: Term) -> Term:
    """What an instruction has made; of lanes only that they were moved."""
    return UNKNOWN if not in_lanes(term) and _has_lanes(term) else term


def _has_lanes(term: Term) -> bool:
    return isinstance(term, tuple) and (term[:1] == ("lanes",) or any(map(_has_lanes, term)))
