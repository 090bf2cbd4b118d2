"""What is known at one point of a run of inserted code, and what a run has done at its end.

In: terms (`meanings`), masks of lanes (`lanes`), loads on their way (`pending`). Out: Now, Outcome. Invariant: what is
known where two ways meet holds on both.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from luthier_py.isa import Inst
from luthier_py.proof.code import LANES, vector_of
from luthier_py.proof.lanes import ON, State
from luthier_py.proof.meanings import UNKNOWN, Term
from luthier_py.proof.payloads import BOTH, START
from luthier_py.proof.pending import Pending, joined

IN_LANES: Term = ("lanes",)  # of a vector register that is what it was but for lanes which have terms of their own


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run has done when it gets to the application, ``to`` bytes behind its start. Registers are bits."""

    to: int
    calls: tuple[int, ...]  # that ran, in order
    changed: int            # hold something else than what was there, or is declared; not EXEC
    near: int               # vector registers written in lanes that were active at the start
    far: int                # and in others
    touched: int            # read or written at all
    owed: int               # loads of the run itself may still write them
    exec_back: bool         # EXEC is what it was
    timed: bool             # it waits for loads, so what becomes of them is another thing for other loads
    ran: tuple[tuple[int, Inst], ...]  # by offset from the start


@dataclass(slots=True)
class Now:
    """What is known at one point of a run (mutable). Terms that are missing are the register's own from the start.
    ``wanted`` is what the application is to find: what was there, and results that go to it."""

    pending: Pending
    terms: dict[int, Term] = field(default_factory=dict)
    wanted: dict[int, Term] = field(default_factory=dict)
    near: int = 0               # vector registers written in lanes that were active at the start
    far: int = 0                # and in others
    touched: int = 0
    timed: bool = False
    lanes: frozenset[State] = frozenset(BOTH)
    calls: tuple[int, ...] = ()
    always: tuple[int, ...] = ()  # those of them that do something even where no lane is active
    idle_to: int = 0            # until there no lane is active, so that others may be left out

    def copy(self) -> Now:
        return replace(self, terms=dict(self.terms), wanted=dict(self.wanted))

    def get(self, register: int) -> Term:
        found = self.terms.get(register)
        if found is None and register >= LANES and self.terms.get(vector_of(register), IN_LANES) != IN_LANES:
            return UNKNOWN
        return ("reg", register) if found is None else found

    def put_into_lane(self, lane: int, term: Term) -> None:
        register = vector_of(lane)
        if self.get(register) == ("reg", register):
            self.terms[register] = IN_LANES
        self.terms[lane] = term

    def overwritten(self, registers: int) -> None:
        """Nothing is known of single lanes of ``registers`` any more."""
        for lane in [each for each in self.terms if each >= LANES and registers >> vector_of(each) & 1]:
            del self.terms[lane]

    def due(self, register: int) -> Term:
        return self.wanted.get(register, ("reg", register))

    @property
    def as_at_start(self) -> bool:
        """Whether EXEC is what it was."""
        return all(bool(has & ON) is bool(has & START) for _, has in self.lanes)

    @property
    def only_those(self) -> bool:
        """Whether no lane is active that was not at the start."""
        return not any(has & ON and not has & START for _, has in self.lanes)


class Begin(NamedTuple):
    """Of a run that a wave begins with: what registers hold that is not what they are named for, what the run has to
    leave where, and registers, as bits, in which the application finds nothing."""

    terms: tuple[tuple[int, Term], ...] = ()
    wanted: tuple[tuple[int, Term], ...] = ()
    free: int = 0


ANYWHERE = Begin()


def met(a: Now, b: Now, pc: int) -> Now:
    """What is known where two ways meet."""
    calls = a.calls
    if a.calls != b.calls:
        if a.always == b.always and (a.idle_to >= pc or b.idle_to >= pc):
            calls = max(a.calls, b.calls, key=len)
        else:
            calls = (*a.calls, *b.calls, -1)
    names: dict[tuple[Term, Term], Term] = {}

    def both(register: int, x: Term, y: Term) -> Term:
        if x == y:
            return x
        if {x, y} == {("reg", register), IN_LANES}:
            return IN_LANES
        return UNKNOWN if UNKNOWN in (x, y) else names.setdefault((x, y), ("met", pc, x, y))

    terms = {reg: both(reg, a.get(reg), b.get(reg)) for reg in a.terms.keys() | b.terms.keys()}
    wanted = {reg: both(reg, a.due(reg), b.due(reg)) for reg in a.wanted.keys() | b.wanted.keys()}
    return Now(joined(a.pending, b.pending), terms, wanted, a.near | b.near, a.far | b.far, a.touched | b.touched,
               a.timed or b.timed, a.lanes | b.lanes, calls, max(a.always, b.always, key=len),
               min(a.idle_to, b.idle_to))
