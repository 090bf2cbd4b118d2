"""How many work-groups of a launch a device of its target holds at a time.

In: a checked launch. Out: that number, with what limits it. A launch whose work-groups wait for each other ends as it
would on the device: if the resident ones can continue. Source: LLVM's AMDGPUBaseInfo.cpp (registers, waves, LDS;
getMaxWorkGroupsPerCU for barriers). Invariant: a launch whose work-groups do not fit at all is refused.
"""

from __future__ import annotations

from luthier_py.base.errors import Invalid
from luthier_py.base.records import dataclass
from luthier_py.binary.loader import KernelDescriptor
from luthier_py.emulator.waves.shape import Shape, with_shape
from luthier_py.isa.model.target import Target

COMPUTE_UNITS = 16
"""Of every emulated device."""


@dataclass(frozen=True, slots=True)
class Residency:
    """``groups`` of one compute unit, or of the device; ``limit`` says what there is no more of."""

    groups: int
    limit: str


def of_compute_unit(target: Target, descriptor: KernelDescriptor, waves: int, lds_bytes: int) -> Residency:
    """For work-groups of ``waves`` waves with ``lds_bytes`` of LDS, static and dynamic."""
    size = descriptor.wave_size
    vgprs, sgprs = descriptor.vgpr_count(target), descriptor.sgpr_count(target)
    every, lds = target.max_waves_per_simd * target.simds, -(-lds_bytes // target.lds_granule) * target.lds_granule
    limits = [
        Residency(every // waves, f"{every} waves"),
        Residency(target.waves_for(vgprs, wave_size=size) * target.simds // waves, f"{vgprs} VGPRs of a wave"),
        Residency(target.waves_for(0, sgprs, wave_size=size) * target.simds // waves, f"{sgprs} SGPRs of a wave"),
    ]
    if waves > 1:  # others need no barrier
        limits.append(Residency(target.barriers, f"{target.barriers} barriers"))
    if lds:
        limits.append(Residency(target.lds_bytes // lds, f"{lds} of {target.lds_bytes} bytes of LDS"))
    return min(limits, key=lambda limit: limit.groups)


@with_shape
def of_device(shape: Shape) -> Residency:
    """The same for the device; Invalid if not even one work-group fits a compute unit."""
    unit = of_compute_unit(shape.target, shape.record.descriptor, shape.waves, shape.lds_bytes)
    if not unit.groups:
        what = f"a work-group of {shape.waves} waves does not fit a compute unit ({unit.limit})"
        raise Invalid(f"kernel {shape.record.shown}: {what}")
    words = f"{COMPUTE_UNITS} compute units with {unit.groups} each, by their {unit.limit}"
    return Residency(unit.groups * COMPUTE_UNITS, words)
