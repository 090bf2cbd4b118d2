"""What is known at one point of a run of inserted code, and what a run has done at its end.

In: terms (`meanings`), masks of lanes (`lanes`), loads on their way (`pending`). Out: Now, Outcome. Invariant: what is
known where two ways meet holds on both.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import NamedTuple

from luthier_py.base.records import dataclass, field, replace
from luthier_py.isa import SCC, Inst
from luthier_py.isa.model.registers import VGPR_SHIFT
from luthier_py.proof.code import CELLS, LANES, lane_number, vector_of
from luthier_py.proof.lanes import ON, State
from luthier_py.proof.meanings import UNKNOWN, Term
from luthier_py.proof.payload_lanes import BOTH, START
from luthier_py.proof.pending import Pending, join_pending
from luthier_py.proof.preloads import Arguments
from luthier_py.proof.vectors import both, in_lanes, lane_of, with_lane


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run has done when it gets to the application, ``to`` bytes behind its start. Registers are bits."""

    to: int
    calls: tuple[int, ...]  # that ran, in order
    changed: int            # hold something else than what was there, or is declared; not EXEC
    far: int                # vector registers that hold something else in lanes that were not active at the start
    vectors: bool           # vector registers, or MODE, were written
    touched: int            # read or written at all
    pending: int               # loads of the run itself may still write them
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
    ``wanted`` is what the application is to find: what was there, and results that it gets.

    ``terms`` of vector registers are the truth for lanes that were active at the start, ``others`` for those that were
    not. So are the two of each dword of private memory that is the tool's, by its number; what is missing of those is
    not known."""

    pending: Pending
    terms: dict[int, Term] = field(default_factory=dict)
    wanted: dict[int, Term] = field(default_factory=dict)
    others: dict[int, Term] = field(default_factory=dict)
    flags: dict[Term, int] = field(default_factory=dict)  # what SCC has been, by the ways that were taken
    vectors: bool = False       # vector registers, or MODE, were written
    touched: int = 0
    timed: bool = False
    lanes: frozenset[State] = frozenset(BOTH)
    calls: tuple[int, ...] = ()
    always: tuple[int, ...] = ()  # those of them that do something even where no lane is active
    some_lane: bool = False     # was active at the start
    idle_to: int = 0            # until there no lane is active, so that others may be left out

    def copy(self) -> Now:
        """The same for the other way of a branch, which may change on its own."""
        return replace(self, terms=dict(self.terms), wanted=dict(self.wanted), others=dict(self.others),
                       flags=dict(self.flags))

    def get(self, register: int) -> Term:
        """The term of a register, of a dword of private memory (numbers from CELLS on) or of a lane with a scalar (from
        LANES on). That of vector registers holds in lanes that were active at the start; a lane's is UNKNOWN where that
        matters."""
        if register >= LANES:
            vector, lane = vector_of(register)
            near, far = lane_of(self.get(vector), lane), lane_of(self.other(vector), lane)
            return near if near == far else UNKNOWN
        return self.terms.get(register, _at_start(register))

    def other(self, register: int) -> Term:
        """What a register holds in lanes that were not active at the start."""
        return self.others.get(register, _at_start(register)) if register >= VGPR_SHIFT else self.get(register)

    def put_into_lane(self, number: int, term: Term) -> None:
        """v_writelane: write a scalar to the lane of this number (see `lane_number`), whatever EXEC is."""
        register, lane = vector_of(number)
        self.terms[register] = with_lane(self.get(register), lane, term)
        self.others[register] = with_lane(self.other(register), lane, term)
        self.vectors = True

    def put(self, register: int, near: Term, far: Term) -> None:
        """A vector register is written under EXEC as it is now."""
        self.terms[register] = _after(self.near, self.get(register), near)
        self.others[register] = _after(self.far, self.other(register), far)
        self.vectors = True

    def lose(self, register: int) -> None:
        """A vector register is written in lanes that are not known."""
        self.terms[register] = self.others[register] = UNKNOWN
        self.vectors = True

    @property
    def near(self) -> Reach:
        """Which of the lanes are active that were so at the start."""
        return _reach({bool(has & ON) for _, has in self.lanes if has & START})

    @property
    def far(self) -> Reach:
        """Which of those that were not."""
        return _reach({bool(has & ON) for _, has in self.lanes if not has & START})

    def find_changed(self, kept: Iterable[int], free: int) -> int:
        """What holds something else than it is to, as bits: registers, and lanes of them, those that are ``kept`` among
        them. ``free``: the application finds nothing there."""
        lanes = (lane_number(register, lane) for register, term in self.terms.items() if in_lanes(term)
                 for lane, _ in term[2])
        return sum(1 << each for each in {*self.terms, *self.wanted, *kept, *lanes}
                   if not free >> each & 1 and self.get(each) != self.due(each))

    @property
    def changed_in_inactive_lanes(self) -> int:
        """Vector registers, as bits, that hold something else in lanes that were not active at the start."""
        return sum(1 << register for register, term in self.others.items() if term != ("reg", register))

    def due(self, register: int) -> Term:
        """The term that the application is to find in a register: what was there at the start, or a result for it."""
        return self.wanted.get(register, ("reg", register))

    @property
    def as_at_start(self) -> bool:
        """Whether EXEC is what it was."""
        return all(bool(has & ON) is bool(has & START) for _, has in self.lanes)


def _at_start(register: int) -> Term:
    return UNKNOWN if CELLS <= register < LANES else ("reg", register)


def _reach(on: set[bool]) -> Reach:
    return Reach.SOME if len(on) > 1 else Reach.ALL if on != {False} else Reach.NONE


def _after(reach: Reach, old: Term, new: Term) -> Term:
    """What lanes hold behind a write."""
    if reach is Reach.NONE:
        return old
    return new if reach is Reach.ALL or old == new else UNKNOWN


class Begin(NamedTuple):
    """Of a run that a wave begins with: what registers hold that is not what they are named for, what the run has to
    leave where, registers, as bits, in which the application finds nothing, and what it finds that the run has to load.
    Lanes that are not active when a wave is ``initial`` hold nothing at all."""

    terms: tuple[tuple[int, Term], ...] = ()
    wanted: tuple[tuple[int, Term], ...] = ()
    free: int = 0
    arguments: Arguments | None = None
    initial: bool = False


ANYWHERE = Begin()


def join_states(a: Now, b: Now, pc: int) -> Now:
    """What is known where two ways meet."""
    calls = a.calls
    if a.calls != b.calls:
        if a.always == b.always and (a.idle_to >= pc or b.idle_to >= pc):
            calls = max(a.calls, b.calls, key=len)
        else:
            calls = (*a.calls, *b.calls, -1)
    names: dict[tuple[Term, Term], Term] = {}

    def join(x: Term, y: Term) -> Term:
        return x if x == y else UNKNOWN if UNKNOWN in (x, y) else names.setdefault((x, y), ("met", pc, x, y))

    terms = {reg: both(a.get(reg), b.get(reg), join) for reg in a.terms.keys() | b.terms.keys()}
    if SCC in terms:
        found = [term for term, is_set in a.flags.items() if (a.get(SCC), b.get(SCC)) == (is_set, b.flags.get(term))]
        terms |= {SCC: found[0]} if found else {}
    wanted = {reg: join(a.due(reg), b.due(reg)) for reg in a.wanted.keys() | b.wanted.keys()}
    others = {reg: both(a.other(reg), b.other(reg), join) for reg in a.others.keys() | b.others.keys()}
    flags = dict(a.flags.items() & b.flags.items())
    return Now(join_pending(a.pending, b.pending), terms, wanted, others, flags, a.vectors or b.vectors,
               a.touched | b.touched, a.timed or b.timed, a.lanes | b.lanes, calls, max(a.always, b.always, key=len),
               a.some_lane and b.some_lane, min(a.idle_to, b.idle_to))
