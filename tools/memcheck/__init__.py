"""Finds accesses to memory and LDS outside of what a launch may access, before they are made."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from luthier_py import (
    Channel,
    LaunchResult,
    Mutator,
    Option,
    Tool,
    Variable,
    WaveVariable,
    access_kind,
    address,
    bounds,
    lds_size,
    u32,
    u64,
)
from luthier_py.base.errors import HookError, how_many
from luthier_py.isa import AccessKind, AddressForm, Space
from luthier_py.program.ir import Instr
from luthier_py.rewrite.tool import (
    ANY,
    FIRST,
    SAME,
    SUM,
    Allocations,
    Entry,
    InstrPlace,
    InstrPlaces,
    LiveAllocation,
    Omission,
    RowsBy,
    combined,
    group_and_wave,
    lanes_of,
    left_out_lines,
    left_out_rows,
    number_waves,
    place_text,
)
from luthier_py.tools.memcheck.examples import example_lines
from luthier_py.tools.memcheck.hooks import FLAT, LDS, BadAccess, check, keep, watch, watch_scalar
from luthier_py.tools.racecheck.memory import WORDS, followed, own_arguments
from luthier_py.tools.racecheck.trace import is_flat

UNKNOWN = ("what the launch may access is not known, so no access was judged but those to LDS; ALIGN=1 judges whether "
           "they are aligned")


@dataclass(frozen=True, slots=True)
class CheckedSite:
    """An instruction that is checked. ``bytes``: of each element; ``spaces``: where these may be."""

    place: InstrPlace
    kind: AccessKind
    bytes: int
    align: int
    scalar: bool
    spaces: int
    elements: int


@dataclass(frozen=True, slots=True)
class CheckedSites:
    """Of one program."""

    checked: tuple[CheckedSite, ...]
    left_out: tuple[Omission, ...]
    counts: Variable
    wave_size: int


class MemCheck(Tool):
    """Accesses to memory and LDS out of bounds of what the launch may access, and misaligned ones."""

    name = "memcheck"
    cacheable = True
    finds = True
    amounts = {"judged": ANY, "bad": RowsBy(("pc",), {
        "bytes": SAME, "count": SUM.of("lanes, or waves of a scalar load"), "first": FIRST}, ascending=True)}
    guard = Option(True, help="0: make accesses that are told all the same, as a GPU would; else their wave skips them")
    align = Option(False, help="1: tell addresses that are no multiple of the element, or of a dword if it is longer")
    told_lanes = Option(16, bounds=(0, 1 << 20),
                        help="lanes of an instruction that are told one by one; all are counted")
    bad = Channel(BadAccess)
    known = Allocations()
    wave = WaveVariable(u32)
    lds_bytes = WaveVariable(u32)

    def instrument(self, m: Mutator) -> CheckedSites:
        found = [instr for function in m.functions() for instr in m.instrs(function, where="global | scalar | lds")
                 if instr.memory is not None]
        counts = Variable(u64, max(len(found), 1), name="MemCheck.counts")
        places, checked, own = InstrPlaces(m.program, inlined=True), list[CheckedSite](), own_arguments(m)
        for instr in found:
            with places.unless_refused(instr):
                site = checked_site(m, instr, places.of(instr))
                self.watch(m, instr, site, own, (counts[len(checked)], self.bad, len(checked)))
                checked.append(site)
        if checked:
            number_waves(m, self.wave)
        if any(site.spaces & LDS for site in checked):
            for kernel in m.kernels:
                m.at_entry(kernel, keep, lds_size(), into=self.lds_bytes)
        return CheckedSites(tuple(checked), places.left_out, counts, m.program.isa.wave_size)

    def watch(self, m: Mutator, instr: Instr, site: CheckedSite, own: tuple[Entry, int, Entry],
              out: tuple[object, ...]) -> None:
        """``out``: where hooks count and report, and the site's number."""
        how = site.bytes, site.align if self.align else 1, site.kind is not AccessKind.LOAD
        told = *out, self.wave, self.told_lanes
        if site.scalar:
            m.before(instr, watch_scalar, self.known, *told, address(instr), *how, bounds(instr), *own)
            return
        given = (self.known, self.lds_bytes if site.spaces & LDS else 0, *told, address(instr),
                 address(instr, site.elements - 1), *how, site.spaces, site.elements, bounds(instr), *own)
        if self.guard:
            with suppress(HookError):  # what cannot be skipped is reported
                m.skip_if(instr, check, *given)
                return
        m.before(instr, watch, *given)

    def received(self, channel: Channel, launch: LaunchResult, records: NDArray[Any]) -> None:
        self.gathered.setdefault(launch.index, []).extend(records)

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: CheckedSites = launch.notes
        records = defaultdict[int, list[Any]](list)
        for record in self.gathered.pop(launch.index, []):
            records[int(record["site"])].append(record)
        rows = [self.row_of(launch, site, count, records[number])
                for number, (site, count) in enumerate(zip(notes.checked, launch[notes.counts], strict=False)) if count]
        return {"judged": not self.unobserved(launch), "bad": rows, "allocations": list(launch.allocations),
                "left_out": left_out_rows(notes.left_out)}

    def unobserved(self, launch: LaunchResult) -> str:
        return "" if launch.allocations or self.align else UNKNOWN

    def row_of(self, launch: LaunchResult, site: CheckedSite, count: int, records: Sequence[Any]) -> dict[str, Any]:
        notes: CheckedSites = launch.notes
        lanes = []
        for record in sorted(records, key=lambda record: int(record["wave"])):
            group, wave = group_and_wave(launch, notes.wave_size, int(record["wave"]))
            lanes += [{"workgroup": group, "wave": wave, "lane": lane, **self.place_of(launch, record, lane, site)}
                      for lane in lanes_of(int(record["lanes"]))]
        return {**site.place.facts(), "kind": WORDS[site.kind],
                "by": "wave" if site.scalar else "lane", "bytes": site.bytes, "count": count,
                "first": lanes[: self.told_lanes]}

    def place_of(self, launch: LaunchResult, record: Any, lane: int, site: CheckedSite) -> dict[str, Any]:
        at = int(record["address"][lane])
        if not int(record["local"]) >> lane & 1:
            return {"space": "memory", "address": at, "what": told(launch, at, site)}
        at %= 1 << 32
        return {"space": "LDS", "address": at, "what": told_of_lds(at, int(record["lds_bytes"]), site)}

    def combined(self, reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """With as many examples as of one launch."""
        first = defaultdict[int, list[Any]](list)
        for row in (row for report in reports for row in report["bad"]):
            first[row["pc"]] += row["first"]
        found = combined(self.amounts, reports)
        return {**found, "bad": [{**row, "first": first[row["pc"]][: self.told_lanes]} for row in found["bad"]]}

    def findings(self, report: dict[str, Any]) -> int:
        return len(report["bad"])

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        if not report["judged"] and not report["bad"]:
            return f"{self.headline(launch)}: {UNKNOWN}"
        known = (f"{len(report['allocations'])} allocations" if report["allocations"]
                 else "allocations are not known, LDS and alignment alone are judged" if self.align else UNKNOWN)
        lines = [f"{self.headline(launch)}: {known}; bad accesses of "
                 f"{how_many(len(report['bad']), 'instruction')}"]
        for row in report["bad"]:
            lines.append(f"  {place_text(row)}")
            who = how_many(row["count"], row["by"])
            lines.append(f"    {row['kind']} of {how_many(row['bytes'], 'byte')} by {who}")
            lines += [f"    {line}" for line in example_lines(row["first"])]
        return "\n".join([*lines, *left_out_lines(report["left_out"])])

    def rows(self, report: dict[str, Any]) -> list[dict[str, Any]]:
        return [{name: row[name] for name in ("pc", "instruction", "line", "kind", "bytes")} | each
                for row in report["bad"] for each in row["first"]]


def checked_site(m: Mutator, instr: Instr, place: InstrPlace) -> CheckedSite:
    """HookError where it may access memory in a way that is not followed."""
    kind, memory = access_kind(instr), instr.memory
    assert memory is not None
    spaces = LDS if memory.form is AddressForm.LDS else FLAT if is_flat(m, instr) else Space.GLOBAL.value
    size = memory.bytes if spaces == LDS else followed(m, instr)
    if size is None or memory.form is AddressForm.OTHER:
        raise HookError("its address or its width is not known")
    if memory.form is AddressForm.BUFFER and memory.scalar is not None and memory.scalar.reg is not None:
        raise HookError("its address is made of more scalars than a hook can be given")
    longest = size if kind is AccessKind.ATOMIC else min(size, 4)
    return CheckedSite(place, kind, size, longest & -longest, memory.of_wave, spaces, len(memory.offsets))


def told_of_lds(at: int, lds_bytes: int, site: CheckedSite) -> str:
    """What is wrong with an access to a work-group's LDS, which has so many bytes."""
    if at + site.bytes <= lds_bytes:
        return f"no multiple of {site.align}"
    whole = f"the work-group's LDS ({how_many(lds_bytes, 'byte')})"
    return f"reaches {at + site.bytes - lds_bytes} bytes past the end of {whole}" if at < lds_bytes else (
        f"{at - lds_bytes} bytes past the end of {whole}")


def told(launch: LaunchResult, at: int, site: CheckedSite) -> str:
    """What is wrong with an access, by the allocations next to it."""
    known = launch.allocations
    number = bisect_right([each.start for each in known], at) - 1
    before = known[number] if number >= 0 else None
    behind = known[number + 1] if number + 1 < len(known) else None
    inside = before is not None and at + site.bytes <= before.end
    if before is not None and inside and not before.writable and site.kind is not AccessKind.LOAD:
        return f"{at - before.start} bytes into {described(before)}, which may not be written"
    if not known or inside:
        return f"no multiple of {site.align}"
    if before is not None and at < before.end:
        return f"reaches {at + site.bytes - before.end} bytes past the end of {described(before)}"
    if (gone := next((each for each in launch.freed if each.start <= at < each.end), None)) is not None:
        return f"{at - gone.start} bytes into {described(gone)}, which was freed"
    past = at - before.end if before is not None else None
    short = behind.start - at if behind is not None else None
    if before is not None and past is not None and (short is None or past <= short):
        return f"{past} bytes past the end of {described(before)}"
    assert behind is not None
    return f"{short} bytes before {described(behind)}"


def described(allocation: LiveAllocation) -> str:
    return f"{allocation.name} ({how_many(allocation.end - allocation.start, 'byte')})"
