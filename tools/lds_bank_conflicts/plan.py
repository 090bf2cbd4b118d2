"""What counts the accesses of a program, and in which registers.

In: its sites. Out: :class:`Plan`. Invariant: each site has a turnout, which counts its executions, and conflicts, which
add up what these cost beyond a cycle for each group; sites for which either is the same share it.

How many executions have an active lane depends on EXEC alone. Where EXEC is as it was when the wave started, as the
analysis shows, that is a count of a region; elsewhere it is taken from EXEC, once for a range with one EXEC.

Where furthermore addresses are sums of multiples of the lane's number and of work-item IDs, conflicts are numbers that
are known when the wave starts. What an address has beside its multiples is the same in all lanes. Where all of them
are multiples of 4, it moves all lanes' words by the same distance; else it has to be a known constant, whose bits below
a word are used. Whether words are the same, or in one bank, is a matter of their distance alone. So accesses of one
such range through one address register have the same conflicts, too, whatever their offsets.

What finds no free scalar register is added up in memory at once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from luthier_py import Mutator, WaveVariable, u32, u64
from luthier_py.isa import Reg, RegSet
from luthier_py.isa.semantics.readers.numbers import Varying
from luthier_py.program.ir import Function, Kernel
from luthier_py.rewrite.tool import Region, Stretch

from .results import Site
from .shapes import Shape

WIDE = tuple(WaveVariable(u64, f"LdsBankConflicts.wide{number}") for number in range(40))
NARROW = tuple(WaveVariable(u32, f"LdsBankConflicts.narrow{number}") for number in range(40))


class Pattern(NamedTuple):
    """Accesses that take the same cycles in the same lanes."""

    lane: int
    x: int
    y: int
    z: int
    start: int
    shape: Shape


class Turnout(NamedTuple):
    """Executions with an active lane: of a region where EXEC is as at the start of the wave (``steady``), or of a range
    with one EXEC. ``start``: the region's or range's first address."""

    start: int
    steady: bool


class Conflicts(NamedTuple):
    """Of all accesses with a pattern in a region, or of those that are like the one at an address."""

    turnout: Turnout
    what: Pattern | int


@dataclass(slots=True)
class Part:
    """Kernels that share functions, and what their waves keep (mutable: gives registers out)."""

    kernels: tuple[Kernel, ...]
    spare: int
    """Scalar registers that are left."""
    turnouts: dict[Turnout, Region | Stretch] = field(default_factory=dict)
    conflicts: dict[Conflicts, Site] = field(default_factory=dict)
    """With a site that has them."""
    wide: dict[Hashable, WaveVariable] = field(default_factory=dict)
    narrow: dict[Hashable, WaveVariable] = field(default_factory=dict)

    def keeps(self, wide: Iterable[Hashable], narrow: Iterable[Hashable] = ()) -> bool:
        """Whether there are registers for all of these."""
        new64 = [kept for kept in dict.fromkeys(wide) if kept not in self.wide]
        new32 = [kept for kept in dict.fromkeys(narrow) if kept not in self.narrow]
        left = self.spare - 2 * len(new64) - len(new32)
        if left < 0 or len(self.wide) + len(new64) > len(WIDE) or len(self.narrow) + len(new32) > len(NARROW):
            return False
        self.spare = left
        self.wide.update(zip(new64, WIDE[len(self.wide) :], strict=False))
        self.narrow.update(zip(new32, NARROW[len(self.narrow) :], strict=False))
        return True


@dataclass(frozen=True, slots=True)
class Plan:
    """By address of a site: what counts it."""

    parts: tuple[Part, ...]
    turnouts: Mapping[int, Turnout]
    conflicts: Mapping[int, Conflicts]

    @property
    def rows(self) -> dict[Turnout | Conflicts, int]:
        """The rows of the counters on the device."""
        things: list[Turnout | Conflicts] = [*self.turnouts.values(), *self.conflicts.values()]
        return {thing: row for row, thing in enumerate(dict.fromkeys(things))}


def plan_of(m: Mutator, sites: Sequence[Site], shapes: Mapping[int, Shape]) -> Plan:
    by_pc = {site.instr.pc: site for site in sites}
    planner = _Planner(m, by_pc, sorted(by_pc), shapes)
    parts = tuple(planner.part(kernels) for kernels in m.components())
    return Plan(parts, planner.turnouts, planner.conflicts)


@dataclass(frozen=True, slots=True)
class _Planner:
    """Fills a plan, part by part."""

    m: Mutator
    sites: Mapping[int, Site]
    places: Sequence[int]  # of them, ascending
    shapes: Mapping[int, Shape]
    turnouts: dict[int, Turnout] = field(default_factory=dict)
    conflicts: dict[int, Conflicts] = field(default_factory=dict)

    def part(self, kernels: tuple[Kernel, ...]) -> Part:
        part = Part(kernels, self.m.spare_scalars(kernels))
        functions = dict.fromkeys(function for kernel in kernels for function in self.m.functions(kernel))
        stretches = [stretch for function in functions for block in self.m.blocks(function)
                     for stretch in self.m.stretches(block) if self.pcs(stretch)]
        for function in functions:
            if _starts_once(function):
                self.add_regions(part, function, stretches)
        for stretch in stretches:
            self.add_turnouts(part, stretch)
        for stretch in stretches:
            self.add_conflicts(part, stretch)
        return part

    def pcs(self, of: Stretch | Region) -> list[int]:
        """Addresses of the sites there."""
        found: list[int] = []
        for stretch in of.stretches if isinstance(of, Region) else (of,):
            first = bisect_left(self.places, stretch.first.pc)
            found += self.places[first : bisect_right(self.places, stretch.last.pc)]
        return found

    def add_regions(self, part: Part, function: Function, stretches: Iterable[Stretch]) -> None:
        """As many as there are registers for, those with the most sites first."""
        steady = {pc for stretch in stretches if stretch.block.code is function.code
                  and self.m.facts.exec_as_at_start(stretch.first) for pc in self.pcs(stretch)}
        found = [(region, [pc for pc in self.pcs(region) if pc in steady]) for region in self.m.regions(function)]
        for region, pcs in sorted(found, key=lambda each: -len(each[1])):
            turnout = Turnout(region.stretches[0].first.pc, True)
            if pcs and part.keeps([turnout]):
                self.turnouts.update(dict.fromkeys(pcs, turnout))
                part.turnouts[turnout] = region

    def add_turnouts(self, part: Part, stretch: Stretch) -> None:
        """Of sites that are in no such region."""
        for pc in self.pcs(stretch):
            if pc not in self.turnouts:
                turnout = self.turnouts[pc] = Turnout(stretch.first.pc, False)
                part.turnouts[turnout] = stretch
                part.keeps([turnout])

    def add_conflicts(self, part: Part, stretch: Stretch) -> None:
        alike: dict[tuple[Reg, int, Shape], Conflicts] = {}
        for instr in stretch.instrs:
            site, reg = self.sites.get(instr.pc), None
            if site is not None:
                turnout, reg = self.turnouts[instr.pc], instr.inst["addr"].reg
                assert reg is not None
                pattern = self.pattern(site, reg) if turnout.steady else None
                same = reg, site.low, self.shapes[instr.pc]
                if pattern is not None and part.keeps([], [pattern]):
                    conflicts = Conflicts(turnout, pattern)
                else:
                    conflicts = alike.setdefault(same, Conflicts(turnout, instr.pc))
                    part.keeps([conflicts], [conflicts])
                self.conflicts[instr.pc] = conflicts
                part.conflicts.setdefault(conflicts, site)
            if alike:
                alike = {key: each for key, each in alike.items() if not instr.inst.writes.overlaps(RegSet.of(key[0]))}

    def pattern(self, site: Site, register: Reg) -> Pattern | None:
        known, start = self.m.facts.affine_before(site.instr, register), 0
        terms = {} if known is None else dict(known.terms)
        if known is None or Varying.ROW in terms:
            return None
        if any(multiple % 4 for multiple in terms.values()):
            if known.constant is None:
                return None
            start = (known.constant + site.low) & 3
        lane, x, y, z = (terms.get(what, 0) % (1 << 32) for what in (Varying.LANE, Varying.X, Varying.Y, Varying.Z))
        return Pattern(lane, x, y, z, start, self.shapes[site.instr.pc])


def _starts_once(function: Function) -> bool:
    """Whether it is a kernel's, and there is a place that a wave comes to when it starts, and never again."""
    again = (to for block in function.blocks if block.address not in function.entries for to in block.successors)
    return function.kernel and function.entries[-1] not in again
