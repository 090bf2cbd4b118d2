"""What a wave finds when it starts, in a clone whose descriptor has more enabled than the original's.

In: both descriptors. Out: Start, or CheckFailed. Invariant: the original's values are named as the registers where the
original has them, so that the application finds what it expects where each register holds its own name again.

The order of registers is read off AMDGPUUsage, "Initial Kernel Execution State", once more: nothing is shared with
those who made the clone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from luthier_py.binary.loader import KernelDescriptor
from luthier_py.isa import TTMP0, Inst, Target
from luthier_py.isa.model.registers import VGPR_SHIFT
from luthier_py.isa.semantics.control import Action
from luthier_py.proof.code import ones
from luthier_py.proof.meanings import UNKNOWN, Term, sum_of
from luthier_py.proof.preloads import Arguments, loads_arguments

_USER = (
    ("enable_sgpr_private_segment_buffer", 4), ("enable_sgpr_dispatch_ptr", 2), ("enable_sgpr_queue_ptr", 2),
    ("enable_sgpr_kernarg_segment_ptr", 2), ("enable_sgpr_dispatch_id", 2), ("enable_sgpr_flat_scratch_init", 2),
    ("enable_sgpr_private_segment_size", 1),
)
_SYSTEM = ("enable_sgpr_workgroup_id_x", "enable_sgpr_workgroup_id_y", "enable_sgpr_workgroup_id_z",
           "enable_sgpr_workgroup_info", "enable_private_segment")
_NAMES = {
    "enable_sgpr_private_segment_buffer": "private_segment_buffer",
    "enable_sgpr_kernarg_segment_ptr": "kernarg_ptr", "enable_sgpr_dispatch_ptr": "dispatch_ptr",
    "enable_sgpr_queue_ptr": "queue_ptr", "enable_sgpr_dispatch_id": "dispatch_id",
    "enable_sgpr_workgroup_id_x": "workgroup_id_x", "enable_sgpr_workgroup_id_y": "workgroup_id_y",
    "enable_sgpr_workgroup_id_z": "workgroup_id_z", "enable_sgpr_flat_scratch_init": "flat_scratch_init",
    "enable_private_segment": "scratch_wave_offset",
}
POINTERS = ("kernarg_ptr", "dispatch_ptr", "queue_ptr")
"""What may be read as memory."""
RESOURCE = "private_resource"
"""By which a wave reaches private memory that is in buffers; its first two dwords are a sum (AMDGPUUsage, "Private
Segment Buffer")."""
PRIVATE_BASE = "private_base"
"""Where private memory of a wave is, as its registers of that name have it: a sum, too ("Flat Scratch")."""
USER_DWORDS = dict(_USER)
_WHOLE_REGISTER = 31 << 5  # of a hardware register's field: 32 bits from bit 0 on
_IDS = 10  # bits of a work-item's id in one direction


class Start(NamedTuple):
    """``terms``: what registers hold that is not what they are named for; ``values``: terms of what hooks may be given,
    by name; ``free``: registers, as bits, in which the original's waves find nothing, but the clone's do;
    ``arguments``: what the clone's waves have to load, because it is not preloaded."""

    terms: tuple[tuple[int, Term], ...] = ()
    values: tuple[tuple[str, tuple[Term, ...]], ...] = ()
    free: int = 0
    arguments: Arguments | None = None


def compute_initial_state(target: Target, before: KernelDescriptor, after: KernelDescriptor) -> Start:
    """What waves find when they start in a clone: ``before`` is the original's descriptor, ``after`` the clone's."""
    old, new = _places(target, before), _places(target, after)
    terms: dict[int, Term] = {}
    held: dict[str, tuple[Term, ...]] = {}
    for field, (first, dwords) in new.items():
        own = old.get(field)
        held[field] = tuple(("reg", own[0] + k) if own is not None else ("initial", field, k) for k in range(dwords))
        terms |= {first + k: term for k, term in enumerate(held[field]) if term != ("reg", first + k)}
    arguments = None
    if loads_arguments(before, after):
        first, dwords = old["kernarg_preload_length"]
        named = tuple(("reg", first + k) for k in range(dwords))
        arguments = Arguments(held.get("enable_sgpr_kernarg_segment_ptr", ()), 4 * before.kernarg_preload_offset, named)
        terms = {first + k: UNKNOWN for k in range(dwords)} | terms
    values = {_NAMES[field]: each for field, each in held.items() if field in _NAMES}
    if target.architected_sgprs:
        values |= _in_trap_registers()
    if target.scratch_in_buffers and "private_segment_buffer" in values and "scratch_wave_offset" in values:
        buffer = values["private_segment_buffer"]
        values[RESOURCE] = (*sum_of(buffer, *values["scratch_wave_offset"]), *buffer[2:])
    if "flat_scratch_init" in values and "scratch_wave_offset" in values:
        values[PRIVATE_BASE] = sum_of(values["flat_scratch_init"], *values["scratch_wave_offset"])
    values["first_workitem"] = (_first_workitem(target, before, after, terms),)
    taken = {first + k for first, dwords in new.values() for k in range(dwords)}
    had = {first + k for first, dwords in old.values() for k in range(dwords)}
    ids = 0 if target.packed_work_item_ids else sum(
        1 << VGPR_SHIFT + axis for axis in range(before.enable_vgpr_workitem_id + 1, after.enable_vgpr_workitem_id + 1))
    return Start(tuple(sorted(terms.items())), tuple(sorted(values.items())),
                 sum(1 << each for each in taken - had) | ids, arguments)


def fields_of(target: Target, kept: Iterable[str], private: bool) -> list[str]:
    """The descriptor's bits that some values need, and private memory."""
    fields = {name: field for field, name in _NAMES.items()}
    base = ["enable_sgpr_flat_scratch_init"] if target.scratch_base is not None else (
        ["enable_sgpr_private_segment_buffer"] if target.scratch_in_buffers else [])
    found = ["enable_private_segment", *base] if private else []
    elsewhere = "workgroup_id" if target.architected_sgprs else "-"
    return [*found, *(fields[name] for name in kept if name in fields and elsewhere not in name)]


def _places(target: Target, descriptor: KernelDescriptor) -> dict[str, tuple[int, int]]:
    """First register and number of registers of each value."""
    found: dict[str, tuple[int, int]] = {}
    at = 0
    for field, dwords in _USER:
        if getattr(descriptor, field):
            found[field] = at, dwords
            at += dwords
    if descriptor.kernarg_preload_length:
        found["kernarg_preload_length"] = at, descriptor.kernarg_preload_length
        at += descriptor.kernarg_preload_length
    count = user_sgprs(target, descriptor)
    at = max(at, count)
    for field in _SYSTEM:
        elsewhere = (target.architected_flat_scratch if field == "enable_private_segment"
                     else target.architected_sgprs and "workgroup_id" in field)
        if getattr(descriptor, field) and not elsewhere:
            found[field] = at, 1
            at += 1
    return found


def user_sgprs(target: Target, descriptor: KernelDescriptor) -> int:
    """User SGPRs as the descriptor counts them: with preloaded arguments, and with those that hold nothing."""
    return descriptor.user_sgpr_count_6_bits if six_bits(target) else descriptor.user_sgpr_count


def six_bits(target: Target) -> bool:
    """Whether the descriptor counts user SGPRs in six bits (AMDGPUUsage, COMPUTE_PGM_RSRC2)."""
    return (target.generation, target.minor) == (12, 5)


def _in_trap_registers() -> Mapping[str, tuple[Term, ...]]:
    x, yz = ("reg", TTMP0 + 9), ("reg", TTMP0 + 7)
    return {"workgroup_id_x": (x,), "workgroup_id_y": (("and", yz, 0xFFFF),), "workgroup_id_z": (("shr", yz, 16),)}


def _first_workitem(
    target: Target, before: KernelDescriptor, after: KernelDescriptor, terms: dict[int, Term]
) -> Term:
    """Of lane 0, in which all waves have a work-item; notes what v0 holds if more ids are in it than there were."""
    if target.packed_work_item_ids:
        had, has = ((1 << _IDS * (each.enable_vgpr_workitem_id + 1)) - 1 for each in (before, after))
        if had != has:
            terms[VGPR_SHIFT] = "more than", ("reg", VGPR_SHIFT), had
    if after.enable_vgpr_workitem_id < 2:
        return UNKNOWN
    if target.packed_work_item_ids:
        return "first", terms.get(VGPR_SHIFT, ("reg", VGPR_SHIFT))
    x, y, z = (("first", ("reg", VGPR_SHIFT + axis)) for axis in range(3))
    return "or", ("or", x, ("shl", y, _IDS)), ("shl", z, 2 * _IDS)


def evaluate_base_write(inst: Inst, row: object, get: Callable[[int], Term]) -> dict[int, Term]:
    """What a hardware register holds that the wave's private memory begins at, of which a whole one was written."""
    to, source = ones(inst.writes.sgpr), inst.find("sdst")
    whole = row is Action.SETREG and inst["simm16"].value >> 6 & 0x3FF == _WHOLE_REGISTER and len(to) == 1
    return {to[0]: get(source.reg.index)} if whole and source is not None and source.reg is not None else {}
