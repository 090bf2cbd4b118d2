"""One call of a hook, as items: wait, save, set up, the fragment, results, restore.

In: an insertion, its fragment, the facts at its place. Out: items for the clone. Invariant: after the
last item every register that the application may still read holds what it held before the first one,
except the registers that the insertion declares in ``into``.

The order is what keeps saves from clobbering each other: SCC is saved first and restored last, EXEC is
changed after everything of the application has been read, and put back before results are written. So is MODE, where
floats of the application may compute otherwise than those of hooks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import pairwise
from operator import or_

from luthier_py.base.errors import EditConflict
from luthier_py.base.records import dataclass, field, replace
from luthier_py.isa import EXEC, M0, SCC, VCC, Inst, InstructionSet, LaneOf, Reg, RegFile, RegSet, build, sgpr
from luthier_py.isa.properties.vector_modes import field_bits, mode_field
from luthier_py.program.analysis import PLAIN_MODE, depends_on_mode
from luthier_py.rewrite.inject.allocate import Pin, Placement, Policy, Pool
from luthier_py.rewrite.inject.fragment import Fragment, instructions, is_general, settle, with_literal
from luthier_py.rewrite.inject.items import (
    Allotted,
    AssignedLocation,
    Cause,
    Edit,
    Item,
    Label,
    Own,
    PersistentValue,
    Referent,
    Run,
    Single,
    SpilledLocation,
    address_of,
    part,
)
from luthier_py.rewrite.inject.sites import Site
from luthier_py.rewrite.inject.slots import SpillVgprs, allocate_spill_vgprs, offset_for_wave
from luthier_py.rewrite.inject.spills import Spills
from luthier_py.rewrite.jit import Slot
from luthier_py.rewrite.tool import Element, Entry, Insertion, Lanes, Variable, WaveVariable
from luthier_py.rewrite.tool.hooks.hook import FloatMode

_SCC, _VCC, _M0, _EXEC = sgpr(SCC), sgpr(VCC, 2), sgpr(M0), sgpr(EXEC, 2)


@dataclass(slots=True)
class Caller:
    """Emits the items of one call (mutable: collects them)."""

    isa: InstructionSet
    fragment: Fragment
    insertion: Insertion
    site: Site
    locations: Mapping[PersistentValue, AssignedLocation]
    pool: Pool
    edit: Edit
    frame: int  # where its stack is, in a lane's private memory
    items: list[Item] = field(default_factory=list)
    insts: tuple[Inst, ...] = ()  # of the hook
    saved: dict[Reg, Reg] = field(default_factory=dict)
    kept: list[tuple[Reg, Reg]] = field(default_factory=list)  # all that was ever saved
    spill_vgprs: SpillVgprs | None = None

    def emit(self, inst: Inst, jump: Label | None = None) -> None:
        """Add one instruction to the call; ``jump``: its target, if it is a branch."""
        self.items.append(Single(inst, edit=self.edit, jump=jump))

    def copy(self, to: Reg, source: Reg | int) -> None:
        """Add ``to`` := ``source``, a register or constant: one dword, or two of scalars."""
        self.emit(build.copy(self.isa, to, source))

    # -- saving and restoring ------------------------------------------------------------------

    def save(self, clobbered: RegSet, given: RegSet) -> None:
        """Keep special registers that are live and ``clobbered``, but what is ``given`` results."""
        whole = not given.overlaps(RegSet.of(_VCC))
        for reg in (_SCC, *((_VCC,) if whole else (part(_VCC, 0, 1), part(_VCC, 1, 1))), _M0):
            mine = RegSet.of(reg) - given
            if clobbered.overlaps(mine) and self.site.live.overlaps(mine):
                keep = self.saved[reg] = self.pool.take(RegFile.SGPR, reg.dwords)
                self.kept.append((reg, keep))
                self.copy(keep, reg)

    def restore(self) -> None:
        """Restore what :meth:`save` saved, SCC last."""
        for reg, keep in self.saved.items():
            if reg != _SCC:
                self.copy(reg, keep)
        if _SCC in self.saved:
            self.emit(build.set_flag(self.isa, self.saved[_SCC]))

    def set_flag(self, placement: Placement) -> None:
        """SCC, behind all other results, where it gets one."""
        for slot, to in zip(self.fragment.payload.results, self.insertion.into, strict=True):
            if to == _SCC:
                self.emit(build.set_flag(self.isa, placement(slot.reg)))

    def give_back(self, start: int, policy: Policy) -> Spills:
        """What was borrowed is spilled from item ``start`` on."""
        flag, m0 = (each in self.insertion.into or self.site.live.overlaps(RegSet.of(each)) for each in (_SCC, _M0))
        m0 = m0 or _M0 in self.insertion.runtime_args
        spills = Spills(self.isa, self.pool, self.site, policy, self.edit, flag, m0)
        own_exec = self.insertion.hook.lanes is not Lanes.ACTIVE
        spills.put(own_exec=own_exec or self.spill_vgprs is not None or self.writes_inactive_lanes)
        self.items[start:start] = spills.before
        self.items += spills.behind
        return spills

    @property
    def writes_inactive_lanes(self) -> bool:
        """Whether the hook runs in the application's lanes and writes registers in others."""
        return self.insertion.hook.lanes is Lanes.ACTIVE and bool(self.fragment.in_inactive_lanes)

    def set_exec(self, placement: Placement) -> None:
        """Make the hook's lanes active; the old EXEC stays in an argument that holds it, if there is one."""
        holders = (placement(slot.reg) for slot, value in self.arguments
                   if value == _EXEC and not self.fragment.written.overlaps(RegSet.of(slot.reg)))
        keep = next(holders, None)
        if keep is None and not self.site.at_end:
            keep = self.pool.take(RegFile.SGPR, 2)
            self.copy(keep, _EXEC)
        if keep is not None:
            self.saved[_EXEC] = keep
            self.kept.append((_EXEC, keep))
        self.copy(_EXEC, 1 if self.insertion.hook.lanes is Lanes.ONE else -1)

    def set_mode(self) -> list[Inst]:
        """Let the hook's floats compute as it was compiled for, where the application may have them otherwise; gives
        what puts MODE back: all between the first and the last field that is set, at once."""
        fields = self.site.float_fields if self.insertion.hook.mode is FloatMode.OWN else ()
        if not fields or not any(map(depends_on_mode, self.fragment.payload.instrs)):
            return []
        changed = reduce(or_, map(field_bits, fields))
        first = (changed & -changed).bit_length() - 1
        keep, whole = self.pool.take(RegFile.SGPR), mode_field(first, changed.bit_length() - first)
        self.emit(build.keep_mode(self.isa, keep, whole))
        for each in fields:
            bits = field_bits(each)
            self.emit(build.set_mode(self.isa, each, (PLAIN_MODE & bits) // (bits & -bits)))
        return [build.set_mode(self.isa, whole, keep)]

    # -- arguments and results -----------------------------------------------------------------

    @property
    def arguments(self) -> Iterator[tuple[Slot, object]]:
        """The fragment's register for each argument, with the argument; and for the private segment's resource, if it
        reads it."""
        payload = self.fragment.payload
        yield from zip(payload.params, self.insertion.runtime_args, strict=True)
        if payload.resource is not None:
            yield Slot(payload.resource, uniform=True), Own.PRIVATE_RESOURCE

    def location(self, value: object) -> AssignedLocation | None:
        """Where a value is while the call runs."""
        if isinstance(value, (Entry, WaveVariable, Own)):
            assigned = self.locations[value]
            return assigned if self.spill_vgprs is None else self.spill_vgprs.location(assigned)
        return value if isinstance(value, Reg) else None

    def pins(self) -> Iterator[Pin]:
        """Arguments and results that could stay where they live."""
        targets = set(self.insertion.into)
        writes = self.fragment.payload.writes
        named = any(
            operand.reg is not None and operand.reg.bits & _EXEC.bits
            for inst in self.fragment.payload.instrs for operand in inst.operands)
        steady = self.insertion.hook.lanes is Lanes.ACTIVE and not writes.overlaps(RegSet.of(_EXEC)) and not named
        for slot, value in self.arguments:
            location = self.location(value)
            if not isinstance(location, Reg) or location.file is not slot.reg.file:
                continue
            if is_general(location) or (location == _EXEC and steady):
                yield Pin(slot.reg, location, writable=value in targets)
        for slot, value in zip(self.fragment.payload.results, self.insertion.into, strict=True):
            location = self.location(value)
            if isinstance(location, Reg) and location.file is slot.reg.file and is_general(location):
                yield Pin(slot.reg, location, writable=True)

    def set_arguments(self, placement: Placement) -> None:
        """Values first: making addresses destroys SCC, which may be one."""
        variables, left = [], dict[AssignedLocation, AssignedLocation]()
        for slot, value in self.arguments:
            location, reg = self.location(value), placement(slot.reg)
            if isinstance(value, (Variable, Element)):
                variables.append((reg, value))
            elif location is not None and location != reg:
                left[reg] = self.saved.get(location, location) if isinstance(location, Reg) else location
        self.move_all(left)
        self.addresses(variables)
        if self.fragment.payload.stack is not None:
            self.copy(placement(self.fragment.payload.stack), offset_for_wave(self.isa, self.frame))

    def bring(self) -> None:
        """What lives in slots comes into registers."""
        kept = [self.locations[value] for value in (*self.insertion.runtime_args, *self.insertion.into)
                if isinstance(value, (Entry, WaveVariable))]
        self.spill_vgprs = allocate_spill_vgprs(self.isa, kept, self.pool, self.site)
        for inst in self.spill_vgprs.brought if self.spill_vgprs is not None else ():
            self.emit(inst)

    def take_back(self) -> None:
        """Write changed wave variables back to their slots."""
        changed = [self.locations[value] for value in self.insertion.into if isinstance(value, WaveVariable)]
        for inst in self.spill_vgprs.emit_write_back(changed) if self.spill_vgprs is not None else ():
            self.emit(inst)

    def move(self, to: AssignedLocation, source: AssignedLocation) -> None:
        """``to`` := ``source``; scalars broadcast into vector registers."""
        assert not isinstance(to, SpilledLocation) and not isinstance(source, SpilledLocation)
        if isinstance(to, LaneOf):
            assert isinstance(source, Reg)
            return self.to_lanes(to, source)
        if isinstance(source, LaneOf):
            if to.file is RegFile.SGPR:
                return self.from_lanes(to, source)
            scalar = self.pool.take(RegFile.SGPR, to.dwords)
            self.from_lanes(scalar, source)
            source = scalar
        step = 2 if to.file is RegFile.SGPR else 1
        for offset in range(0, to.dwords, step):
            width = min(step, to.dwords - offset)
            self.copy(part(to, offset, width), part(source, offset, width))

    def to_lanes(self, to: LaneOf, source: Reg) -> None:
        """Write scalars of ``source`` to the lanes of ``to``, one dword each."""
        for k in range(to.dwords):
            self.emit(build.to_lane(self.isa, to.reg, to.first + k, part(source, k)))

    def from_lanes(self, to: Reg, source: LaneOf) -> None:
        """Read scalars into ``to`` from the lanes of ``source``, one dword each."""
        for k in range(source.dwords):
            self.emit(build.from_lane(self.isa, part(to, k), source.reg, source.first + k))

    def addresses(self, wanted: list[tuple[Reg, Variable | Element]]) -> None:
        """Addresses of tool variables, relative to here; the last of the registers holds the PC until then."""
        if not wanted:
            return
        pc = wanted[-1][0]
        self.emit(build.program_counter(self.isa, pc))
        self.items.append(base := Label())
        for to, value in wanted:
            if isinstance(value, Element):
                target = Referent(variable=value.variable.name, offset=value.offset_bytes)
            else:
                target = Referent(variable=value.name)
            self.items += address_of(self.isa, self.edit, to, pc, base, target)

    def inline(self, placement: Placement) -> None:
        """The hook's code; its inner branches name labels, so that `relax` may move them."""
        labels = {to: Label() for to in self.fragment.jumps.values()}
        self.insts = instructions(self.isa, self.fragment, placement)
        insts = fill_holes(self.isa, self.fragment, self.insertion, self.insts)
        for start, stop in pairwise(self.fragment.cuts):
            self.items += [labels[start]] if start in labels else []
            if start in self.fragment.jumps:
                to = labels[self.fragment.jumps[start]]
                self.items.append(Single(insts[start], edit=self.edit, payload=True, jump=to))
            else:
                self.items.append(Run(insts, start, stop, self.edit))
        self.items += [labels[len(insts)]] if len(insts) in labels else []

    def run(self, placement: Placement) -> None:
        """The hook in its mode, and EXEC as it was."""
        back = self.set_mode()
        self.inline(placement)
        for inst in back:
            self.emit(inst)
        if _EXEC in self.saved:
            self.copy(_EXEC, self.saved.pop(_EXEC))

    def set_results(self, placement: Placement) -> None:
        """Move the hook's results to the registers and variables of ``into``; SCC is left to :meth:`set_flag`."""
        self.move_all({
            location: placement(slot.reg)
            for slot, value in zip(self.fragment.payload.results, self.insertion.into, strict=True)
            if (location := self.location(value)) is not None and placement(slot.reg) != location and location != _SCC
        })

    def move_all(self, left: dict[AssignedLocation, AssignedLocation]) -> None:
        """Move values to their targets, none of which is overwritten while it holds another of them."""
        while left:
            ready = [to for to in left if not any(_overlap(to, source) for t, source in left.items() if t != to)]
            if ready:
                self.move(ready[0], left.pop(ready[0]))
            else:  # they go round in a circle
                to, source = next(iter(left.items()))
                assert isinstance(source, Reg)  # other assigned locations are no target in a circle
                aside = self.pool.take(source.file, source.dwords)
                self.move(aside, source)
                left[to] = aside


def fill_holes(isa: InstructionSet, fragment: Fragment, insertion: Insertion,
               insts: tuple[Inst, ...]) -> tuple[Inst, ...]:
    """A hook's code with the constants of one call in the literals that are for them."""
    holes = fragment.payload.holes
    if not holes:
        return insts
    code = list(insts)
    for hole in holes:
        code[hole.instr] = with_literal(isa, code[hole.instr], hole.compute_dword(insertion.hook, insertion.args))
    return tuple(code)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A call, for others that differ in their constants and in what is free that it did not ask for."""

    items: list[Item]
    insts: tuple[Inst, ...]  # of the hook, without constants
    asked: RegSet            # registers whose being free made it what it is
    free: RegSet             # those of them that were
    slots: int               # that vector registers are put into
    carries: bool            # what lives in slots: registers that rest here made it what it is, too
    allotted: Allotted

    def fits(self, free: RegSet) -> bool:
        """Whether the items are right for a call that may take ``free``: of the registers in ``asked`` the same are
        free."""
        return free & self.asked == self.free

    def again(self, isa: InstructionSet, fragment: Fragment, insertion: Insertion, edit: Edit) -> list[Item]:
        """The items of another call."""
        insts, labels = fill_holes(isa, fragment, insertion, self.insts), defaultdict[Label | None, Label](Label)
        items: list[Item] = []
        for item in self.items:
            if isinstance(item, Run):
                items.append(Run(insts, item.start, item.stop, edit))
            elif isinstance(item, Label):
                items.append(labels[item])
            elif isinstance(item, Single):
                jump = labels[item.jump] if item.jump is not None else None
                refers = item.reference and replace(item.reference, base=labels[item.reference.base])
                items.append(Single(item.inst, None, edit, item.payload, jump, refers))
        return items


def edit_of(insertion: Insertion, site: Site, number: int) -> Edit:
    """The Edit of all items of the call; ``number``: of the component's calls."""
    return Edit(Cause.CALL, number, insertion.hook.name, site.instr.pc, site.place)


def call(
    isa: InstructionSet, insertion: Insertion, fragment: Fragment, site: Site, policy: Policy,
    locations: Mapping[PersistentValue, AssignedLocation], edit: Edit, frame: int,
) -> Pattern:
    """The items of one insertion at ``site``, by a policy for registers; raises OutOfRegisters, EditConflict."""
    own_exec = insertion.hook.lanes is not Lanes.ACTIVE
    pool = site.pool(policy)
    caller = Caller(isa, fragment, insertion, site, locations, pool, edit, frame)
    named = RegSet.of(
        *(r for v in (*insertion.runtime_args, *insertion.into) if isinstance(r := caller.location(v), Reg))
    )
    if own_exec and any(isinstance(to, Reg) and to.file is not RegFile.SGPR for to in insertion.into):
        message = f"hook {insertion.hook.name} runs with its own EXEC and cannot change vector registers"
        raise EditConflict(message, site.where())
    pool.free, pool.busy = pool.free - named, pool.busy - named
    for wait in site.wait:
        caller.emit(wait)
    dead_in_all_lanes = site.dead_in_all_lanes() or RegSet() if caller.writes_inactive_lanes else None
    placement, caller.pool = settle(isa, fragment, list(caller.pins()), caller.pool, dead_in_all_lanes)
    caller.bring()
    makes_addresses = any(isinstance(value, (Variable, Element)) for value in insertion.runtime_args)
    given = RegSet.of(*(to for to in insertion.into if isinstance(to, Reg)))
    caller.save(fragment.payload.writes | (RegSet.of(_SCC) if makes_addresses else RegSet()), given)
    end = Label()
    skips = fragment.payload.needs_lane and not own_exec
    if skips:
        caller.emit(build.jump_if_no_lane(isa), end)
    caller.set_arguments(placement)
    if own_exec:
        caller.set_exec(placement)
    caller.run(placement)
    caller.set_results(placement)
    caller.set_flag(placement)
    caller.items += [end] if skips else []
    caller.take_back()
    caller.restore()
    spills = caller.give_back(len(site.wait), policy)
    if caller.items and isinstance(caller.items[-1], Label):
        caller.emit(build.nothing(isa))
    asked = RegSet.by_file(*pool.asked) - named
    params, results = ([placement(slot.reg) for slot in slots]
                       for slots in (fragment.payload.params, fragment.payload.results))
    allotted = Allotted(policy.name, tuple(params), tuple(results), tuple(caller.kept), tuple(spills.kept))
    return Pattern(
        caller.items, caller.insts, asked, pool.free & asked, spills.slots,
        caller.spill_vgprs is not None or caller.writes_inactive_lanes, allotted)


def _overlap(a: AssignedLocation, b: AssignedLocation) -> bool:
    return isinstance(a, Reg) and isinstance(b, Reg) and RegSet.of(a).overlaps(RegSet.of(b))
