"""What became of a kernel, as plain data for reports and caches.

In: nothing; `apply` and `resources` make these. Out: ClonedKernel. Invariant: nothing here names parts of a program.
"""

from __future__ import annotations

from collections.abc import Mapping

from luthier_py.base.records import dataclass, field


@dataclass(frozen=True, slots=True)
class Resources:
    """What one kernel asks of the device, as its descriptor says; ``waves`` is the occupancy per SIMD."""

    sgprs: int
    vgprs: int
    waves: int
    lds_bytes: int
    private_bytes: int  # of a lane


@dataclass(frozen=True, slots=True)
class ClonedKernel:
    """What became of one kernel: for reports."""

    name: str
    clone: str
    sites: int
    before: Resources
    after: Resources
    bytes_before: int
    bytes_after: int
    schemes: Mapping[str, int] = field(default_factory=dict)
    """How calls got their registers: how many by which policy."""
    private_bytes: int = 0
    """Of each lane's private memory, that were added."""
    wave_size: int = 64
