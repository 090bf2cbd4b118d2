"""Where an insertion may go, and what is known there.

In: a program, its facts, registers that hooks may use at all. Out: Sites, cheapest first. Invariant: a register
that is free at a site holds nothing that anybody needs: nothing live, nothing that a load will still write,
no wave variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from luthier_py.analysis import Facts
from luthier_py.analysis.waits import wait_for
from luthier_py.errors import EditConflict, Location
from luthier_py.inject.allocate import Pool
from luthier_py.inject.fragment import Fragment
from luthier_py.ir import Instr, Program
from luthier_py.isa import M0, SCC, VCC, Inst, OpFlag, Reg, RegSet, sgpr
from luthier_py.tool import Insertion, Lanes, Place

VECTOR = OpFlag.VALU | OpFlag.VMEM | OpFlag.LDS
SAVED = RegSet.of(sgpr(SCC), sgpr(VCC, 2), sgpr(M0))  # special registers that are kept when they are clobbered
_VCC = RegSet.of(sgpr(VCC, 2))


@dataclass(frozen=True, slots=True)
class Site:
    """What is known at the place of one insertion."""

    instr: Instr
    place: Place
    where: Callable[[], Location]
    live: RegSet                 # what the application may still read, in the lanes that the hook runs in
    free: RegSet                 # registers that the hook may destroy
    wait: tuple[Inst, ...]       # what makes pending registers ready that are used
    plain_floats: bool           # the application computes as the hook expects it

    @property
    def at_end(self) -> bool:
        """The wave ends here: EXEC need not come back."""
        return self.place is Place.BEFORE and bool(self.instr.inst.op.flags & OpFlag.END)


@dataclass(frozen=True, slots=True)
class Sites:
    """Answers for one component. ``general``: registers that may be used where they are free; ``plain_floats``: floats
    round and keep denormals everywhere in it as hooks expect it."""

    program: Program
    facts: Facts
    general: RegSet
    plain_floats: bool

    def of(self, insertion: Insertion, fragment: Fragment) -> Iterator[Site]:
        """The places of an insertion, those that have the least to save first; EditConflict if there is none."""
        lanes, writes = insertion.hook.lanes, fragment.payload.writes & SAVED
        vector = any(inst.op.flags & VECTOR for inst in fragment.payload.instrs)
        places = [p for p in insertion.places if not (vector and self.facts.obstacle(p[0], after=p[1] is Place.AFTER))]
        if not places:
            instr, place = insertion.places[0]
            why = self.facts.obstacle(instr, after=place is Place.AFTER)
            message = f"hook {insertion.hook.name} uses vector registers, and {why}; insert it somewhere else"
            raise EditConflict(message, self.where(instr))
        if len(places) > 1 and writes:
            places.sort(key=lambda p: (writes & self.live(p[0], p[1], lanes)).sgpr.bit_count())
        return (self.site(instr, place, insertion, fragment) for instr, place in places[:MOST_PLACES])

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
        wait = tuple(wait_for(self.program.isa, pending, named | (payload.writes & SAVED)))
        free = self.general - live - pending.registers
        if not (payload.reads | payload.writes).overlaps(_VCC):
            free |= _VCC - live - pending.registers
        return Site(instr, place, lambda: self.where(instr), live, free, wait, self.plain_floats)

    def before_call(self, instr: Instr) -> Pool:
        """What the code that looks up an indirect call's target may use."""
        facts = self.facts
        free = self.general - facts.live_before(instr) - facts.pending_before(instr).registers - instr.inst.writes
        return Pool(free, lambda: self.where(instr))

    def where(self, instr: Instr) -> Location:
        return Location(self.program.function_of(instr).name, instr.pc, self.program.isa.text(instr.inst))


MOST_PLACES = 32  # that are tried before a hook is said to have no registers
