"""Which functions share registers, where wave variables live, and what the descriptors must say.

In: the program, its facts, the edits. Out: components (kernels with the functions that they reach), the
homes of wave variables in each, descriptors with room for what was added. Invariant: a home is touched by
no instruction of its component, and a descriptor only grows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from luthier_py.analysis import Facts
from luthier_py.errors import Location
from luthier_py.inject.allocate import Pool
from luthier_py.inject.model import Item, Resources
from luthier_py.inject.weave import general_registers
from luthier_py.ir import Function, Kernel, Program
from luthier_py.isa import Reg, RegFile, RegSet, Target
from luthier_py.loader import KernelDescriptor
from luthier_py.tool import WaveVariable


@dataclass(frozen=True, slots=True)
class Component:
    """Kernels that share functions, and all functions that they can reach (kernel bodies included)."""

    kernels: tuple[Kernel, ...]
    functions: tuple[Function, ...]


def components(program: Program, wanted: Iterable[Kernel]) -> list[Component]:
    """Kernels grouped so that no function belongs to two groups."""
    groups: list[tuple[list[Kernel], dict[int, Function]]] = []
    for kernel in wanted:
        kernels, reached = [kernel], {f.address: f for f in program.reachable(kernel.function)}
        rest = []
        for other in groups:
            if other[1].keys() & reached.keys():
                kernels, reached = other[0] + kernels, other[1] | reached
            else:
                rest.append(other)
        groups = [*rest, (kernels, reached)]
    return [Component(tuple(k), tuple(f for _, f in sorted(r.items()))) for k, r in groups]


def wave_homes(
    program: Program, facts: Facts, component: Component, variables: Sequence[WaveVariable]
) -> dict[WaveVariable, Reg]:
    """A scalar register for each wave variable that the component never touches."""
    untouched = general_registers(program.isa) - facts.touched(component.functions)
    pool = Pool(RegSet(sgpr=untouched.sgpr), Location(component.kernels[0].name))
    return {v: pool.take(RegFile.SGPR, v.type.dwords) for v in sorted(variables, key=lambda v: -v.type.dwords)}


def used_by(items: Iterable[Item]) -> RegSet:
    """Registers that some item names."""
    used = RegSet()
    for item in items:
        used |= item.inst.reads | item.inst.writes
    return used


def grown(target: Target, descriptor: KernelDescriptor, used: RegSet) -> KernelDescriptor:
    """``descriptor`` with room for all registers in ``used``."""
    sgprs = (used.sgpr & ((1 << target.sgpr_limit) - 1)).bit_length()
    if sgprs + target.extra_sgprs > descriptor.sgpr_count(target):
        descriptor = descriptor.with_sgpr_count(target, sgprs + target.extra_sgprs)
    vgprs, agprs = used.vgpr.bit_length(), used.agpr.bit_length()
    if target.unified_agprs:
        if vgprs > descriptor.accum_offset:
            descriptor = descriptor.with_accum_offset(vgprs)
        vgprs = descriptor.accum_offset + agprs if agprs else vgprs
    if max(vgprs, agprs) > descriptor.vgpr_count(target):
        descriptor = descriptor.with_vgpr_count(target, max(vgprs, agprs))
    return descriptor


def occupancy(target: Target, descriptor: KernelDescriptor) -> Resources:
    """What the descriptor claims, and the waves per SIMD that this admits."""
    sgprs, vgprs = descriptor.sgpr_count(target), descriptor.vgpr_count(target)
    return Resources(sgprs, vgprs, target.waves_for(vgprs, sgprs, wave_size=descriptor.wave_size))

