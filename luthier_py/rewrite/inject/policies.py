"""Which registers a call may take, at what price: one policy after the other, cheapest first.

In: a component, and what is free in it. Out: Policies, and where its kernels have private memory for registers.
Invariant: what a policy gives is used by no other code, or saved by the call that takes it; lower occupancy is the last
choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from luthier_py.base.records import dataclass, replace
from luthier_py.isa import Reg, RegSet
from luthier_py.program.analysis import Facts
from luthier_py.program.ir import Program
from luthier_py.rewrite.inject.allocate import Policy
from luthier_py.rewrite.inject.fragment import general_registers
from luthier_py.rewrite.inject.items import (
    AssignedLocation,
    Own,
    PersistentValue,
    PrivateCell,
    SpilledLocation,
    SpillSlot,
)
from luthier_py.rewrite.inject.own_scratch import keeps_base
from luthier_py.rewrite.inject.resources import Component, Orders, at_no_cost, for_fewer_waves

MOST_CELLS = 64  # dwords of private memory for registers of one call
CELL_BYTES = 4
STACK_ALIGN_BYTES = 16  # LLVM, AMDGPU: of the stack pointer


Allowed = Callable[..., RegSet]  # at_no_cost or for_fewer_waves


@dataclass(frozen=True, slots=True)
class Private:
    """Private memory of a component's kernels: what is behind the application's, from ``start`` on; or why there can be
    none."""

    start: int
    obstacle: str = ""
    kept: int = 0
    """The first so many dwords are assigned locations of the wave's persistent values."""
    frame_bytes: int = 0
    """Of hooks' stacks, which are behind all dwords for registers: instructions have room for small offsets."""
    least_cells: int = 0
    """So many dwords for registers, even if no call takes that many: what is there is set up where kernels begin."""
    resource: Reg | None = None
    """By which it is reached, where private memory is in buffers."""
    in_lanes: bool = False
    """That resource is in lanes of a vector register: too few scalar registers are free to save others through it."""

    @property
    def frame(self) -> int:
        """Where stacks begin."""
        return self.start + CELL_BYTES * MOST_CELLS

    def with_locations(self, locations: Mapping[PersistentValue, AssignedLocation]) -> Private:
        """The same, of which some assigned locations are a part."""
        slots = {location.slot for location in locations.values() if isinstance(location, SpilledLocation)}
        own = locations.get(Own.PRIVATE_RESOURCE)
        return replace(self, kept=sum(isinstance(slot, PrivateCell) for slot in slots),
                       resource=own if isinstance(own, Reg) else None,
                       in_lanes=own is not None and not isinstance(own, Reg))

    @property
    def cells(self) -> tuple[PrivateCell, ...]:
        """Dwords for registers, without those of persistent values."""
        return () if self.obstacle or self.in_lanes else tuple(
            PrivateCell(self.start + CELL_BYTES * number, self.resource) for number in range(self.kept, MOST_CELLS))

    def compute_used_range(self, cells: int) -> range:
        """What there is of it, with so many dwords for registers."""
        if self.frame_bytes:
            return range(self.start, self.frame + self.frame_bytes)
        return range(self.start, self.start + CELL_BYTES * (self.kept + max(cells, self.least_cells)))


def private_memory(program: Program, component: Component, frame_bytes: int) -> Private:
    """Behind the largest of the application's, since functions are shared; ``frame_bytes``: that stacks need."""
    target, records = program.obj.target, [kernel.record for kernel in component.kernels]
    start = max(record.private_bytes for record in records)
    if target.scratch_base is not None and not keeps_base(program, component, target.scratch_base):
        return Private(start, "it sets FLAT_SCRATCH to something of its own")
    return Private(_align_stack_size(start), frame_bytes=_align_stack_size(frame_bytes))


def _align_stack_size(size_bytes: int) -> int:
    return -(-size_bytes // STACK_ALIGN_BYTES) * STACK_ALIGN_BYTES


def location_slots(
    program: Program, facts: Facts, component: Component, named: RegSet, private: Private | None, orders: Orders
) -> tuple[SpillSlot, ...]:
    """Where something can live for good for which there is no register; ``named``: registers that edits name."""
    registers = at_no_cost(program, component, orders[0]) & general_registers(program.isa) - named
    reached = private is not None and not program.obj.target.scratch_in_buffers  # without what has a home itself
    return *accumulators(program, facts, component, registers), *(private.cells if private and reached else ())


def cheap_policies(
    program: Program, facts: Facts, component: Component, general: RegSet, orders: Orders
) -> tuple[Policy, ...]:
    """Those for which kernels need nothing that they have not got."""
    return tuple(_ways(program, facts, component, general, "at no cost", at_no_cost, orders)[0])


def every_policy(
    program: Program, facts: Facts, component: Component, general: RegSet, private: Private, orders: Orders
) -> tuple[Policy, ...]:
    """All policies of a component, cheapest first; the last one waits for outstanding loads to have their registers,
    too."""
    found: list[Policy] = []
    for name, allowed in (("at no cost", at_no_cost), ("for fewer waves", for_fewer_waves)):
        ways, registers, spare = _ways(program, facts, component, general, name, allowed, orders)
        found += ways
        if private.cells:
            slots: tuple[SpillSlot, ...] = (*spare, *private.cells)
            found.append(Policy(f"{name}, with registers kept in private memory", registers, True, slots))
    last = found[-1]
    return *found, replace(last, name=f"{last.name}, once all is loaded", waits=True)


def _ways(
    program: Program, facts: Facts, component: Component, general: RegSet, name: str, allowed: Allowed,
    orders: Orders,
) -> tuple[list[Policy], RegSet, tuple[Reg, ...]]:
    """And the registers of the last of them, with the accumulators among them that nothing touches."""
    registers = allowed(program, component, orders[0])
    found = [Policy(name, registers), Policy(f"{name}, with scalars kept in lanes", registers, True)]
    if not program.obj.target.has_agprs:
        return found, registers, ()
    more = allowed(program, component, orders[1])
    spare = accumulators(program, facts, component, more & general)
    if not spare:
        return found, registers, ()
    return [*found, Policy(f"{name}, with registers kept in accumulators", more, True, spare)], more, spare


def accumulators(program: Program, facts: Facts, component: Component, registers: RegSet) -> tuple[Reg, ...]:
    """Those that nothing in the component touches."""
    if not program.obj.target.has_agprs:
        return ()
    untouched = registers - facts.touched(component.functions)
    return tuple(RegSet.by_file(agpr=untouched.agpr))
