"""Kernels whose arguments are preloaded, in clones where there is no room for that.

In: kernels, and descriptors. Out: entries, and instructions that load the same into the same registers. Source:
AMDGPUUsage, "Preloaded Kernel Arguments".
"""

from __future__ import annotations

from collections.abc import Iterator

from luthier_py.binary.loader import KernelDescriptor
from luthier_py.binary.loader.initial import Initial, initial_places
from luthier_py.isa import Counter, Inst, InstructionSet, build, sgpr
from luthier_py.program.ir import Kernel

_LOADED = (16, 8, 4, 2, 1)  # dwords at once; more than two go to registers whose numbers are multiples of four


def without_preloads(descriptor: KernelDescriptor) -> KernelDescriptor:
    """The descriptor of a kernel that has no arguments preloaded."""
    return descriptor.replace(kernarg_preload_length=0, kernarg_preload_offset=0)


def loads_arguments(before: KernelDescriptor, after: KernelDescriptor) -> bool:
    """Whether the clone has to load what the original finds."""
    return before.kernarg_preload_length > 0 and not after.kernarg_preload_length


def entries_of(kernel: Kernel, start: KernelDescriptor) -> tuple[int, ...]:
    """Where waves of the clone may start, by addresses of the original."""
    entries = kernel.function.entries
    return entries[-1:] if loads_arguments(kernel.record.descriptor, start) else entries


def loads_of(isa: InstructionSet, descriptor: KernelDescriptor) -> list[Inst]:
    """What is preloaded by the original's ``descriptor``, where all else is already what the original finds."""
    places = initial_places(isa.target, descriptor)
    to, pointer = places[Initial.PRELOADED_KERNARGS], places[Initial.KERNARG_SEGMENT_PTR]
    offset = 4 * descriptor.kernarg_preload_offset
    loads = [build.load_arguments(isa, sgpr(first, dwords), pointer, offset + 4 * (first - to.index))
             for first, dwords in _pieces(to.index, to.dwords)]
    return [*loads, *isa.waits({Counter.LGKM: 0})]


def _pieces(first: int, count: int) -> Iterator[tuple[int, int]]:
    while count:
        dwords = next(each for each in _LOADED if each <= count and not first % min(each, 4))
        yield first, dwords
        first, count = first + dwords, count - dwords
