"""Where an insertion may go, and what is known there.

In: a program, its facts, registers that hooks may use at all. Out: Sites, cheapest first. Invariant: a register
that is free at a site holds nothing that anybody needs: nothing live, nothing that a load will still write,
no wave variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from luthier_py.analysis import Facts
from luthier_py.analysis.waits import wait_for
from luthier_py.errors import EditConflict, Location
from luthier_py.inject.allocate import Policy, Pool
from luthier_py.inject.fragment import Fragment
from luthier_py.ir import Instr, Program
from luthier_py.isa import M0, SCC, VCC, Inst, OpFlag, Reg, RegFile, RegSet, sgpr
from luthier_py.tool import Insertion, Lanes, Place

SAVED = RegSet.of(sgpr(SCC), sgpr(VCC, 2), sgpr(M0))  # special registers that are kept when they are clobbered
_VCC = RegSet.of(sgpr(VCC, 2))
Point: TypeAlias = tuple[Instr, Place]


@dataclass(frozen=True, slots=True)
class Site:
    """What is known at the place of one insertion."""

    instr: Instr
    place: Place
    where: Callable[[], Location]
    live: RegSet                 # what the application may still read, in the lanes that the hook runs in
    pending: RegSet              # what loads on their way will still write
    free: RegSet                 # registers that the hook may destroy
    wait: tuple[Inst, ...]       # what makes pending registers ready that are used
    plain_floats: bool           # the application computes as the hook expects it

    def pool(self, policy: Policy) -> Pool:
        """What a call may destroy here."""
        return Pool(self.free & policy.registers, self.where, lambda file: self.taken(policy, file))

    def taken(self, policy: Policy, file: RegFile) -> str:
        """What the registers of a file hold here."""
        live, pending = (regs.mask(file).bit_count() for regs in (self.live, self.pending - self.live))
        loads = f", {pending} are still being loaded" if pending else ""
        return f", even {policy.name}: {live} are live here{loads}"

    @property
    def circumstances(self) -> tuple[object, ...]:
        """What a call depends on beside the registers that are free."""
        return (self.live & SAVED).sgpr, self.wait, self.plain_floats, self.at_end

    @property
    def at_end(self) -> bool:
        """The wave ends here: EXEC need not come back."""
        return self.place is Place.BEFORE and bool(self.instr.inst.op.flags & OpFlag.END)


@dataclass(frozen=True, slots=True)
class Sites:
    """Answers for one component. ``general``: registers that may be used where they are free; ``plain_floats``: floats
    round and keep denormals everywhere in it as hooks expect it; ``policies``: which registers
    to take, the best first."""

    program: Program
    facts: Facts
    general: RegSet
    plain_floats: bool
    policies: tuple[Policy, ...]

    def of(self, insertion: Insertion, fragment: Fragment) -> Iterator[Site]:
        """The places of an insertion, those that have the least to save first; EditConflict if there is none."""
        lanes, writes = insertion.hook.lanes, fragment.payload.writes & SAVED
        places: Sequence[Point] = insertion.places
        if fragment.vector:
            places = [(i, place) for i, place in places if not self.facts.obstacle(i, after=place is Place.AFTER)]
        if not places:
            instr, place = insertion.places[0]
            why = self.facts.obstacle(instr, after=place is Place.AFTER)
            message = f"hook {insertion.hook.name} uses vector registers, and {why}; insert it somewhere else"
            raise EditConflict(message, self.where(instr))
        return (self.site(instr, place, insertion, fragment)
                for instr, place in islice(self.cheapest_first(places, writes, lanes), MOST_PLACES))

    def cheapest_first(self, places: Sequence[Point], writes: RegSet, lanes: Lanes) -> Iterator[Point]:
        """``places`` by how many of the special registers that are written would have to be saved there."""
        others: list[tuple[int, Point]] = []
        for point in places:
            cost = (writes & self.live(*point, lanes)).sgpr.bit_count() if writes and len(places) > 1 else 0
            if cost:
                others.append((cost, point))
            else:
                yield point
        yield from (point for _, point in sorted(others, key=lambda other: other[0]))

    def live(self, instr: Instr, place: Place, lanes: Lanes) -> RegSet:
        facts = self.facts
        if lanes is Lanes.ACTIVE:
            return facts.live_before(instr) if place is Place.BEFORE else facts.live_after(instr)
        return facts.live_before_all_lanes(instr) if place is Place.BEFORE else facts.live_after_all_lanes(instr)

    def site(self, instr: Instr, place: Place, insertion: Insertion, fragment: Fragment) -> Site:
        facts, payload = self.facts, fragment.payload
        live = self.live(instr, place, insertion.hook.lanes)
        pending = facts.pending_before(instr) if place is Place.BEFORE else facts.pending_after(instr)
        named = RegSet.of(*(a for a in (*insertion.runtime_args, *insertion.into) if isinstance(a, Reg)))
        wait = wait_for(self.program.isa, pending, named | (payload.writes & SAVED))
        loading, general = pending.registers, self.general
        if not (payload.reads | payload.writes).overlaps(_VCC):
            general |= _VCC
        return Site(instr, place, lambda: self.where(instr), live, loading, general - (live | loading), wait,
                    self.plain_floats)

    def before_call(self, instr: Instr) -> Pool:
        """What the code that looks up an indirect call's target may use."""
        facts = self.facts
        free = self.general - facts.live_before(instr) - facts.pending_before(instr).registers - instr.inst.writes
        return Pool(free, lambda: self.where(instr))

    def where(self, instr: Instr) -> Location:
        return Location(self.program.function_of(instr).name, instr.pc, self.program.isa.text(instr.inst))


MOST_PLACES = 32  # that are tried before a hook is said to have no registers
