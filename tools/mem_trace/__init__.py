"""Writes down the address of each lane at each memory instruction, while the kernel runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
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
    address,
    channel,
    hook,
    site_id,
    u32,
    u64,
    wave_in_group,
    workgroup_id,
)
from luthier_py.intrinsics import active_mask, push
from luthier_py.program.ir import Instr
from luthier_py.rewrite.tool import SUM, InstrPlaces, Omission, RowsBy, lanes_of, left_out_lines, left_out_rows

SPACES = ("global", "lds", "scratch")  # words of filters


class Access:
    """One execution by a wave. ``element``: 1 for the second of two that one instruction accesses."""

    pc: u64
    lanes: u64
    workgroup_x: u32
    workgroup_y: u32
    workgroup_z: u32
    wave: u32
    element: u32
    address: Lane[u64]


@hook(fold=())
def trace(
    out: channel[Access], pc: u64, element: u32, x: u32, y: u32, z: u32, wave: u32, address: Lane[u64]
) -> None:
    push(out, pc, active_mask(), x, y, z, wave, element, address)


@dataclass(frozen=True, slots=True)
class Site:
    """A traced instruction."""

    opcode: str
    line: str | None


@dataclass(frozen=True, slots=True)
class Sites:
    """Of one program, by address; and instructions whose addresses are not known."""

    traced: dict[int, Site]
    left_out: tuple[Omission, ...]


class MemTrace(Tool):
    """The address of each lane at each memory instruction, a record for each wave."""

    name = "mem_trace"
    cacheable = True
    amounts = {"accesses": SUM.of("executions by waves"), "sites": RowsBy(("pc",), {"accesses": SUM})}
    spaces = Option(",".join(SPACES), several=SPACES, help="memory whose instructions are traced")
    print_records = Option(True, help="0: print no line for each record; with LUTHIER_RECORDS none is printed")
    accesses = Channel(Access)

    def instrument(self, m: Mutator) -> Sites:
        traced, places = dict[int, Site](), InstrPlaces(m.program)
        for instr in self.chosen(m):
            with places.unless_refused(instr):
                for element in range(len(instr.memory.offsets) if instr.memory is not None else 0):
                    at = address(instr, element)
                    m.before(instr, trace, self.accesses, site_id(instr), element, *map(workgroup_id, "xyz"),
                             wave_in_group(), at)
                    traced[instr.pc] = Site(instr.inst.op.mnemonic, places.of(instr).line)
        return Sites(traced, places.left_out)

    def chosen(self, m: Mutator) -> Iterator[Instr]:
        for function in m.functions():
            yield from m.instrs(function, where=self.spaces.replace(",", " | "))

    def received(self, channel: Channel, launch: LaunchResult, records: NDArray[Any]) -> None:
        counts = self.gathered.setdefault(launch.index, {})
        for pc, count in zip(*np.unique(records["pc"], return_counts=True), strict=True):
            counts[int(pc)] = counts.get(int(pc), 0) + int(count)
        if self.print_records and self.selection.records is None:
            for record in records:
                print(self.told(launch, record), file=sys.stderr)

    def told(self, launch: LaunchResult, record: Any) -> str:
        site = launch.notes.traced[int(record["pc"])] if launch.notes else None
        addresses = " ".join(f"0x{record['address'][lane]:x}" for lane in lanes_of(int(record["lanes"])))
        place = ",".join(str(record[f"workgroup_{axis}"]) for axis in "xyz")
        what = site.opcode if site else "?"
        return (f"MEMTRACE: launch {launch.index} - work-group {place} - wave {record['wave']} - {what} at "
                f"0x{int(record['pc']):x} - {addresses}")

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        sites, counts = launch.notes, self.gathered.pop(launch.index, {})
        rows = [{"pc": pc, "opcode": site.opcode, "line": site.line, "accesses": counts.get(pc, 0)}
                for pc, site in sites.traced.items()]
        return {"accesses": sum(counts.values()), "sites": rows, "left_out": left_out_rows(sites.left_out)}

    def text(self, launch: LaunchResult, report: Any) -> str:
        lines = [f"{self.headline(launch)} - {report['accesses']} accesses"]
        lines += [f"  {row['opcode']} at 0x{row['pc']:x} = {row['accesses']}" for row in report["sites"]]
        return "\n".join([*lines, *left_out_lines(report["left_out"])])
