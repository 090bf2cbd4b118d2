"""One inserted call, as items: wait, save, set up, the fragment, results, restore.

In: an insertion, its payload, the facts at its place. Out: items for the clone. Invariant: after the
last item every register that the application may still read holds what it held before the first one,
except the registers that the insertion declares in ``into``.

The order is what keeps saves from clobbering each other: SCC is saved first and restored last, EXEC is
changed after everything of the application has been read, and put back before results are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

from luthier_py.errors import EditConflict, Location
from luthier_py.inject.allocate import Pin, Placement, Pool, fragment_groups, place
from luthier_py.inject.model import Item, Reference, Target
from luthier_py.inject.patch import FixupKind
from luthier_py.isa import EXEC, M0, SCC, VCC, Inst, InstructionSet, OperandKind, Reg, RegFile, RegSet, sgpr
from luthier_py.isa.hazards import unsafe_shift_amount
from luthier_py.jit import Payload, Slot
from luthier_py.tool import Element, Insertion, Lanes, Variable, WaveVariable

PLACEHOLDER = 0x7FFFFFFF  # forces a literal; link writes the real one


@dataclass(frozen=True, slots=True)
class Site:
    """What is known at the place of one insertion."""

    where: Location
    live: RegSet                 # what the application may still read, in the lanes that the hook runs in
    free: RegSet                 # registers that the hook may destroy
    wait: int | None             # immediate for s_waitcnt before a pending register is read
    at_end: bool                 # at s_endpgm: EXEC need not come back


@dataclass(slots=True)
class Weaver:
    """Emits the items of one insertion (mutable: collects them)."""

    isa: InstructionSet
    payload: Payload
    insertion: Insertion
    site: Site
    homes: Mapping[WaveVariable, Reg]
    pool: Pool
    items: list[Item]
    saved: dict[Reg, Reg]

    def emit(self, mnemonic: str, *operands: Reg | int) -> Item:
        item = Item(self.isa.make(mnemonic, *operands))
        self.items.append(item)
        return item

    # -- saving and restoring ------------------------------------------------------------------

    def must_save(self, reg: Reg, clobbered: RegSet) -> bool:
        return clobbered.overlaps(RegSet.of(reg)) and self.site.live.overlaps(RegSet.of(reg))

    def save(self, clobbered: RegSet) -> None:
        if self.must_save(sgpr(SCC), clobbered):
            keep = self.saved[sgpr(SCC)] = self.pool.take(RegFile.SGPR)
            self.emit("s_cselect_b32", keep, 1, 0)
        for reg in (sgpr(VCC, 2), sgpr(M0)):
            if self.must_save(reg, clobbered):
                self.copy(reg, self.pool.take(RegFile.SGPR, reg.dwords), self.saved)

    def copy(self, reg: Reg, keep: Reg, into: dict[Reg, Reg]) -> None:
        self.emit(scalar_move(reg.dwords), keep, reg)
        into[reg] = keep

    def restore(self) -> None:
        for reg, keep in self.saved.items():
            if reg != sgpr(SCC) and reg != sgpr(EXEC, 2):
                self.emit(scalar_move(reg.dwords), reg, keep)
        if sgpr(SCC) in self.saved:
            self.emit("s_cmp_lg_u32", self.saved[sgpr(SCC)], 0)

    def set_exec(self) -> None:
        lanes = self.insertion.hook.lanes
        if lanes is Lanes.ACTIVE:
            return
        if not self.site.at_end:
            self.copy(sgpr(EXEC, 2), self.pool.take(RegFile.SGPR, 2), self.saved)
        self.emit("s_mov_b64", sgpr(EXEC, 2), 1 if lanes is Lanes.ONE else -1)

    def restore_exec(self) -> None:
        if sgpr(EXEC, 2) in self.saved:
            self.emit("s_mov_b64", sgpr(EXEC, 2), self.saved[sgpr(EXEC, 2)])

    def skips(self) -> bool:
        """Whether the hook must not run when no lane is active."""
        return self.payload.needs_lane and self.insertion.hook.lanes is Lanes.ACTIVE

    # -- arguments and results -----------------------------------------------------------------

    def home(self, value: object) -> Reg | None:
        if isinstance(value, WaveVariable):
            return self.homes[value]
        return value if isinstance(value, Reg) else None

    def pins(self) -> Iterator[Pin]:
        """Arguments and results that could stay where they live."""
        targets = set(self.insertion.into)
        steady = self.insertion.hook.lanes is Lanes.ACTIVE and not self.payload.writes.overlaps(RegSet.of(sgpr(EXEC, 2)))
        for slot, value in zip(self.payload.params, self.insertion.runtime_args):
            home = self.home(value)
            if home is not None and home.file is slot.reg.file and (is_general(home) or (home == sgpr(EXEC, 2) and steady)):
                yield Pin(slot.reg, home, writable=value in targets)
        for slot, value in zip(self.payload.results, self.insertion.into):
            home = self.home(value)
            if home is not None and home.file is slot.reg.file and is_general(home):
                yield Pin(slot.reg, home, writable=True)

    def placement(self) -> Placement:
        """Places for the fragment's registers, none of which the hardware gets wrong."""
        payload, general = self.payload, general_registers(self.isa)
        slots = [slot.reg for slot in (*payload.params, *payload.results)]
        used = (payload.reads | payload.writes | RegSet.of(*slots)) & general
        free, pins, banned = self.pool.free, list(self.pins()), RegSet()
        while True:
            self.pool = Pool(free - banned, self.site.where)
            kept = [pin for pin in pins if not banned.overlaps(RegSet.of(pin.home))]
            groups = fragment_groups(payload.instrs, slots, general)
            placement = place(groups, used, payload.writes & general, kept, self.pool)
            renamed = (rename(self.isa, inst, placement) for inst in payload.instrs)
            wrong = RegSet.of(*(r for i in renamed if unsafe_shift_amount(self.isa.target, i) and (r := i["src0"].reg)))
            if not wrong:
                return placement
            banned |= wrong

    def argument(self, slot: Slot, value: object, placement: Placement) -> None:
        reg = placement(slot.reg)
        if isinstance(value, (Variable, Element)):
            self.address(reg, value)
            return
        home = self.home(value)
        assert home is not None
        if home == reg:
            return
        home = self.saved.get(home, home)
        if home == sgpr(SCC):
            self.emit("s_cselect_b32", reg, 1, 0)
        else:
            self.move(reg, home)

    def move(self, to: Reg, source: Reg) -> None:
        """``to`` := ``source``; scalars broadcast into vector registers."""
        if to.file is RegFile.SGPR:
            for offset in range(0, to.dwords, 2):
                width = min(2, to.dwords - offset)
                self.emit(scalar_move(width), part(to, offset, width), part(source, offset, width))
            return
        for offset in range(to.dwords):
            self.emit(vector_move(to, source), part(to, offset), part(source, offset))

    def address(self, to: Reg, value: Variable | Element) -> None:
        """``to`` := address of a tool variable, relative to here."""
        if isinstance(value, Element):
            target = Target(variable=value.variable.name, offset=value.offset_bytes)
        else:
            target = Target(variable=value.name)
        base = self.emit("s_getpc_b64", to)
        for op, offset, half in (("s_add_u32", 0, FixupKind.REL32_LO), ("s_addc_u32", 1, FixupKind.REL32_HI)):
            inst = self.isa.make(op, part(to, offset), part(to, offset), PLACEHOLDER)
            self.items.append(Item(inst, reference=Reference(half, target, base)))

    def fragment(self, placement: Placement) -> None:
        """The hook's code; its inner branches name items, so that `relax` may move them."""
        starts = list(accumulate((inst.size_bytes for inst in self.payload.instrs), initial=0))
        renamed = [rename(self.isa, inst, placement) for inst in self.payload.instrs]
        inner = {at + inst.size_bytes + 4 * d for at, inst in zip(starts, renamed) if (d := displacement(inst)) is not None}
        if starts[-1] in inner:
            renamed.append(self.isa.make("s_nop", 0))  # something to jump to
        bodies = {at: Item(inst) for at, inst in zip(starts, renamed)}
        for at, item in bodies.items():
            d = displacement(item.inst)
            if d is not None:
                item.jump = bodies[at + item.inst.size_bytes + 4 * d]
            self.items.append(item)

    def results(self, placement: Placement) -> None:
        for slot, value in zip(self.payload.results, self.insertion.into):
            home = self.home(value)
            assert home is not None
            if placement(slot.reg) != home:
                self.move(home, placement(slot.reg))


def weave(
    isa: InstructionSet, insertion: Insertion, payload: Payload, site: Site, homes: Mapping[WaveVariable, Reg]
) -> list[Item]:
    """The items of one insertion at ``site``; raises OutOfRegisters, EditConflict."""
    weaver = Weaver(isa, payload, insertion, site, homes, Pool(site.free, site.where), [], {})
    named = [weaver.home(v) for v in (*insertion.runtime_args, *insertion.into)]
    for reg in named:
        if reg is not None:
            weaver.pool.free -= RegSet.of(reg)
    if insertion.hook.lanes is not Lanes.ACTIVE and any(r.file is not RegFile.SGPR for r in named if r is not None):
        raise EditConflict(f"hook {insertion.hook.name} runs with its own EXEC and cannot take vector registers", site.where)
    if site.wait is not None:
        weaver.emit("s_waitcnt", site.wait)
    placement = weaver.placement()
    needs_carry = any(isinstance(v, (Variable, Element)) for v in insertion.runtime_args)
    weaver.save(payload.writes | (RegSet.of(sgpr(SCC)) if needs_carry else RegSet()))
    ordered = sorted(zip(payload.params, insertion.runtime_args), key=lambda p: isinstance(p[1], (Variable, Element)))
    skip = weaver.emit("s_cbranch_execz", 0) if weaver.skips() else None
    for slot, value in ordered:
        weaver.argument(slot, value, placement)
    weaver.set_exec()
    weaver.fragment(placement)
    weaver.restore_exec()
    weaver.results(placement)
    end = len(weaver.items)
    weaver.restore()
    if skip is not None:
        skip.jump = weaver.items[end] if end < len(weaver.items) else weaver.emit("s_nop", 0)
    return weaver.items


def displacement(inst: Inst) -> int | None:
    """Of a direct branch, in dwords from its end."""
    return next((o.value for o in inst.operands if o.kind is OperandKind.TARGET), None)


def rename(isa: InstructionSet, inst: Inst, placement: Placement) -> Inst:
    changed = any(o.reg is not None and placement(o.reg) != o.reg for o in inst.operands)
    return isa.with_registers(inst, lambda o: placement(o.reg).index if o.reg is not None else 0) if changed else inst


def general_registers(isa: InstructionSet) -> RegSet:
    """Registers without a special meaning on this target."""
    vectors = (1 << isa.target.vgpr_limit) - 1
    return RegSet((1 << isa.target.sgpr_limit) - 1, vectors, vectors)


def is_general(reg: Reg) -> bool:
    return reg.file is not RegFile.SGPR or reg.index < min(VCC, M0)


def part(reg: Reg, offset: int, dwords: int = 1) -> Reg:
    return Reg(reg.file, reg.index + offset, dwords)


def vector_move(to: Reg, source: Reg) -> str:
    if source.file is RegFile.AGPR:
        return "v_accvgpr_read_b32"
    return "v_accvgpr_write_b32" if to.file is RegFile.AGPR else "v_mov_b32"


def scalar_move(dwords: int) -> str:
    return "s_mov_b64" if dwords == 2 else "s_mov_b32"
