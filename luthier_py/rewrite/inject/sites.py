"""Where an insertion may go, and what is known there.

In: a program, its facts, registers that hooks may use at all. Out: Sites, cheapest first. Invariant: a register
that is free at a site holds nothing that anybody needs: nothing live, nothing that a load will still write,
no wave variable.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import TypeAlias

from luthier_py.base.errors import EditConflict, Location
from luthier_py.base.records import dataclass, replace
from luthier_py.isa import M0, SCC, VCC, Inst, OpFlag, Reg, RegFile, RegSet, sgpr
from luthier_py.isa.columns import Columns
from luthier_py.program.analysis import Facts
from luthier_py.program.analysis.waits import Pending, wait_for
from luthier_py.program.ir import Instr, Program
from luthier_py.program.ir.model import Instrs, instr_at
from luthier_py.rewrite.inject.allocate import Policy, Pool
from luthier_py.rewrite.jit import Payload
from luthier_py.rewrite.tool import Insertion, Lanes, Place
from luthier_py.rewrite.tool.edits import Before, RuntimeArg

SAVED = RegSet.of(sgpr(SCC), sgpr(VCC, 2), sgpr(M0))  # special registers that are saved when they are clobbered
_VCC = RegSet.of(sgpr(VCC, 2))
Point: TypeAlias = tuple[Instr, Place]


@dataclass(frozen=True, slots=True, eq=False)
class Needs:
    """What a call requires of its place: calls of one fragment with the same arguments require the same."""

    hook: str
    lanes: Lanes
    vector: bool       # it has vector instructions, or sets MODE, where some targets have what these mean
    saved: RegSet      # special registers that it clobbers
    ready: RegSet      # registers that no load may still write
    general: RegSet    # registers that it may take where they are free


@dataclass(frozen=True, slots=True)
class Site:
    """What is known at the place of one insertion."""

    instr: Instr
    place: Place
    where: Callable[[], Location]
    live: RegSet                 # what the application may still read, in the lanes that the hook runs in
    pending: RegSet              # what loads on their way will still write
    free: RegSet                 # registers that the hook may destroy
    busy: RegSet  # registers that it may destroy if they are put back
    dead_in_all_lanes: Callable[[],
                                RegSet | None]  # dead in all lanes; None where vector code may not run
    wait: tuple[Inst, ...]       # what makes pending registers ready that are used
    float_fields: tuple[int, ...]  # of MODE, that the application may have otherwise than hooks expect
    at_end: bool = False         # nothing else happens before the wave ends: EXEC need not come back

    def pool(self, policy: Policy) -> Pool:
        """What a call may destroy here."""
        busy = self.busy if policy.slots else self.busy.scalars if policy.borrows else RegSet()
        return Pool(self.free & policy.registers, self.where, lambda file: self.describe_usage(policy, file), busy=busy)

    def describe_usage(self, policy: Policy, file: RegFile) -> str:
        """What the registers of a file hold here."""
        live, pending = (regs.mask(file).bit_count() for regs in (self.live, self.pending - self.live))
        loads = f", {pending} are still being loaded" if pending else ""
        return f", even {policy.name}: {live} are live here{loads}"

    @property
    def circumstances(self) -> tuple[object, ...]:
        """What a call depends on beside the registers that are free."""
        return (self.live & SAVED).sgpr, self.wait, self.float_fields, self.at_end


def last_of_all(insertions: Iterable[Insertion]) -> dict[int, Insertion]:
    """The last call before each instruction that ends waves, by its pc.
    ``insertions``: in the order in which they run."""
    ends = cache(lambda code: code.find_flagged(OpFlag.END))
    return {instr.pc: insertion for insertion in insertions for instr in _find_ends(insertion.places, ends)}


def _find_ends(places: Sequence[Point], ends: Callable[[Columns], list[int]]) -> Iterator[Instr]:
    """Instructions that end waves, before which something may go; ``ends``: all those of some code."""
    pieces = places.pieces if isinstance(places, Before) else [
        [instr for instr, place in places if place is Place.BEFORE]]
    for piece in pieces:
        if isinstance(piece, Instrs):
            there = ends(piece.code)
            for at in there[bisect_left(there, piece.start) : bisect_left(there, piece.stop)]:
                yield instr_at(piece.code, at)
        else:
            yield from (instr for instr in piece if OpFlag.END in instr.op.flags)


@dataclass(frozen=True, slots=True)
class Sites:
    """Answers for one component. ``general``: registers that may be used where they are free; ``float_fields``: fields
    of MODE that it may have otherwise than hooks expect; ``policies``: which registers to take, the best first;
    ``last``: see :func:`last_of_all`."""

    program: Program
    facts: Facts
    general: RegSet
    float_fields: tuple[int, ...]
    policies: tuple[Policy, ...]
    last: Mapping[int, Insertion]

    def needs(self, insertion: Insertion, arguments: Iterable[RuntimeArg], payload: Payload, vector: bool) -> Needs:
        """What a call asks of its place. ``vector``: it may not stand where vector instructions are skipped or
        indexed."""
        named = RegSet.of(*(value for value in (*arguments, *insertion.into) if isinstance(value, Reg)))
        saved, vcc = payload.writes & SAVED, (payload.reads | payload.writes).overlaps(_VCC)
        return Needs(insertion.hook.name, insertion.hook.lanes, vector, saved, named | saved,
                     self.general if vcc else self.general | _VCC)

    def of(self, insertion: Insertion, needs: Needs) -> Iterator[Site]:
        """Places of an insertion, those that have the least to save first; EditConflict if there is none."""
        fitting = places = insertion.places
        if needs.vector:
            fitting = [(i, place) for i, place in places if not self.facts.obstacle(i, after=place is not Place.BEFORE)]
        if not fitting:
            instr, place = places[0]
            why = self.facts.obstacle(instr, after=place is not Place.BEFORE)
            message = f"hook {needs.hook} uses vector registers, and {why}; insert it somewhere else"
            raise EditConflict(message, self.where(instr))
        sites = islice(self.cheapest_first(fitting, needs), MOST_PLACES)
        return (replace(site, at_end=True) if self.ends(insertion, site) else site for site in sites)

    def ends(self, insertion: Insertion, site: Site) -> bool:
        """Whether nothing but the end of the wave follows the call at ``site``."""
        return site.place is Place.BEFORE and self.last.get(site.instr.pc) is insertion

    def cheapest_first(self, places: Sequence[Point], needs: Needs) -> Iterator[Site]:
        """Sites by how many of the special registers that are clobbered would have to be saved there."""
        others: list[tuple[int, Point, RegSet]] = []
        for point in places:
            live = self.live(*point, needs.lanes)
            cost = (needs.saved & live).bits.bit_count() if len(places) > 1 else 0
            if cost:
                others.append((cost, point, live))
            else:
                yield self.site(point, live, needs)
        for _, point, live in sorted(others, key=lambda other: other[0]):
            yield self.site(point, live, needs)

    def live(self, instr: Instr, place: Place, lanes: Lanes) -> RegSet:
        """What the application may still read at the place, in the lanes that a hook with ``lanes`` makes active."""
        facts = self.facts
        if place is Place.BEFORE:
            return facts.live_before(instr) if lanes is Lanes.ACTIVE else facts.live_before_all_lanes(instr)
        if place is Place.TAKEN:
            return facts.live_taken(instr) if lanes is Lanes.ACTIVE else facts.live_taken_all_lanes(instr)
        return facts.live_after(instr) if lanes is Lanes.ACTIVE else facts.live_after_all_lanes(instr)

    def once_loaded(self, site: Site, needs: Needs) -> Site:
        """The same place behind a wait for all that loads will write."""
        pending = self.find_pending(site.instr, site.place)
        free, busy = needs.general - site.live, needs.general & site.live
        return replace(site, pending=RegSet(), free=free, busy=busy,
                       wait=wait_for(self.program.isa, pending, pending.registers))

    def find_pending(self, instr: Instr, place: Place) -> Pending:
        """Loads that are outstanding at the place. Where a branch is taken: as behind it."""
        return self.facts.pending_before(instr) if place is Place.BEFORE else self.facts.pending_after(instr)

    def site(self, point: Point, live: RegSet, needs: Needs) -> Site:
        """All that is known at a place; ``live``: as :meth:`live` gives it."""
        instr, place = point
        pending = self.find_pending(instr, place)
        loading, wait = pending.registers, wait_for(self.program.isa, pending, needs.ready)
        return Site(instr, place, lambda: self.where(instr), live, loading, needs.general - (live | loading),
                    (needs.general & live) - loading, lambda: self.find_dead_in_all_lanes(point), wait,
                    self.float_fields)

    def find_dead_in_all_lanes(self, point: Point) -> RegSet | None:
        """General registers that the application needs in no lane at the place; None where no vector code may stand."""
        instr, place = point
        if self.facts.obstacle(instr, after=place is not Place.BEFORE):
            return None
        return self.general - self.live(instr, place, Lanes.ALL)

    def before_call(self, instr: Instr) -> Pool:
        """What the code that looks up an indirect call's target may use."""
        facts = self.facts
        free = self.general - facts.live_before(instr) - facts.pending_before(instr).registers - instr.inst.writes
        return Pool(free, lambda: self.where(instr))

    def where(self, instr: Instr) -> Location:
        """The place for error messages: function, pc and text of the instruction."""
        return Location(self.program.function_of(instr).name, instr.pc, self.program.isa.text(instr.inst))


MOST_PLACES = 32  # that are tried before a hook is said to have no registers
