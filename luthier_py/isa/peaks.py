"""What a compute unit can do in a cycle at most: operations on floats, and bytes from its vector cache.

In: a target. Out: its Peaks, from the cycle model's numbers and with their sources. Invariant: a rate that no source
has is left out: of matrices where the model goes by passes, and of memory behind the caches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from luthier_py.isa.cycles import SOURCES, Work, cycle_model
from luthier_py.isa.target import Target

_VECTORS = {"f32": Work.VECTOR, "f64": Work.DOUBLE}


@dataclass(frozen=True, slots=True)
class Peaks:
    """Of what shares one LDS: a compute unit, on RDNA a work-group processor."""

    flops: Mapping[str, int]  # in a cycle, by type: fused multiplications and additions, one instruction at a time
    bytes: int                # in a cycle, from the vector cache to registers
    sources: tuple[str, ...]  # of these numbers


def peaks_of(target: Target) -> Peaks:
    """The peaks of a target."""
    model = cycle_model(target)
    timings = {type: model.work[work] for type, work in _VECTORS.items()}
    lanes = target.simds * model.lanes
    vectors = {type: 2 * lanes // timing.held for type, timing in timings.items()}
    matrices = {f"matrix {kind}": rate * target.simds for kind, rate in model.matrix_rates.items() if kind[0] != "i"}
    names = dict.fromkeys((*(timing.source for timing in timings.values()), *model.sources.split()))
    return Peaks({**vectors, **matrices}, model.memory_bytes, tuple(SOURCES[name] for name in names))
