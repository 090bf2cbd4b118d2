"""Reads of memory that holds what it was given when it was allocated: it was not written since.

In: the memory instructions of a program. Out: counts of lanes, and the first wave of each instruction. Invariant: what
is read by the hook is what the access is about to read, and lies in an allocation where these are known: what does not
is reported by memcheck, and a hook that read it would end the launch in its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from luthier_py import (
    Lane,
    LaunchResult,
    Mutator,
    Variable,
    access_kind,
    address,
    bool_,
    bounds,
    channel,
    device,
    hook,
    ptr,
    u32,
    u64,
)
from luthier_py.intrinsics import atomic_add, ballot, is_first_lane, popcount, push, read_first_lane
from luthier_py.isa import AccessKind
from luthier_py.rewrite.tool import (
    Allocations,
    InstrPlace,
    InstrPlaces,
    Omission,
    group_and_wave,
    is_outside,
    lanes_of,
    unwritten,
)
from luthier_py.tools.racecheck.memory import followed, leads_to_memory
from luthier_py.tools.racecheck.trace import is_flat


class UnwrittenRead:
    """Lanes of the first wave that reads what was never written, by an instruction."""

    site: u32
    wave: u32
    lanes: u64
    address: Lane[u64]


@device
def is_unwritten(at: Lane[ptr[u32]], dwords: u32, passes: Lane[bool_]) -> Lane[bool_]:
    """All of it: compilers load more than they need."""
    first = ptr[u32](u64(at) & ~u64(3))
    found = passes
    for number in range(dwords):
        if found:
            found = first[number] == unwritten(u64(first) + u64(4 * number))
    return found


@device
def tell_unwritten(
    table: ptr[u64], counts: ptr[u64], out: channel[UnwrittenRead], site: u32, wave: u32, at: Lane[ptr[u32]],
    dwords: u32, passes: Lane[bool_],
) -> None:
    looks = passes
    if u64(table) != 0:
        looks = looks and not is_outside(table, u64(at) & ~u64(3), 4 * dwords, False)
    found = is_unwritten(at, dwords, looks)
    lanes = ballot(found)
    if lanes != 0:
        known = u64(0)
        if is_first_lane():
            known = atomic_add(counts, u64(popcount(lanes)))
        if read_first_lane(known) == 0 and found:
            push(out, site, wave, lanes, u64(at))


@hook(fold=("dwords",))
def look(
    table: ptr[u64], counts: ptr[u64], out: channel[UnwrittenRead], site: u32, wave: u32, at: Lane[ptr[u32]],
    dwords: u32, passes: Lane[bool_],
) -> None:
    tell_unwritten(table, counts, out, site, wave, at, dwords, passes)


@hook(fold=("dwords",))
def look_flat(
    table: ptr[u64], counts: ptr[u64], out: channel[UnwrittenRead], site: u32, wave: u32, at: Lane[ptr[u32]],
    dwords: u32,
) -> None:
    tell_unwritten(table, counts, out, site, wave, at, dwords, leads_to_memory(u64(at)))


@hook(lanes="one", fold=("dwords",))
def look_scalar(
    table: ptr[u64], counts: ptr[u64], out: channel[UnwrittenRead], site: u32, wave: u32, at: ptr[u32], dwords: u32,
    passes: bool_,
) -> None:
    tell_unwritten(table, counts, out, site, wave, at, dwords, passes)


@dataclass(frozen=True, slots=True)
class ReadSites:
    """Of one program: instructions that read memory."""

    reads: tuple[InstrPlace, ...]
    left_out: tuple[Omission, ...]
    counts: Variable


def look_at_reads(m: Mutator, known: Allocations, out: Any, wave: Any) -> ReadSites:
    places, reads = InstrPlaces(m.program, inlined=True), list[InstrPlace]()
    found = [instr for function in m.functions() for instr in m.instrs(function, where="global | scalar")
             if instr.memory is not None and access_kind(instr) is not AccessKind.STORE]
    counts = Variable(u64, max(len(found), 1), name="InitCheck.counts")
    for instr in found:
        with places.unless_refused(instr):
            dwords = -(-followed(m, instr, buffers=False) // 4)
            given = known, counts[len(reads)], out, len(reads), wave, address(instr), dwords
            if is_flat(m, instr):
                m.before(instr, look_flat, *given)
            else:
                scalar = instr.memory is not None and instr.memory.of_wave
                m.before(instr, look_scalar if scalar else look, *given, bounds(instr))
            reads.append(places.of(instr))
    return ReadSites(tuple(reads), places.left_out, counts)


def unwritten_reads(launch: LaunchResult, sites: ReadSites, records: Mapping[int, Any], wave_size: int
                    ) -> Iterator[dict[str, Any]]:
    """``records``: by site."""
    for number, (place, count) in enumerate(zip(sites.reads, launch[sites.counts], strict=False)):
        if count:
            record = records[number]
            group, wave = group_and_wave(launch, wave_size, int(record["wave"]))
            lane = lanes_of(int(record["lanes"]))[0]
            yield {**place.facts(), "space": "memory", "count": count,
                   "first": {"address": int(record["address"][lane]), "workgroup": group, "wave": wave, "lane": lane}}
