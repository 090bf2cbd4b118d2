"""Vector registers in slots, accumulators or private memory: into them, and back; and what lives there for good.

In: registers, slots, what is free at a place. Out: instructions. Invariant: they change nothing but the registers that
they are given, EXEC not even for what comes next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from luthier_py.base.records import dataclass
from luthier_py.isa import EXEC, Counter, Inst, InstructionSet, Reg, RegFile, RegSet, build, sgpr
from luthier_py.rewrite.inject.allocate import Pool
from luthier_py.rewrite.inject.items import AssignedLocation, PrivateCell, SpilledLocation, SpillSlot
from luthier_py.rewrite.inject.sites import Site

NEAR_BYTES = 2048  # of offsets that every target's instructions can have
_EXEC = sgpr(EXEC, 2)


def need_base(isa: InstructionSet, slots: Iterable[SpillSlot]) -> bool:
    """Whether their addresses need a scalar register."""
    cells = [slot.offset_bytes for slot in slots if isinstance(slot, PrivateCell)]
    return bool(cells) and (isa.target.scratch_needs_base or max(cells) >= NEAR_BYTES)


def emit_base_setup(isa: InstructionSet, slots: Iterable[SpillSlot], base: Reg | None) -> list[Inst]:
    """What makes ``base`` hold from where their offsets count, if they need it."""
    return [] if base is None else [build.copy(isa, base, offset_for_wave(isa, _start(slots)))]


def offset_for_wave(isa: InstructionSet, offset_bytes: int) -> int:
    """An offset in each lane's private memory, as instructions want it in a scalar register: where that memory is in
    buffers, in bytes of all lanes (AMDGPUUsage, "Private Segment Buffer")."""
    return offset_bytes * isa.wave_size if isa.target.scratch_in_buffers else offset_bytes


def moves(
    isa: InstructionSet, regs: Sequence[Reg], slots: Sequence[SpillSlot], base: Reg | None
) -> tuple[list[Inst], list[Inst]]:
    """Into slots in the lanes that are active, and back."""
    start = 0 if base is None else _start(slots)
    saves, loads = [], []
    for reg, slot in zip(regs, slots, strict=True):
        if isinstance(slot, PrivateCell):
            saves.append(build.to_private(isa, reg, base, slot.offset_bytes - start, slot.resource))
            loads.append(build.from_private(isa, reg, base, slot.offset_bytes - start, slot.resource))
        else:
            saves.append(build.copy(isa, slot, reg))
            loads.append(build.copy(isa, reg, slot))
    in_memory = any(isinstance(slot, PrivateCell) for slot in slots)
    return saves, [*loads, *(isa.waits({Counter.VM: 0}) if in_memory else ())]


def in_all_lanes(isa: InstructionSet, keep: Reg, insts: Sequence[Inst]) -> list[Inst]:
    """``keep``: two scalar registers, for EXEC meanwhile."""
    return [build.copy(isa, keep, _EXEC), build.copy(isa, _EXEC, -1), *insts, build.copy(isa, _EXEC, keep)]


def _start(slots: Iterable[SpillSlot]) -> int:
    return min(slot.offset_bytes for slot in slots if isinstance(slot, PrivateCell))


@dataclass(frozen=True, slots=True)
class SpillVgprs:
    """Vector registers that hold, while a call runs, what lives in slots. ``keep`` and ``base`` are scalars that it has
    for bringing them."""

    isa: InstructionSet
    of: Mapping[SpillSlot, Reg]
    keep: Reg
    base: Reg | None

    def location(self, location: AssignedLocation) -> AssignedLocation:
        """Where it is while the call runs."""
        return location.lanes(self.of[location.slot]) if isinstance(location, SpilledLocation) else location

    @property
    def brought(self) -> list[Inst]:
        """Instructions that load the spill VGPRs from their slots, in all lanes."""
        loads = moves(self.isa, tuple(self.of.values()), tuple(self.of), self.base)[1]
        return in_all_lanes(self.isa, self.keep, [*emit_base_setup(self.isa, self.of, self.base), *loads])

    def emit_write_back(self, changed: Iterable[AssignedLocation]) -> list[Inst]:
        """Those of which something is ``changed``."""
        slots = tuple(dict.fromkeys(location.slot for location in changed if isinstance(location, SpilledLocation)))
        if not slots:
            return []
        base = self.base if need_base(self.isa, slots) else None
        saves = moves(self.isa, [self.of[slot] for slot in slots], slots, base)[0]
        return in_all_lanes(self.isa, self.keep, [*emit_base_setup(self.isa, slots, base), *saves])


def allocate_spill_vgprs(isa: InstructionSet, locations: Iterable[AssignedLocation], pool: Pool,
                         site: Site) -> SpillVgprs | None:
    """Allocate registers for those of ``locations`` that are in slots. A register that is live in any lane is
    borrowed."""
    slots = tuple(dict.fromkeys(location.slot for location in locations if isinstance(location, SpilledLocation)))
    if not slots:
        return None
    dead_in_all_lanes = Pool(pool.free & (site.dead_in_all_lanes() or RegSet()), pool.where, pool.why, pool.taken,
                             pool.asked)
    found: dict[SpillSlot, Reg] = {}
    for slot in slots:
        reg = dead_in_all_lanes.lowest(RegFile.VGPR)
        if reg is None:
            reg = pool.take(RegFile.VGPR)
            pool.borrowed |= RegSet.of(reg)
            dead_in_all_lanes.claim(reg)
        found[slot] = pool.claim(reg)
    return SpillVgprs(isa, found, pool.take(RegFile.SGPR, 2),
                    pool.take(RegFile.SGPR) if need_base(isa, slots) else None)
