"""What is known at one point of a run of inserted code, and what a run has done at its end.

In: terms (`meanings`), masks of lanes (`lanes`), loads on their way (`pending`). Out: Now, Outcome. Invariant: what is
known where two ways meet holds on both.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import NamedTuple

from luthier_py.isa import SCC, Inst
from luthier_py.isa.registers import VGPR_SHIFT
from luthier_py.proof.code import LANES, vector_of
from luthier_py.proof.lanes import ON, State
from luthier_py.proof.meanings import UNKNOWN, Term
from luthier_py.proof.payload_lanes import BOTH, START
from luthier_py.proof.pending import Pending, joined

IN_LANES: Term = ("lanes",)  # of a vector register that is what it was but for lanes which have terms of their own


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run has done when it gets to the application, ``to`` bytes behind its start. Registers are bits."""

    to: int
    calls: tuple[int, ...]  # that ran, in order
    changed: int            # hold something else than what was there, or is declared; not EXEC
    far: int                # vector registers that hold something else in lanes that were not active at the start
    vectors: bool           # vector registers were written
    touched: int            # read or written at all
    owed: int               # loads of the run itself may still write them
    exec_back: bool         # EXEC is what it was
    timed: bool             # it waits for loads, so what becomes of them is another thing for other loads
    ran: tuple[tuple[int, Inst], ...]  # by offset from the start


class Reach(Enum):
    """Which of some lanes are active."""

    ALL = auto()
    SOME = auto()
    NONE = auto()


@dataclass(slots=True)
class Now:
    """What is known at one point of a run (mutable). Terms that are missing are the register's own from the start.
    ``wanted`` is what the application is to find: what was there, and results that go to it.

    ``terms`` of vector registers are the truth for lanes that were active at the start, ``others`` for those that were
    not. So are the two of each dword of private memory that is the tool's, by its offset, in ``cells``."""

    pending: Pending
    terms: dict[int, Term] = field(default_factory=dict)
    wanted: dict[int, Term] = field(default_factory=dict)
    others: dict[int, Term] = field(default_factory=dict)
    cells: dict[int, tuple[Term, Term]] = field(default_factory=dict)
    flags: dict[Term, int] = field(default_factory=dict)  # what SCC has been, by the ways that were taken
    vectors: bool = False       # vector registers were written
    touched: int = 0
    timed: bool = False
    lanes: frozenset[State] = frozenset(BOTH)
    calls: tuple[int, ...] = ()
    always: tuple[int, ...] = ()  # those of them that do something even where no lane is active
    idle_to: int = 0            # until there no lane is active, so that others may be left out

    def copy(self) -> Now:
        return replace(self, terms=dict(self.terms), wanted=dict(self.wanted), others=dict(self.others),
                       cells=dict(self.cells), flags=dict(self.flags))

    def get(self, register: int) -> Term:
        found = self.terms.get(register)
        if found is None and register >= LANES:
            whole = vector_of(register)
            if not {self.terms.get(whole, IN_LANES), self.other(whole)} <= {IN_LANES, ("reg", whole)}:
                return UNKNOWN
        return ("reg", register) if found is None else found

    def other(self, register: int) -> Term:
        """What a register holds in lanes that were not active at the start."""
        return self.others.get(register, ("reg", register)) if register >= VGPR_SHIFT else self.get(register)

    def put_into_lane(self, lane: int, term: Term) -> None:
        register = vector_of(lane)
        for terms in (self.terms, self.others):
            own = terms.get(register, IN_LANES) in (IN_LANES, ("reg", register))
            terms[register] = IN_LANES if own else UNKNOWN
        self.terms[lane] = term
        self.vectors = True

    def put(self, register: int, near: Term, far: Term) -> None:
        """A vector register is written under EXEC as it is now; of single lanes nothing is known any more."""
        self.forget_lanes(register)
        self.terms[register] = _after(self.near, self.get(register), near)
        self.others[register] = _after(self.far, self.other(register), far)
        self.vectors = True

    def lose(self, register: int) -> None:
        """A vector register is written in lanes that are not known."""
        self.forget_lanes(register)
        self.terms[register] = self.others[register] = UNKNOWN
        self.vectors = True

    def forget_lanes(self, register: int) -> None:
        for lane in [each for each in self.terms if each >= LANES and vector_of(each) == register]:
            del self.terms[lane]

    def put_into_cell(self, at: int, near: Term, far: Term) -> None:
        had = self.cells.get(at, (UNKNOWN, UNKNOWN))
        self.cells[at] = _after(self.near, had[0], near), _after(self.far, had[1], far)

    @property
    def near(self) -> Reach:
        """Which of the lanes are active that were so at the start."""
        return _reach({bool(has & ON) for _, has in self.lanes if has & START})

    @property
    def far(self) -> Reach:
        """Which of those that were not."""
        return _reach({bool(has & ON) for _, has in self.lanes if not has & START})

    @property
    def changed_afar(self) -> int:
        """Vector registers, as bits, that hold something else in lanes that were not active at the start."""
        return sum(1 << register for register, term in self.others.items() if term != ("reg", register))

    def due(self, register: int) -> Term:
        return self.wanted.get(register, ("reg", register))

    @property
    def as_at_start(self) -> bool:
        """Whether EXEC is what it was."""
        return all(bool(has & ON) is bool(has & START) for _, has in self.lanes)


def _reach(on: set[bool]) -> Reach:
    return Reach.SOME if len(on) > 1 else Reach.ALL if on != {False} else Reach.NONE


def _after(reach: Reach, old: Term, new: Term) -> Term:
    """What lanes hold behind a write."""
    if reach is Reach.NONE:
        return UNKNOWN if old == IN_LANES else old
    return new if reach is Reach.ALL or old == new else UNKNOWN


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
        if register == SCC:
            found = [term for term, is_set in a.flags.items() if (x, y) == (is_set, b.flags.get(term))]
            if found:
                return found[0]
        return UNKNOWN if UNKNOWN in (x, y) else names.setdefault((x, y), ("met", pc, x, y))

    terms = {reg: both(reg, a.get(reg), b.get(reg)) for reg in a.terms.keys() | b.terms.keys()}
    wanted = {reg: both(reg, a.due(reg), b.due(reg)) for reg in a.wanted.keys() | b.wanted.keys()}
    others = {reg: both(reg, a.other(reg), b.other(reg)) for reg in a.others.keys() | b.others.keys()}
    cells = {at: a.cells[at] for at in a.cells.keys() & b.cells.keys() if a.cells[at] == b.cells[at]}
    flags = dict(a.flags.items() & b.flags.items())
    return Now(joined(a.pending, b.pending), terms, wanted, others, cells, flags, a.vectors or b.vectors,
               a.touched | b.touched, a.timed or b.timed, a.lanes | b.lanes, calls, max(a.always, b.always, key=len),
               min(a.idle_to, b.idle_to))
