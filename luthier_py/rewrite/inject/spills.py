"""Spills around a call whose registers are not all free: values are saved before it and restored behind it.

In: the registers that a call has borrowed, and a policy that says where their values can be. Out: items. Invariant:
behind the last of them every borrowed register holds what it held before the first: scalars in all of their bits,
vector registers in every lane that may have been written between.

Scalars are written to lanes of a vector register, the spill VGPR, whatever EXEC is. They are saved first and restored
last: what vectors need of them is free between. The spill VGPR is a register that is dead in all lanes; else one that
is saved whole itself, before all others. Vector registers are saved in slots, accumulators or private memory, under the
EXEC of the application where the call runs under it, else in all lanes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from luthier_py.base.errors import OutOfRegisters
from luthier_py.base.records import dataclass, field
from luthier_py.isa import M0, SCC, Inst, InstructionSet, LaneOf, Reg, RegFile, RegSet, build, sgpr
from luthier_py.rewrite.inject.allocate import Policy, Pool
from luthier_py.rewrite.inject.items import Edit, Item, Label, PrivateCell, Single, SpillSlot
from luthier_py.rewrite.inject.sites import Site
from luthier_py.rewrite.inject.slots import emit_base_setup, in_all_lanes, moves, need_base

_M0 = sgpr(M0)


@dataclass(slots=True)
class Spills:
    """Items before and behind a call, and how many slots they take (mutable: collects them). ``flag``: the application
    needs SCC, as it is before the call or as that leaves it; ``m0``: the same of M0."""

    isa: InstructionSet
    pool: Pool
    site: Site
    policy: Policy
    edit: Edit
    flag: bool
    m0: bool
    before: list[Item] = field(default_factory=list)
    behind: list[Item] = field(default_factory=list)
    slots: int = 0
    kept: list[tuple[Reg, Reg | LaneOf | PrivateCell]] = field(default_factory=list)

    def put(self, own_exec: bool) -> None:
        """All that the pool has borrowed; it may borrow more scalars for that. ``own_exec``: the call sets EXEC."""
        vectors = [reg for reg in self.pool.borrowed if reg.file is RegFile.VGPR]
        if vectors:
            self.vectors(vectors, own_exec)
        scalars = [reg for reg in self.pool.borrowed if reg.file is RegFile.SGPR]
        if scalars:
            self.scalars(scalars)

    def around(self, before: Sequence[Item], behind: Sequence[Item]) -> None:
        """Put items around those that are there: in front of all before the call, behind all that follow it."""
        self.before, self.behind = [*before, *self.before], [*self.behind, *behind]

    def singles(self, insts: Sequence[Inst]) -> list[Item]:
        """``insts`` as items of the call."""
        return [Single(inst, edit=self.edit) for inst in insts]

    # -- vectors -------------------------------------------------------------------------------

    def vectors(self, regs: Sequence[Reg], own_exec: bool) -> None:
        """Put vector registers into slots and back, in all lanes if ``own_exec``, else under the application's EXEC;
        OutOfRegisters where there are too few slots."""
        isa, slots = self.isa, self.next_slots(len(regs))
        base = self.pool.take(RegFile.SGPR) if need_base(isa, slots) else None
        saves, loads = moves(isa, regs, slots, base)
        self.kept += zip(regs, slots, strict=True)
        if own_exec:
            keep = self.pool.take(RegFile.SGPR, 2)
            saves, loads = (in_all_lanes(isa, keep, each) for each in (saves, loads))
        self.around(self.singles([*emit_base_setup(isa, slots, base), *saves]), self.singles(loads))

    def next_slots(self, count: int) -> tuple[SpillSlot, ...]:
        """The policy's next ``count`` slots; OutOfRegisters if there are not so many left."""
        found = self.policy.slots[self.slots : self.slots + count]
        self.slots += count
        if len(found) < count:
            raise OutOfRegisters(
                f"{self.slots} VGPRs of the application would have to be put aside for an inserted call, and there "
                f"is room for {len(self.policy.slots)}{self.pool.why(RegFile.VGPR)}", self.site.where())
        return found

    # -- scalars -------------------------------------------------------------------------------

    def scalars(self, regs: Sequence[Reg]) -> None:
        """Put scalars into lanes of one vector register and back; OutOfRegisters where no vector register can be had
        for it."""
        pool, nobodys = self.pool, self.site.dead_in_all_lanes()
        dead_in_all_lanes = Pool(pool.free & (nobodys or RegSet()), pool.where, pool.why, pool.taken)
        spill_vgpr = dead_in_all_lanes.lowest(RegFile.VGPR)
        whole = spill_vgpr is None and nobodys is not None and bool(self.policy.slots)
        if whole:
            spill_vgpr = Pool(pool.busy | pool.free, pool.where, pool.why, pool.taken).take(RegFile.VGPR)
        if spill_vgpr is None:
            spill_vgpr = dead_in_all_lanes.take(RegFile.VGPR)  # says why there is none
        pool.claim(spill_vgpr)
        self.around(self.singles([build.to_lane(self.isa, spill_vgpr, k, reg) for k, reg in enumerate(regs)]),
                    self.singles([build.from_lane(self.isa, reg, spill_vgpr, k) for k, reg in enumerate(regs)]))
        self.kept += [(reg, LaneOf(spill_vgpr, k)) for k, reg in enumerate(regs)]
        if whole:
            self.whole(spill_vgpr)

    def whole(self, spill_vgpr: Reg) -> None:
        """The spill VGPR in all lanes. Scalars that are free, though the call takes them, are so before and behind
        it."""
        isa, slots = self.isa, self.next_slots(1)
        self.kept.append((spill_vgpr, slots[0]))
        free = Pool(self.pool.free, self.pool.where, self.pool.why)
        save, load = self.emit_based_moves(spill_vgpr, slots, free)
        keep = free.lowest(RegFile.SGPR, 2)
        if keep is not None:
            self.around(*(self.singles(in_all_lanes(isa, keep, each)) for each in (save, load)))
            return
        flip = build.other_lanes(isa)
        twice = [*save, flip, *save, flip], [*load, flip, *load, flip]
        if not self.flag:
            self.around(*map(self.singles, twice))
        elif (flag := free.lowest(RegFile.SGPR)) is not None:
            self.around(*(self.singles([build.copy(isa, flag, sgpr(SCC)), *each, build.set_flag(isa, flag)])
                          for each in twice))
        else:
            self.around(*map(self.on_either_way, twice))

    def emit_based_moves(self, spill_vgpr: Reg, slots: Sequence[SpillSlot], free: Pool) -> Iterator[list[Inst]]:
        """Into its slot, and back. Where every scalar is in use, M0 keeps one that holds the address meanwhile."""
        isa = self.isa
        base = free.lowest(RegFile.SGPR) if need_base(isa, slots) else None
        victim = None if base is not None or not need_base(isa, slots) or self.m0 else Pool(
            self.site.busy, self.pool.where, self.pool.why).lowest(RegFile.SGPR)
        base = base or victim
        if base is None and need_base(isa, slots):
            base = free.take(RegFile.SGPR)  # says why there is none
        for each in moves(isa, [spill_vgpr], slots, base):
            found = [*emit_base_setup(isa, slots, base), *each]
            yield found if victim is None else [build.copy(isa, _M0, victim), *found, build.copy(isa, victim, _M0)]

    def on_either_way(self, insts: Sequence[Inst]) -> list[Item]:
        """``insts``, which destroy SCC, where no register is left to keep it: once for each of its values."""
        is_set, end = Label(), Label()
        return [Single(build.jump_if_flag(self.isa), edit=self.edit, jump=is_set), *self.singles(insts),
                *self.singles([build.flag(self.isa, False)]), Single(build.jump(self.isa), edit=self.edit, jump=end),
                is_set, *self.singles([*insts, build.flag(self.isa, True)]), end]
