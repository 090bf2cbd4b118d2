"""Accesses whose addresses are sums of multiples of the lane's number and of work-item IDs: known once for a wave.

In: the sites of a kernel. Out: :class:`Linear`: those of them whose cycles are worked out when a wave starts, and that
are counted in registers. Invariant: with the lanes that the wave started with, such a site takes these cycles always.

What an address has beside its multiples is the same in all lanes. Where all of them are multiples of 4, it moves all
lanes' words by the same distance; else it has to be a known constant, whose bits below a word are kept. Whether words
are the same, or in one bank, is a matter of their distance alone. So nothing else of it matters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from luthier_py import Mutator, WaveVariable, u32, u64
from luthier_py.ir import Kernel
from luthier_py.isa.semantics.readers.numbers import Varying

from .results import Site
from .shapes import Shape

STARTED = WaveVariable(u64, "LdsBankConflicts.started")
CYCLES = tuple(WaveVariable(u32, f"LdsBankConflicts.cycles{number}") for number in range(8))
TIMES = tuple(WaveVariable(u64, f"LdsBankConflicts.times{number}") for number in range(12))


class Pattern(NamedTuple):
    """Accesses that take the same cycles in the same lanes."""

    lane: int
    x: int
    y: int
    z: int
    start: int
    shape: Shape


class Counting(NamedTuple):
    """Where a site is counted: by numbers of wave variables."""

    kernel: Kernel
    times: int
    cycles: int


@dataclass(slots=True)
class Linear:
    """Filled kernel by kernel, sites by their address."""

    patterns: dict[Kernel, dict[Pattern, int]] = field(default_factory=dict)
    firsts: set[int] = field(default_factory=set)
    """Sites that are counted: each stands for all sites of its stretch."""
    places: dict[int, Counting] = field(default_factory=dict)

    def fill(
        self, kernel: Kernel, stretches: Sequence[Sequence[int]], found: Mapping[int, Pattern], spare: int
    ) -> None:
        """As many stretches as fit into registers; first those that have the most sites."""
        numbers: dict[Pattern, int] = {}
        times, spare = 0, spare - 2
        for here in sorted(stretches, key=len, reverse=True):
            new = [pattern for pattern in dict.fromkeys(found[pc] for pc in here) if pattern not in numbers]
            if 2 + len(new) > spare or len(numbers) + len(new) > len(CYCLES) or times == len(TIMES):
                continue
            spare -= 2 + len(new)
            numbers |= {pattern: len(numbers) + number for number, pattern in enumerate(new)}
            self.firsts.add(here[0])
            self.places |= {pc: Counting(kernel, times, numbers[found[pc]]) for pc in here}
            times += 1
        if numbers:
            self.patterns[kernel] = numbers


def linear_of(m: Mutator, sites: Sequence[Site], shapes: Mapping[int, Shape]) -> Linear:
    """In the kernels' own code, where the lanes and IDs of a wave's start are known."""
    found = {site.instr.pc: pattern for site in sites if (pattern := _pattern(m, site, shapes[site.instr.pc]))}
    linear = Linear()
    for kernels in m.components():
        spare = m.spare_scalars(kernels)
        for kernel in {kernel.function: kernel for kernel in kernels}.values():
            cut = [stretch for block in m.blocks(kernel.function) for stretch in m.stretches(block)]
            here = [[instr.pc for instr in stretch.instrs if instr.pc in found] for stretch in cut]
            linear.fill(kernel, [pcs for pcs in here if pcs], found, spare)
    return linear


def _pattern(m: Mutator, site: Site, shape: Shape) -> Pattern | None:
    register, offset = site.instr.inst["addr"].reg, site.access.offsets_bytes[0]
    known = m.facts.affine_before(site.instr, register) if register is not None else None
    if known is None:
        return None
    terms, start = dict(known.terms), 0
    if any(multiple % 4 for multiple in terms.values()):
        if known.constant is None:
            return None
        start = (known.constant + offset) & 3
    lane, x, y, z = (terms.get(what, 0) % (1 << 32) for what in (Varying.LANE, Varying.X, Varying.Y, Varying.Z))
    return Pattern(lane, x, y, z, start, shape)
