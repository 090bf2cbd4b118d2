"""How long each wave runs, by the device's clock at its begin and end, and how evenly work is spread.

Cycles are what `clock()` counts: the GPU's own, with this tool's instructions in them; on the emulator executed
instructions, or cycles of its model (docs/time.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luthier_py import (
    EXEC,
    Lane,
    LaunchResult,
    LaunchVariable,
    Mutator,
    Option,
    Tool,
    WaveVariable,
    hardware_register,
    hook,
    ptr,
    sgpr,
    u32,
    u64,
)
from luthier_py.intrinsics import clock, popcount
from luthier_py.isa.model.compute_units import compute_unit_bits
from luthier_py.program.ir import Kernel
from luthier_py.report.columns import align_columns, comma_separated
from luthier_py.rewrite.tool import Clock, encoded

BINS = 8  # of histograms
CLOCK = "the clock of waves (on the emulator executed instructions, or --clock model)"
OUTSIDE = 1 << 20  # priority of what measures: all other calls are between
NO_COUNT, WAVES, THREADS = COUNTS = "none", "waves", "threads"


@dataclass
class Ran:
    """A wave; ``place`` and ``die`` are what registers of the hardware say of where it ran."""

    begin: u64
    end: u64
    instructions: u64
    lanes: u64
    place: u32
    die: u32
    ran: u32


INSTRUCTIONS = WaveVariable(u64, "LoadBalance.instructions")
LANES = WaveVariable(u64, "LoadBalance.lanes")
ITEMS = LaunchVariable(u64, "workitem", name="LoadBalance.items")


@hook(lanes="one")
def begin(own: ptr[Ran], place: u32, place_bits: u32, die: u32, die_bits: u32) -> None:
    own[0].ran = 1
    own[0].place = place & place_bits
    own[0].die = die & die_bits
    own[0].begin = clock()


@hook(lanes="one")
def end(own: ptr[Ran], instructions: u64, lanes: u64) -> None:
    own[0].end = clock()
    own[0].instructions = instructions
    own[0].lanes = lanes


@hook
def execute(instructions: u64, lanes: u64, n: u32, exec: u64, everyone: u64) -> tuple[u64, u64]:
    return instructions + n, lanes + popcount(exec & everyone) * n


@hook
def execute_item(own: Lane[ptr[u64]], n: u32) -> None:
    own[0] = own[0] + n


class LoadBalance(Tool):
    """Cycles of each wave, work-group and compute unit, how unequal they are, and instructions per cycle."""

    name = "load_balance"
    cacheable = True
    counting = Option(NO_COUNT, choices=COUNTS,
                      help="executed instructions, for throughput: of each wave, or thread, too")

    waves = LaunchVariable(Ran, "wave")

    def instrument(self, m: Mutator) -> Clock:
        target = m.program.obj.target
        for kernel in m.kernels:
            counts = (0, 0) if self.counting == NO_COUNT else (INSTRUCTIONS, LANES)
            m.at_entry(kernel, begin, self.waves.own, *unit_registers(kernel), priority=OUTSIDE)
            m.at_exit(kernel, end, self.waves.own, *counts, priority=-OUTSIDE)
        if self.counting != NO_COUNT:
            self.count_instructions(m, (1 << m.program.isa.wave_size) - 1)
        return Clock(target.clock_bits)

    def count_instructions(self, m: Mutator, everyone: int) -> None:
        blocks = (block for function in m.functions() for block in m.blocks(function))
        for stretch in (stretch for block in blocks for stretch in m.stretches(block)):
            m.at_stretch(stretch, execute, INSTRUCTIONS, LANES, len(stretch), sgpr(EXEC, 2), everyone,
                         into=(INSTRUCTIONS, LANES), anywhere=True)
            if self.counting == THREADS:
                m.at_stretch(stretch, execute_item, ITEMS.own, len(stretch))

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        known: Clock = launch.notes
        groups = launch[self.waves].reshape(launch.workgroups, -1)
        rows = groups[groups["ran"] != 0]
        kernel, *spans = (known.span(ran["begin"], ran["end"])
                          for ran in (rows, *(group[group["ran"] != 0] for group in groups)))
        cycles = known.between(rows["begin"], rows["end"])
        return {
            "clock_bits": known.bits,
            "cycles": kernel,
            "waves": spread(cycles),
            "workgroups": None if None in spans else spread(spans),
            "units": spread(_of_units(rows, cycles)),
            "instructions": self.executed(launch, rows, kernel),
        }

    def executed(self, launch: LaunchResult, rows: NDArray[Any], kernel: int | None) -> dict[str, Any] | None:
        """Counts, and the same over the kernel's cycles."""
        if self.counting == NO_COUNT:
            return None
        counts: dict[str, NDArray[Any]] = {"wave": rows["instructions"]}
        if self.counting == THREADS:
            items = launch[ITEMS]
            counts["thread"] = items[items != 0]
        found: dict[str, Any] = {name: spread(numbers) for name, numbers in counts.items()}
        totals = {"total": int(rows["instructions"].sum()), "total_threads": int(rows["lanes"].sum())}
        per_cycle = None if not kernel else {
            **{name: number / kernel for name, number in totals.items()},
            **{name: spread(numbers / kernel) for name, numbers in counts.items()}}
        return {**totals, **found, "per_cycle": per_cycle}

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        cycles = "unknown" if report["cycles"] is None else report["cycles"]
        lines = [f"{self.headline(launch)}, cycles {cycles} by {CLOCK}"]
        columns = ("count", "min", "mean", "max", "imbalance")
        table = [(row["count"], *(f"{row[name]:.6g}" for name in columns[1:]), row["of"]) for row in self.rows(report)]
        lines.append(align_columns((*columns, "of"), table, left=1))
        if report["waves"]:
            lines.append(f"  waves by cycles: {_bins(report['waves']['histogram'])}")
        if report["cycles"] is None:
            lines.append(f"  the clock has {report['clock_bits']} bits: times of different waves are not compared, and "
                         "a wave that runs longer is told shorter")
        return "\n".join(lines)

    def rows(self, report: dict[str, Any]) -> list[dict[str, Any]]:
        parts = {"cycles of a wave": report["waves"], "cycles of a work-group": report["workgroups"],
                 "wave cycles on a compute unit": report["units"]}
        counted = report["instructions"] or {}
        parts |= {f"instructions of a {name}": counted.get(name) for name in ("wave", "thread")}
        per_cycle = counted.get("per_cycle") or {}
        parts |= {f"instructions per cycle, {name}": part for name, part in per_cycle.items() if isinstance(part, dict)}
        return [{"of": name, **{key: part[key] for key in ("count", "min", "mean", "max", "imbalance")}}
                for name, part in parts.items() if part]

    def files(self, launch: LaunchResult, report: dict[str, Any]) -> Mapping[str, bytes]:
        """Files with a table of all waves."""
        groups = launch[self.waves].reshape(launch.workgroups, -1)
        rows = [{"workgroup": group, "wave": wave, **{name: int(row[name]) for name in groups.dtype.names}}
                for group, waves in enumerate(groups) for wave, row in enumerate(waves) if row["ran"]]
        return {**super().files(launch, report), f"{self.name}.csv": encoded(comma_separated(rows))}


def spread(values: Iterable[Any]) -> dict[str, Any] | None:
    """How unequal numbers are: the largest over the mean, 1 where all are the same. None of no numbers."""
    numbers = np.array(list(values), dtype=np.float64)
    if not numbers.size:
        return None
    counts, edges = np.histogram(numbers, BINS if numbers.min() < numbers.max() else 1)
    mean = float(numbers.mean())
    return {"count": len(numbers), "min": float(numbers.min()), "mean": mean, "max": float(numbers.max()),
            "imbalance": float(numbers.max()) / mean if mean else 1.0,
            "histogram": {"edges": edges.tolist(), "counts": counts.tolist()}}


def unit_registers(kernel: Kernel) -> list[Any]:
    """For a hook: where the wave runs, and on which die, each with the bits that count."""
    bits = compute_unit_bits(kernel.function.isa.target)
    found = [value for name, mask in bits.items() for value in (hardware_register(kernel, name), mask)]
    return [*found, *[0] * (4 - len(found))]


def _of_units(rows: NDArray[Any], cycles: NDArray[Any]) -> list[int]:
    """The cycles of the waves that each unit ran, which are more than the unit's own where it ran several at once."""
    units, unit = np.unique(rows[["place", "die"]], return_inverse=True)
    return [int(cycles[unit == number].sum()) for number in range(len(units))]


def _bins(histogram: Mapping[str, Any]) -> str:
    bins = zip(histogram["counts"], histogram["edges"][1:], strict=True)
    return ", ".join(f"{count} to {edge:.6g}" for count, edge in bins if count)
