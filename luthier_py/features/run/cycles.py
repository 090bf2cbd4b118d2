"""Cycles of the emulator's model as text: of one launch, and of the kernels of a program.

In: facts of launches, as LaunchCycles has them. Out: lines. Invariant: nothing is measured or computed here but sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from luthier_py.base.errors import how_many
from luthier_py.base.names import demangle


def cycles_text(cycles: int, imbalance: float, wave_imbalance: float, launches: int = 1) -> str:
    """``launches``: which took so many together; the other two are then those of the worst."""
    together = f" in {launches} launches" if launches > 1 else ""
    return (f"{cycles} cycles by the model{together} (imbalance of compute units {imbalance:.2f}, of the waves of a "
            f"work-group {wave_imbalance:.2f})")


def cycle_lines(launches: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line for each kernel, those that took most first, and one for all if there are several."""
    kernels: dict[str, list[Mapping[str, Any]]] = {}
    for launch in launches:
        if "cycles" in launch:
            kernels.setdefault(launch["kernel"], []).append(launch)
    total = {name: sum(launch["cycles"] for launch in of) for name, of in kernels.items()}
    lines = []
    for name in sorted(total, key=lambda name: -total[name]):
        units, waves = (max(launch[key] for launch in kernels[name]) for key in ("imbalance", "wave_imbalance"))
        lines.append(f"kernel {demangle(name)}: {cycles_text(total[name], units, waves, len(kernels[name]))}")
    if len(kernels) > 1:
        count = sum(map(len, kernels.values()))
        lines.append(f"all {how_many(len(kernels), 'kernel')}: {sum(total.values())} cycles in {count} launches")
    return lines
