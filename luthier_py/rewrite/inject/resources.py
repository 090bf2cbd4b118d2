"""Which functions share registers, where wave variables live, and what the descriptors must say.

In: the program, its facts, the edits. Out: components (kernels with the functions that they reach), the
assigned locations of wave variables in each, descriptors with room for what was added. Invariant: a home is touched by
no instruction of its component, and a descriptor only grows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache, partial, reduce
from operator import or_
from typing import NamedTuple

from luthier_py.base.errors import Location, OutOfRegisters, Unsupported
from luthier_py.base.records import dataclass
from luthier_py.binary.loader import KernelDescriptor
from luthier_py.binary.loader.descriptor import DESCRIPTOR_BYTES
from luthier_py.isa import NO_REGS, LaneOf, OpFlag, Reg, RegFile, RegSet, Target
from luthier_py.program.analysis import Facts, group_sharing_kernels
from luthier_py.program.ir import Function, Kernel, Program, by_address
from luthier_py.rewrite.inject.allocate import Pool
from luthier_py.rewrite.inject.cloned import Resources
from luthier_py.rewrite.inject.fragment import general_registers
from luthier_py.rewrite.inject.items import (
    AssignedLocation,
    Clone,
    PersistentValue,
    SpilledLocation,
    SpillSlot,
    dwords_of,
)

VECTORS_FIRST = RegFile.SGPR, RegFile.VGPR, RegFile.AGPR
ACCUMULATORS_FIRST = RegFile.SGPR, RegFile.AGPR, RegFile.VGPR
"""Where vector registers and accumulators come out of one file, what one has the other has not."""
Orders = tuple[Sequence[RegFile], Sequence[RegFile]]
ORDERS: tuple[Orders, ...] = (
    (VECTORS_FIRST, ACCUMULATORS_FIRST), (ACCUMULATORS_FIRST, ACCUMULATORS_FIRST), (VECTORS_FIRST, VECTORS_FIRST))
"""What calls take first, and where that is not enough: together both may be more than there is, one order is not."""
_EMPTY = KernelDescriptor(bytes(DESCRIPTOR_BYTES))


@dataclass(frozen=True, slots=True)
class Component:
    """Kernels that share functions, and all functions that they can reach (kernel bodies included)."""

    kernels: tuple[Kernel, ...]
    functions: tuple[Function, ...]


def components(program: Program, wanted: Iterable[Kernel]) -> list[Component]:
    """Kernels grouped so that no function belongs to two groups."""
    return [Component(kernels, by_address({f for kernel in kernels for f in program.reachable(kernel.function)}))
            for kernels in group_sharing_kernels(program, wanted)]


def wave_locations(
    program: Program, facts: Facts, component: Component, values: Iterable[PersistentValue], named: RegSet = NO_REGS,
    slots: Sequence[SpillSlot] = (), order: Sequence[RegFile] = VECTORS_FIRST,
) -> dict[PersistentValue, AssignedLocation]:
    """Scalar registers that the component never touches; where there are too few, lanes of such a vector register, and
    if there is none, of a slot: an accumulator first of all, private memory last. ``named``: registers that cannot be
    assigned locations: those that hooks get or give as the application's, for one."""
    ordered = sorted(values, key=lambda v: (-dwords_of(v), v.name))
    if ordered:
        _check_calls(program, component)
    untouched = general_registers(program.isa) - facts.touched(component.functions) - named
    for kernel in component.kernels:  # what a wave starts with and a trap handler, say, still wants
        for entry in kernel.function.entries:
            untouched -= facts.live_before(kernel.function.block(entry).instrs[0])
    where = Location(component.kernels[0].name)
    pool = Pool(untouched.scalars, lambda: where)
    locations: dict[PersistentValue, AssignedLocation] = {}
    for number, value in enumerate(ordered):
        try:
            locations[value] = pool.take(RegFile.SGPR, dwords_of(value))
        except OutOfRegisters:
            cheap = untouched.vectors & at_no_cost(program, component, order)
            scarce = not cheap.vgpr and not any(isinstance(slot, Reg) for slot in slots)
            left = untouched.vectors & for_fewer_waves(program, component, order) if scarce else cheap
            return locations | _in_lanes(program, ordered[number:], Pool(left, lambda: where), iter(slots))
    return locations


def _in_lanes(program: Program, values: Sequence[PersistentValue], pool: Pool,
              slots: Iterator[SpillSlot]) -> dict[PersistentValue, AssignedLocation]:
    locations: dict[PersistentValue, AssignedLocation] = {}
    first = size = program.isa.wave_size
    holder: Reg | None = None
    slot: SpillSlot | None = None
    for value in values:
        if first + dwords_of(value) > size:
            first, holder = 0, pool.lowest(RegFile.VGPR)
            slot = next(slots, None) if holder is None else None
        if slot is not None:
            locations[value] = SpilledLocation(slot, first, dwords_of(value))
        else:  # where there is no slot either, taking one says so
            locations[value] = LaneOf(holder or pool.take(RegFile.VGPR), first, dwords_of(value))
        first += dwords_of(value)
    return locations


def collect_reserved_registers(locations: Iterable[AssignedLocation]) -> RegSet:
    """Registers that hold ``locations``, which no call may take."""
    holders = (
        location if isinstance(location, Reg) else location.reg if isinstance(location, LaneOf) else location.slot
        for location in locations
    )
    return RegSet.of(*(holder for holder in holders if isinstance(holder, Reg)))


def _check_calls(program: Program, component: Component) -> None:
    for function in component.functions:
        for site in program.calls(function):
            if site.unknown:
                raise Unsupported(
                    "what is kept for a wave does not survive this call of code that is not known; count with a "
                    "Variable",
                    Location(function.name, site.instr.pc, program.isa.text(site.instr.inst)),
                )


def collect_used_registers(clones: Iterable[Clone]) -> RegSet:
    """Registers that some item names; what the application's own indexes reach is there already."""
    named = 0
    for clone in clones:
        for code in clone.codes:
            if code.find_flagged(OpFlag.INDEXES_REGISTERS):
                named |= reduce(or_, (code.distinct.inst(kind).named.bits for kind in code.used), 0)
            else:
                named |= code.touched
        for inst, _ in clone.apart:
            named |= inst.reads.bits | inst.writes.bits
    return RegSet(named)


def grow_register_counts(target: Target, descriptor: KernelDescriptor, used: RegSet) -> KernelDescriptor:
    """``descriptor`` with room for all registers in ``used``; AGPRs that it had stay, wherever they start now."""
    had = descriptor.agpr_count(target)
    if target.unified_agprs and used.vgpr.bit_length() > descriptor.accum_offset:
        descriptor = descriptor.with_accum_offset(used.vgpr.bit_length())
        if used.agpr:
            descriptor = descriptor.with_vgpr_count(target, descriptor.accum_offset + max(had, used.agpr.bit_length()))
    wanted = counts(target, descriptor, used)
    if wanted[".sgpr_count"] > descriptor.sgpr_count(target):
        descriptor = descriptor.with_sgpr_count(target, wanted[".sgpr_count"])
    if wanted[".vgpr_count"] > descriptor.count_addressable_vgprs(target):
        descriptor = descriptor.with_vgpr_count(target, wanted[".vgpr_count"])
    return descriptor


def at_no_cost(program: Program, component: Component, order: Sequence[RegFile] = VECTORS_FIRST) -> RegSet:
    """Registers that a hook may use before some kernel has room for fewer waves: those that it has, and what its
    allocation is rounded up to or holds unused."""
    return _before(program, component, lambda kernel, had: had, order)


def for_fewer_waves(program: Program, component: Component, order: Sequence[RegFile] = VECTORS_FIRST) -> RegSet:
    """Those before some kernel has no room for a work-group of its largest size, if it had."""
    return _before(program, component, partial(_least, program.obj.target), order)


def has_room(target: Target, kernel: Kernel, descriptor: KernelDescriptor) -> bool:
    """Whether with this one the kernel has room for a work-group of its largest size, if it had."""
    waves = occupancy(target, descriptor).waves
    return waves >= _least(target, kernel, occupancy(target, kernel.record.descriptor).waves)


def _least(target: Target, kernel: Kernel, had: int) -> int:
    descriptor = kernel.record.descriptor
    return min(had, target.waves_of_group(
        kernel.record.max_workitems, descriptor.wave_size, bool(descriptor.wgp_mode)))


def _before(
    program: Program, component: Component, least: Callable[[Kernel, int], int], order: Sequence[RegFile]
) -> RegSet:
    """General registers that leave each kernel the waves that are the least for it, given what it had. All of them may
    be used at once: each file has what those before it leave."""
    target = program.obj.target
    waves = {kernel: occupancy(target, kernel.record.descriptor).waves for kernel in component.kernels}
    return _find_room(target, general_registers(program.isa), tuple(order), frozenset(
        _Limit(_keep_register_counts(kernel.record.descriptor), _accumulators(kernel), least(kernel, had))
        for kernel, had in waves.items()))


class _Limit(NamedTuple):
    """Of kernels: how many registers they have, an accumulator if they use any, and the fewest waves for them."""

    had: KernelDescriptor
    own: RegSet
    waves: int


def _keep_register_counts(descriptor: KernelDescriptor) -> KernelDescriptor:
    """One that says nothing but how many registers waves have: that many kernels have the same of."""
    names = ("granulated_workitem_vgpr_count", "granulated_wavefront_sgpr_count", "granulated_accum_offset",
             "enable_wavefront_size32")
    return _EMPTY.replace(**{name: getattr(descriptor, name) for name in names})


@lru_cache(maxsize=1 << 10)
def _find_room(target: Target, general: RegSet, order: tuple[RegFile, ...], limits: frozenset[_Limit]) -> RegSet:
    """As `_before`."""
    found = RegSet()
    for file in order:
        beside = found if target.unified_agprs else RegSet()
        limit = _find_limit(target, file, general.mask(file).bit_length(), limits, beside)
        found |= RegSet.of(Reg(file, 0, limit)) if limit else RegSet()
    return general & found


def _find_limit(target: Target, file: RegFile, stop: int, limits: Collection[_Limit], beside: RegSet) -> int:
    def costs(index: int) -> bool:
        used = RegSet.of(Reg(file, index, 1)) | beside
        return any(occupancy(target, grow_register_counts(target, each.had, used | each.own)).waves < each.waves
                   for each in limits)

    return bisect_left(range(stop), True, key=costs)


def _accumulators(kernel: Kernel) -> RegSet:
    """One if it uses any: then all that it has stay, above what its VGPRs grow to."""
    used = kernel.record.metadata.get(".agpr_count", 0)
    return RegSet.of(Reg(RegFile.AGPR, 0, 1)) if isinstance(used, int) and used > 0 else RegSet()


def counts(target: Target, descriptor: KernelDescriptor, used: RegSet) -> dict[str, int]:
    """What the metadata says of ``used`` (AMDGPUUsage, "Code Object V3 Metadata"), as LLVM counts it."""
    sgprs = (used.sgpr & ((1 << target.sgpr_limit) - 1)).bit_length() + target.extra_sgprs
    vgprs, agprs = used.vgpr.bit_length(), used.agpr.bit_length()
    if target.unified_agprs and agprs:
        vgprs = descriptor.accum_offset + agprs
    return {".sgpr_count": sgprs, ".vgpr_count": max(vgprs, agprs)}


def occupancy(target: Target, descriptor: KernelDescriptor, workitems: int = 0) -> Resources:
    """What the descriptor claims, and the waves per SIMD that this admits; those that LDS admits, too, where
    ``workitems`` says how many a work-group has at most."""
    sgprs, vgprs = descriptor.sgpr_count(target), descriptor.vgpr_count(target)
    memory = descriptor.group_segment_fixed_size, descriptor.private_segment_fixed_size
    waves = target.waves_for(vgprs, sgprs, memory[0], workitems, descriptor.wave_size)
    return Resources(sgprs, vgprs, waves, *memory)
