"""Accesses to memory as they happen: of which wave, between which barriers, where and what, in an order of all waves.

In: the memory instructions of a program. Out: records. Invariant: an access is recorded before it is made, and what it
brought by another record when it is there. So a wave that has seen what another one has written has its record behind
that of the other: no order that there was is missed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from luthier_py import (
    Lane,
    Mutator,
    access_kind,
    address,
    bool_,
    bounds,
    channel,
    destination,
    device,
    hook,
    ptr,
    u32,
    u64,
)
from luthier_py.base.errors import HookError
from luthier_py.intrinsics import active_mask, ballot, is_lds, is_private, push
from luthier_py.isa import AccessKind, AddressForm, Space
from luthier_py.isa.properties.barriers import meets_the_grid
from luthier_py.isa.properties.coherence import acquires, is_coherent
from luthier_py.program.analysis import with_private_memory
from luthier_py.program.ir import Instr
from luthier_py.rewrite.tool import Entry, InstrPlace, InstrPlaces
from luthier_py.tools.racecheck.trace import is_flat, stored

WORDS = {AccessKind.LOAD: "read", AccessKind.STORE: "write", AccessKind.ATOMIC: "atomic"}
BROUGHT = 1 << 31  # beside the site's number
ACQUIRED = (1 << 32) - 1  # in its place
CAME, MET = ACQUIRED - 1, ACQUIRED - 2  # a wave comes to a barrier of several work-groups, and all have come


class MemoryAccess:
    """One instruction of a wave. ``value``: as of an access to LDS."""

    site: u32
    wave: u32
    came: u32
    waited: u32
    lanes: u64
    address: Lane[u64]
    value: Lane[u32]


@device
def is_own(at: u64, arguments: ptr[u32], argument_bytes: u32, packet: ptr[u32]) -> bool_:
    """Whether it is of what a wave starts with: the kernel's arguments, and the packet that dispatched it."""
    return at - u64(arguments) < argument_bytes or at - u64(packet) < 64


@device
def is_own_of_lane(at: Lane[u64], arguments: ptr[u32], argument_bytes: u32, packet: ptr[u32]) -> Lane[bool_]:
    """The same of a lane's address: code reads hidden arguments so."""
    return at - u64(arguments) < u64(argument_bytes) or at - u64(packet) < u64(64)


@device
def leads_to_memory(at: Lane[u64]) -> Lane[bool_]:
    """Whether a flat address leads to memory."""
    return not is_lds(at) and not is_private(at)


def own_arguments(m: Mutator) -> tuple[Entry, int, Entry]:
    """What hooks are given for `is_own`, of kernels with as many bytes of arguments as any here."""
    most = max((kernel.record.kernarg_bytes for kernel in m.kernels), default=0)
    return Entry.KERNARG_PTR, most, Entry.DISPATCH_PTR


@hook
def trace(
    out: channel[MemoryAccess], site: u32, wave: u32, came: u32, waited: u32, at: Lane[u64], value: Lane[u32],
    passes: Lane[bool_],
) -> None:
    push(out, site, wave, came, waited, ballot(passes), at, value)


@hook(fold=("brings",))
def trace_flat(
    out: channel[MemoryAccess], site: u32, wave: u32, came: u32, waited: u32, at: Lane[u64], value: Lane[u32],
    brings: bool_,
) -> None:
    """Lanes whose addresses lead to memory; none, too, where `brought` follows."""
    lanes = ballot(leads_to_memory(at))
    if brings or lanes != 0:
        push(out, site, wave, came, waited, lanes, at, value)


@hook(lanes="one")
def trace_scalar(
    out: channel[MemoryAccess], site: u32, wave: u32, came: u32, waited: u32, at: u64, passes: bool_,
    arguments: ptr[u32], argument_bytes: u32, packet: ptr[u32],
) -> None:
    if passes and not is_own(at, arguments, argument_bytes, packet):
        push(out, site, wave, came, waited, active_mask(), at, 0)


@hook
def brought(out: channel[MemoryAccess], site: u32, wave: u32, came: u32, waited: u32, value: Lane[u32]) -> None:
    push(out, site | u32(BROUGHT), wave, came, waited, u64(0), u64(0), value)


@hook(lanes="one")
def happened(out: channel[MemoryAccess], what: u32, wave: u32, came: u32, waited: u32) -> None:
    push(out, what, wave, came, waited, u64(0), u64(0), 0)


@dataclass(frozen=True, slots=True)
class MemorySite:
    """A traced instruction. ``brings``: it is a coherent load, or an atomic that returns something."""

    place: InstrPlace
    kind: AccessKind
    bytes: int
    brings: bool


def trace_memory(m: Mutator, places: InstrPlaces, out: Any, wave: Any, came: Any, waited: Any) -> list[MemorySite]:
    """What is traced; ``places`` has what is not."""
    sites, own, target = list[MemorySite](), own_arguments(m), m.program.obj.target
    for instr in [each for function in m.functions() for each in m.instrs(function, where="global | scalar")]:
        given = out, len(sites), wave, came, waited
        with places.unless_refused(instr):
            kind = access_kind(instr)
            brings = kind is not AccessKind.STORE and is_coherent(instr.inst, target)
            site = MemorySite(places.of(instr), kind, followed(m, instr), brings)
            of_wave = instr.memory is not None and instr.memory.of_wave
            value = stored(instr, 0) if kind is AccessKind.STORE and not of_wave else 0
            if of_wave:
                m.before(instr, trace_scalar, *given, address(instr), bounds(instr), *own)
            elif is_flat(m, instr):
                m.before(instr, trace_flat, *given, address(instr), value, brings)
            else:
                m.before(instr, trace, *given, address(instr), value, bounds(instr))
            if brings:
                m.after(instr, brought, *given, destination(instr, dword=0))
            sites.append(site)
    for instr in [each for function in m.functions() for each in function.instrs]:
        if acquires(instr.inst, target):
            m.before(instr, happened, out, ACQUIRED, wave, came, waited)
        if meets_the_grid(instr.inst):
            m.before(instr, happened, out, CAME, wave, came, waited)
            m.after(instr, happened, out, MET, wave, came, waited)
    return sites


def followed(m: Mutator, instr: Instr, buffers: bool = True) -> int:
    """How many bytes an access has that is one of memory, in one place, or a flat one; else HookError. Without
    ``buffers`` theirs are left out, too: hooks do not read where numbers lead."""
    found = instr.memory
    if found is None or found.bytes is None or len(found.offsets) != 1 or not (
            found.of_wave or found.spaces == Space.GLOBAL or is_flat(m, instr)
            or buffers and _of_buffer_alone(m, instr)):
        raise HookError("it may access private memory or LDS, or its width is not known")
    return found.bytes


def _of_buffer_alone(m: Mutator, instr: Instr) -> bool:
    """Whether it is a buffer's, in a kernel that has no private memory, which could be one, too."""
    found = instr.memory
    return found is not None and found.form is AddressForm.BUFFER and not found.spaces & ~(
        Space.GLOBAL | Space.SCRATCH) and m.program.function_of(instr) not in with_private_memory(m.program)
