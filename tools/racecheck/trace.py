"""Accesses to LDS as they happen: of which wave, between which barriers, where and what.

In: the LDS instructions of a program. Out: records of waves, and :class:`Accesses`, one row for each lane, element and
piece. Invariant: records of a wave come in its order; ``came`` and ``waited`` count how often it had said by then that
it has come to the work-group's barrier, and how often it had waited there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luthier_py import (
    Channel,
    Lane,
    LaunchResult,
    Mutator,
    Option,
    Tool,
    WaveVariable,
    access_kind,
    address,
    channel,
    computed,
    device,
    hook,
    source,
    u32,
    u64,
)
from luthier_py.base.errors import how_many
from luthier_py.intrinsics import active_mask, ballot, is_lds, push
from luthier_py.isa import AccessKind, AddressForm, OpFlag, Space
from luthier_py.isa.properties.barriers import BarrierPart, barrier_part
from luthier_py.program.ir import Instr
from luthier_py.rewrite.tool import SUM, Amounts, InstrPlace, InstrPlaces, Omission, number_waves, waves_in_group

Array = NDArray[Any]
MOST = 1 << 17  # records of half a kilobyte
FLAT = Space.GLOBAL | Space.LDS | Space.SCRATCH
APERTURES = 9  # generation from which hooks can determine where flat addresses lead
LDS_AMOUNTS: Amounts = {
    "accesses": SUM.of("accesses to LDS, by lane and dword"), "not_judged": SUM.of("work-groups beyond MOST_RECORDS"),
}  # fmt: skip


class LdsAccess:
    """One element of one instruction. ``value``: of a store of up to 4 bytes what it writes; of longer ones a sum."""

    site: u32
    element: u32
    wave: u32
    came: u32
    waited: u32
    lanes: u64
    address: Lane[u32]
    value: Lane[u32]


@hook(lanes="one")
def count(number: u32) -> u32:
    return number + 1


@hook(fold=("element",))
def trace(
    out: channel[LdsAccess], site: u32, element: u32, wave: u32, came: u32, waited: u32, at: Lane[u64],
    value: Lane[u32],
) -> None:
    push(out, site, element, wave, came, waited, active_mask(), u32(at), value)


@hook
def trace_flat(
    out: channel[LdsAccess], site: u32, element: u32, wave: u32, came: u32, waited: u32, at: Lane[u64],
    value: Lane[u32],
) -> None:
    """Of a flat access, which lead where its lanes' addresses do, those to LDS."""
    near = is_lds(at)
    lanes = ballot(near)
    if near:
        push(out, site, element, wave, came, waited, lanes, u32(at), value)


@device
def weighed(sum: Lane[u32], dword: Lane[u32]) -> Lane[u32]:
    return sum * u32(0x9E3779B1) + dword


@dataclass(frozen=True, slots=True)
class LdsSite:
    """A traced instruction. ``bytes``: of each element."""

    place: InstrPlace
    kind: AccessKind
    bytes: int


@dataclass(frozen=True, slots=True)
class LdsSites:
    """Of one program."""

    traced: tuple[LdsSite, ...]
    left_out: tuple[Omission, ...]
    wave_size: int


@dataclass(frozen=True, slots=True)
class Accesses:
    """Those of one work-group, as columns of equal length. ``piece``: a dword of LDS, or a byte where any access is of
    parts of dwords."""

    site: Array
    wave: Array
    came: Array
    waited: Array
    order: Array
    """Among the group's records; of one wave it is the wave's."""
    lane: Array
    piece: Array
    value: Array
    kind: Array
    piece_bytes: int
    group: int


@dataclass(slots=True)
class Kept:
    """Mutable: records of a launch, and the work-groups of which some were too many, so that none is judged."""

    parts: list[Array] = field(default_factory=list)
    count: int = 0
    lost: set[int] = field(default_factory=set)

    def add(self, records: Array, most: int, waves_in_group: int) -> None:
        room = max(0, most - self.count)
        if room:
            self.parts.append(records[:room])
            self.count += len(self.parts[-1])
        self.lost.update((records["wave"][room:] // waves_in_group).tolist())


class LdsTrace(Tool):
    """Base of tools that look at each access to LDS."""

    most_records = Option(MOST, bounds=(1, 1 << 24), help="records of a launch; work-groups with more are not judged")
    accesses = Channel(LdsAccess)
    wave = WaveVariable(u32)
    came = WaveVariable(u32)
    waited = WaveVariable(u32)

    def instrument(self, m: Mutator) -> LdsSites:
        places, sites = InstrPlaces(m.program, inlined=True), list[LdsSite]()
        for function in m.functions():
            for instr in function.instrs:
                self.count_barriers(m, instr)
            for instr in m.instrs(function, where="lds"):
                found = instr.memory
                if found is None or found.bytes is None or not (found.form is AddressForm.LDS or is_flat(m, instr)):
                    places.leave_out(instr, "it may access LDS in a way that is not followed")
                    continue
                self.trace(m, instr, len(sites))
                sites.append(LdsSite(places.of(instr), access_kind(instr), found.bytes))
        if sites:
            number_waves(m, self.wave)
        return LdsSites(tuple(sites), places.left_out, m.program.isa.wave_size)

    def count_barriers(self, m: Mutator, instr: Instr) -> None:
        part = barrier_part(instr.inst)
        if part & BarrierPart.COMES:
            m.before(instr, count, self.came, into=self.came)
        if part & BarrierPart.WAITS:
            m.after(instr, count, self.waited, into=self.waited)

    def trace(self, m: Mutator, instr: Instr, number: int) -> None:
        assert instr.memory is not None
        for element in range(len(instr.memory.offsets)):
            value = stored(instr, element) if instr.memory.kind is AccessKind.STORE else 0
            m.before(instr, trace_flat if is_flat(m, instr) else trace, self.accesses, number, element, self.wave,
                     self.came, self.waited, address(instr, element), value)

    def received(self, channel: Channel, launch: LaunchResult, records: Array) -> None:
        self.gathered.setdefault(launch.index, Kept()).add(records, self.most_records, waves(launch))

    def lost(self, launch: LaunchResult) -> int:
        """Work-groups that are not judged."""
        return len(self.gathered.get(launch.index, Kept()).lost)

    def taken(self, launch: LaunchResult) -> Iterator[Accesses]:
        """What each work-group accessed, one after the other."""
        kept = self.gathered.pop(launch.index, Kept())
        if not kept.parts:
            return
        records = np.concatenate(kept.parts)
        kept.parts.clear()
        group = records["wave"] // waves(launch)
        turn = np.argsort(group, kind="stable")
        starts = np.flatnonzero(np.diff(group[turn], prepend=-1))
        for mine in np.split(turn, starts[1:]):
            if int(group[mine[0]]) not in kept.lost:
                yield accesses(records[mine], launch.notes, int(group[mine[0]]))


def is_flat(m: Mutator, instr: Instr) -> bool:
    """Whether it is a flat access of which hooks can determine, lane by lane, if it leads to memory, LDS or private
    memory."""
    found = instr.memory
    return found is not None and found.spaces == FLAT and OpFlag.FLAT in instr.op.flags and (
        m.program.obj.target.generation >= APERTURES)


def waves(launch: LaunchResult) -> int:
    """The waves of a work-group."""
    notes: LdsSites = launch.notes
    return waves_in_group(launch, notes.wave_size)


def cut(report: dict[str, Any]) -> list[str]:
    """What a report says of work-groups that were too much."""
    groups = report["not_judged"]
    text = f"  not judged: {how_many(groups, 'work-group')}, of which records are beyond MOST_RECORDS"
    return [text] if groups else []


def stored(instr: Instr, element: int) -> object:
    """What a store writes in an element: of several dwords a sum that distinguishes different ones."""
    assert instr.memory is not None and instr.memory.bytes is not None
    name = next((each for each in (f"data{element}", "vdata") if instr.inst.find(each) is not None), "data")
    if instr.memory.bytes <= 4:
        return source(instr, name)
    found: object = 0
    for dword in range(instr.memory.bytes // 4):
        found = computed(weighed, found, source(instr, name, dword=dword))
    return found


@dataclass(frozen=True, slots=True)
class Pieces:
    """What lanes access, as columns of equal length. ``record``: a number among the records; ``piece``: a dword, or a
    byte where any access is of parts of dwords."""

    record: Array
    lane: Array
    piece: Array
    value: Array
    piece_bytes: int


def pieces(records: Array, bytes_of: Array) -> Pieces:
    """From records of accesses, of which each site's lanes have so many bytes: those that were on, cut into pieces."""
    on = (records["lanes"][:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1) == 1
    row, lane = np.nonzero(on)
    first, size = records["address"][on].astype(np.int64), bytes_of[records["site"][row]]
    piece_bytes = 4 if not ((first | size) & 3).any() else 1
    count = size // piece_bytes
    again = np.repeat(np.arange(len(row)), count)
    inside = np.arange(len(again)) - np.repeat(np.cumsum(count) - count, count)
    value = records["value"][on].astype(np.int64)
    value &= np.where(size < 4, (1 << 8 * np.minimum(size, 4)) - 1, 0xFFFFFFFF)
    return Pieces(row[again], lane[again], first[again] // piece_bytes + inside, value[again] + (inside << 32),
                  piece_bytes)


def accesses(records: Array, sites: LdsSites, group: int) -> Accesses:
    """Those of a work-group."""
    found = pieces(records, np.array([each.bytes for each in sites.traced], np.int64))
    kinds = np.array([int(each.kind) for each in sites.traced], np.int64)
    site, wave, came, waited = (records[name][found.record].astype(np.int64)
                                for name in ("site", "wave", "came", "waited"))
    return Accesses(site, wave, came, waited, found.record, found.lane, found.piece, found.value, kinds[site],
                    found.piece_bytes, group)
