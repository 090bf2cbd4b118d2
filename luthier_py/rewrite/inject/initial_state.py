"""What a wave of a kernel starts with, when hooks want more of that than the kernel does; and what it does first.

In: descriptors, and the assigned locations of a wave's persistent values. Out: descriptors in which more is enabled,
and instructions for the kernel's entry. Invariant: behind these every assigned location holds its value, and every
register that the kernel starts with holds what it would without them.

Values that are enabled beside the kernel's own move others up (`loader.initial`). They are moved back in ascending
order: none is overwritten before it has been moved itself, or into its home.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache

from luthier_py.base.errors import OutOfRegisters
from luthier_py.binary.loader import KernelDescriptor
from luthier_py.binary.loader.initial import Initial, initial_places, with_initial
from luthier_py.isa import (
    SCC,
    TTMP0,
    VCC,
    Inst,
    InstructionSet,
    LaneOf,
    Reg,
    RegFile,
    RegSet,
    Target,
    build,
    sgpr,
    vgpr,
)
from luthier_py.program.ir import Kernel
from luthier_py.rewrite.inject.allocate import Pool
from luthier_py.rewrite.inject.items import AssignedLocation, Own, PersistentValue, SpilledLocation, part
from luthier_py.rewrite.inject.preloads import loads_arguments, loads_of, without_preloads
from luthier_py.rewrite.inject.slots import emit_base_setup, in_all_lanes, moves, need_base
from luthier_py.rewrite.tool import Entry, WaveVariable

_SOURCES = {
    Entry.KERNARG_PTR: Initial.KERNARG_SEGMENT_PTR, Entry.DISPATCH_PTR: Initial.DISPATCH_PTR,
    Entry.QUEUE_PTR: Initial.QUEUE_PTR, Entry.DISPATCH_ID: Initial.DISPATCH_ID,
    Entry.WORKGROUP_ID_X: Initial.WORKGROUP_ID_X, Entry.WORKGROUP_ID_Y: Initial.WORKGROUP_ID_Y,
    Entry.WORKGROUP_ID_Z: Initial.WORKGROUP_ID_Z,
}
_ID_BITS = 10  # of a work-item's id in one direction
_AXES = 3
_SCC = sgpr(SCC)
_VCC = sgpr(VCC, 2)  # nothing is in it when a wave starts, but the kernel or a hook may look
TakePair = Callable[[], Reg]  # a pair of registers in which nothing is


def enable_initial_state(target: Target, kernel: Kernel, kept: Iterable[PersistentValue],
                         private: bool = False) -> KernelDescriptor:
    """Enable in a kernel's descriptor all that is ``kept`` of a wave's initial state, and that ``private`` memory
    needs. Arguments are not preloaded where they leave no room for that; OutOfRegisters where it is too much all the
    same."""
    descriptor = kernel.record.descriptor
    entries = [each for each in kept if isinstance(each, Entry)]
    wanted = [_SOURCES[each] for each in entries if each in _SOURCES and not _is_architected(target, each)]
    if private:
        wanted += [Initial.SCRATCH_WAVE_OFFSET, *[Initial.FLAT_SCRATCH_INIT] * (target.scratch_base is not None),
                   *[Initial.PRIVATE_SEGMENT_BUFFER] * target.scratch_in_buffers]
    wanted.sort(key=tuple(Initial).index)
    try:
        found = with_initial(target, descriptor, wanted)
    except OutOfRegisters:
        preloads = target.preload_entry and descriptor.kernarg_preload_length
        if not preloads or not descriptor.enable_sgpr_kernarg_segment_ptr:
            raise
        found = with_initial(target, without_preloads(descriptor), wanted)
    return found.replace(enable_vgpr_workitem_id=_AXES - 1) if Entry.FIRST_WORKITEM in entries else found


def _is_architected(target: Target, entry: Entry) -> bool:
    return target.architected_sgprs and entry in (
        Entry.WORKGROUP_ID_X, Entry.WORKGROUP_ID_Y, Entry.WORKGROUP_ID_Z)


def initially(target: Target, descriptor: KernelDescriptor) -> RegSet:
    """Registers that hold something when a wave starts, and those that `begun` uses."""
    return RegSet.of(*initial_places(target, descriptor).values(), vgpr(0, _AXES), _VCC)


def spare_initial_registers(general: RegSet, live: RegSet, taken: RegSet) -> RegSet:
    """Registers that `begun` may use. ``live``: what is read before any instruction writes it; ``taken``: all else."""
    return general - live - taken | RegSet.of(_VCC) - live


def begun(isa: InstructionSet, before: KernelDescriptor, after: KernelDescriptor,
          locations: Mapping[PersistentValue, AssignedLocation], spare: Pool, private: bool = False,
          flag: Reg | None = None) -> list[Inst]:
    """What a clone begins with, whose waves are started by ``after``, of a kernel that expects ``before``. ``spare``:
    registers in which nothing is; ``flag``: where SCC is saved meanwhile, if the kernel reads it before it sets it."""
    old, new = initial_places(isa.target, before), initial_places(isa.target, after)
    two = cache(lambda: spare.claim(_VCC) if spare.is_free(_VCC) else spare.take(RegFile.SGPR, 2))
    base = isa.target.scratch_base
    found = scratch_base(isa, new, base, two) if private and base is not None else []
    slots = dict.fromkeys(location.slot for location in locations.values() if isinstance(location, SpilledLocation))
    spill_vgprs = {slot: spare.take(RegFile.VGPR) for slot in slots}
    for persistent, place in locations.items():
        location = place.lanes(spill_vgprs[place.slot]) if isinstance(place, SpilledLocation) else place
        if isinstance(persistent, Own):
            found += _private_resource(isa, location, new, two())
        elif isinstance(persistent, WaveVariable):
            found += _fill_location(isa, location, [0] * location.dwords)
        elif persistent is Entry.FIRST_WORKITEM:
            found += _first_workitem(isa, location, two())
        elif _is_architected(isa.target, persistent):
            found += _group_id(isa, location, persistent, two)
        else:
            source = new[_SOURCES[persistent]]
            found += _fill_location(isa, location, [part(source, k) for k in range(source.dwords)])
    if spill_vgprs:
        start = spare.take(RegFile.SGPR) if need_base(isa, spill_vgprs) else None
        saves = moves(isa, tuple(spill_vgprs.values()), tuple(slots), start)[0]
        found += in_all_lanes(isa, spare.take(RegFile.SGPR, 2), [*emit_base_setup(isa, slots, start), *saves])
    if isa.target.packed_work_item_ids and before.enable_vgpr_workitem_id < after.enable_vgpr_workitem_id:
        ids = (1 << _ID_BITS * (before.enable_vgpr_workitem_id + 1)) - 1
        found.append(build.mask_bits(isa, vgpr(0), ids))
    if flag is not None and any(inst.writes.overlaps(RegSet.of(_SCC)) for inst in found):
        found = [build.copy(isa, flag, _SCC), *found, build.set_flag(isa, flag)]
    loads = loads_of(isa, before) if loads_arguments(before, after) else []
    return [*found, *_emit_moves_back(isa, old, new), *loads]


def scratch_base(isa: InstructionSet, new: Mapping[Initial, Reg], place: Reg, two: TakePair) -> list[Inst]:
    """Where the wave's private memory is (AMDGPUUsage, "Flat Scratch"); the kernel itself may find the same later."""
    base, offset = new[Initial.FLAT_SCRATCH_INIT], new[Initial.SCRATCH_WAVE_OFFSET]
    operand = isa.target.flat_scratch_operands
    pair = place if operand else two()
    low, high = part(pair, 0), part(pair, 1)
    sums = [build.add(isa, low, part(base, 0), offset), build.add_with_carry(isa, high, part(base, 1), 0)]
    return sums if operand else [*sums, build.set_scratch_base(isa, 0, low), build.set_scratch_base(isa, 1, high)]


def _private_resource(isa: InstructionSet, location: Reg | LaneOf, new: Mapping[Initial, Reg], two: Reg) -> list[Inst]:
    """That of the wave (AMDGPUUsage, "Private Segment Buffer"): what all waves start with, and the wave's offset."""
    whole, offset = new[Initial.PRIVATE_SEGMENT_BUFFER], new[Initial.SCRATCH_WAVE_OFFSET]
    low, high = part(two, 0), part(two, 1)
    return [build.add(isa, low, part(whole, 0), offset), build.add_with_carry(isa, high, part(whole, 1), 0),
            *_fill_location(isa, location, [low, high, part(whole, 2), part(whole, 3)])]


def _emit_moves_back(isa: InstructionSet, old: Mapping[Initial, Reg], new: Mapping[Initial, Reg]) -> Iterator[Inst]:
    for value, place in old.items():
        for k in range(place.dwords if new.get(value, place) != place else 0):  # what is not preloaded will be loaded
            yield build.copy(isa, part(place, k), part(new[value], k))


def _fill_location(isa: InstructionSet, location: Reg | LaneOf, values: Sequence[Reg | int]) -> list[Inst]:
    if isinstance(location, LaneOf):
        return [build.to_lane(isa, location.reg, location.first + k, value) for k, value in enumerate(values)]
    if all(isinstance(value, int) for value in values):
        return [build.copy(isa, location, 0)]
    return [build.copy(isa, part(location, k), value) for k, value in enumerate(values)]


def _first_workitem(isa: InstructionSet, location: Reg | LaneOf, two: Reg) -> list[Inst]:
    """All lanes that there are run here, so the first one is lane 0."""
    if isa.target.packed_work_item_ids:
        to = location if isinstance(location, Reg) else part(two, 0)
        found = [build.first_lane(isa, to, vgpr(0))]
    else:
        to, other = part(two, 0), part(two, 1)
        found = [build.first_lane(isa, to, vgpr(0))]
        for axis in range(1, _AXES):
            found += [build.first_lane(isa, other, vgpr(axis)), build.shift_left(isa, other, other, _ID_BITS * axis),
                      build.or_bits(isa, to, to, other)]
    return found if to == location else [*found, *_fill_location(isa, location, [to])]


def _group_id(isa: InstructionSet, location: Reg | LaneOf, entry: Entry, two: TakePair) -> list[Inst]:
    """Where the hardware has them in trap registers (AMDGPUUsage, "Initial Kernel Execution State")."""
    x, yz = sgpr(TTMP0 + 9), sgpr(TTMP0 + 7)
    if entry is Entry.WORKGROUP_ID_X:
        return _fill_location(isa, location, [x])
    low = entry is Entry.WORKGROUP_ID_Y
    spare = part(two(), 0)
    made = build.lower_half(isa, spare, yz) if low else build.upper_half(isa, spare, yz)
    return [made, *_fill_location(isa, location, [spare])]
