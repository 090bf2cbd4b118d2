"""What keeps a part of a kernel from being faster: which unit of a compute unit is busy for longest at best.

In: a row of a report, and the most that a compute unit can do in a cycle. Out: Limits. Invariant: cycles are those
that one compute unit needs if nothing else holds it up: no latency, no bank conflicts, no memory behind its cache.
LDS takes a cycle for each group of lanes, however narrow their accesses are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from luthier_py.isa.timing.peaks import Peaks

MATRIX, VECTOR, CACHE, LDS = "matrix units", "vector units", "vector cache", "LDS"
_OF_MATRIX = "matrix "  # how types of matrix instructions begin


@dataclass(frozen=True, slots=True)
class Limits:
    """``cycles``: of each unit that has something to do, most first."""

    cycles: Mapping[str, float]

    @property
    def unit(self) -> str:
        """The one that is busy for longest; empty where none is."""
        return next(iter(self.cycles), "")

    @property
    def share_of_peak(self) -> float | None:
        """What part of the most flops in a cycle can be had at best; None without flops."""
        computing = max(self.cycles.get(MATRIX, 0.0), self.cycles.get(VECTOR, 0.0))
        return computing / self.cycles[self.unit] if computing else None


def limits_of(row: Mapping[str, Any], peaks: Peaks) -> Limits:
    types, cycles = row["flops_by_type"], dict[str, float]()
    for type, count in types.items():
        unit = MATRIX if type.startswith(_OF_MATRIX) else VECTOR
        cycles[unit] = cycles.get(unit, 0.0) + (count / peaks.flops[type] if type in peaks.flops else 0.0)
    cycles[CACHE], cycles[LDS] = row["global_bytes"] / peaks.bytes, row["lds_cycles"] / peaks.lds_sets
    return Limits({unit: cycles[unit] for unit in sorted(cycles, key=lambda unit: -cycles[unit]) if cycles[unit]})
