"""How often pieces of a kernel run in one launch, and with how many lanes, before it runs.

In: what is foreseen of the kernel, and a launch. Out: :class:`Foretold`. Invariant: it is what all waves of the launch
execute, whatever memory contains.

One walk along the code stands for a box of waves: numbers are sums of multiples of their ids. Where a branch or EXEC
is not the same for all waves of the box, it is cut in two along an axis that decides that, and both are walked. So
there is a walk for each class of work-groups that ids tell apart, and few cuts find the work-group at the edge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from luthier_py.analysis.born import Birth, Box, GivenLaunch, Varies
from luthier_py.analysis.foreseen import Deciding, Foreseen, given_results
from luthier_py.analysis.meets import EXIT
from luthier_py.errors import Unsupported
from luthier_py.isa import EXEC, RegFile
from luthier_py.isa.semantics.readers.evaluate import Dword
from luthier_py.isa.semantics.readers.foresee import Foresight
from luthier_py.isa.semantics.readers.sums import ADDRESSES, Axis, InBox, Sum, Sums, axes_of

MOST_STOPS = 1 << 18
"""Straight-line pieces that are walked for one launch at most."""


@dataclass(frozen=True, slots=True)
class Foretold:
    """Sums over all waves of a launch."""

    executions: Mapping[int, int]
    """Of straight-line pieces, by where they begin."""
    lanes: Mapping[int, int]
    """Active lanes, summed over executions, of stretches, by where they begin."""
    waves: int
    walks: int
    """Classes of waves that were told apart."""
    read: Mapping[tuple[Axis, int], int]
    """The dwords of the launch's arguments and shape that it follows from."""

    def holds_for(self, given: GivenLaunch) -> bool:
        """For another launch of as many work-groups of the same size."""
        return all(given.dword(axis, at) == number for (axis, at), number in self.read.items())


def foretell(foreseen: Foreseen, given: GivenLaunch) -> Foretold:
    """Unsupported where that would take too long."""
    per_group = -(-given.items // foreseen.lanes)
    todo = [Box((0, 0, 0, 0), (per_group, *given.grid))]
    executions, lanes, read, walks, stops = Counter[int](), Counter[int](), dict[tuple[Axis, int], int](), 0, 0
    while todo:
        box = todo.pop()
        walk = _BoxWalk(foreseen, given, box, MOST_STOPS - stops)
        try:
            walk.go()
        except Varies as varies:
            axis = max(varies.axes - ADDRESSES, key=lambda each: box.sides[each], default=None)
            if axis is None or box.sides[axis] == 1:
                raise Unsupported(f"kernel {foreseen.record.name}: what decides its way has no number") from None
            todo += box.halved(axis)
        else:
            walks += 1
            for total, found in ((executions, walk.executions), (lanes, walk.lanes)):
                total.update({pc: count * box.waves for pc, count in found.items()})
        stops += walk.stops
        read.update(walk.read)
    return Foretold(executions, lanes, per_group * given.grid[0] * given.grid[1] * given.grid[2], walks, read)


class _BoxWalk:
    """Mutable: how far one box of waves has come."""

    def __init__(self, foreseen: Foreseen, given: GivenLaunch, box: Box, most: int) -> None:
        self._foreseen, self._given, self._box, self._most = foreseen, given, box, most
        self._birth = Birth(foreseen.target, foreseen.record, foreseen.lanes, given, box)
        self._foresight = Foresight(Sums({axis: box.sides[axis] for axis in Axis if axis < len(box.sides)},
                                         foreseen.lanes))
        self._values: dict[Dword, InBox] = {}
        self.executions, self.lanes, self.stops = Counter[int](), Counter[int](), 0
        self.read = self._birth.read

    def go(self) -> None:
        """To the end; raises Varies."""
        self._values, at = self._birth.registers(), self._foreseen.first
        while at != EXIT:
            at = self._pass(at)

    def _pass(self, at: int) -> int:
        stop = self._foreseen.stops[at]
        self.stops += 1
        if self.stops > self._most:
            raise Unsupported(f"kernel {self._foreseen.record.name}: this launch is too long to be foreseen")
        self.executions[stop.pc] += 1
        for part in stop.parts:
            if part.known:
                self.lanes[part.pc] += self._active().bit_count()
            for step in part.steps:
                self._do(step)
        way = 0
        if stop.branch is not None:
            way = 0 if self._number(self._foresight.decision(stop.branch, self._read)) else len(stop.ways) - 1
        return stop.ways[way]

    def _do(self, step: Deciding) -> None:
        found = given_results(step.inst, self._read, self._foresight, self._birth)
        new: dict[Dword, InBox] = {}
        for place in step.results:
            known = found.get(place)
            if place[0] is not RegFile.SGPR and place not in step.whole:
                known = self._foresight.merged(known, self._values.get(place), self._read)
            new[place] = known
        self._values.update(new)
        for half in range(self._foreseen.lanes // 32):
            if (RegFile.SGPR, EXEC + half) in new:
                self._number(new[RegFile.SGPR, EXEC + half])

    def _read(self, file: RegFile, index: int) -> InBox:
        return self._values.get((file, index))

    def _active(self) -> int:
        return self._number(self._foresight.mask(EXEC, self._read))

    def _number(self, known: InBox) -> int:
        """The same for all waves of the box; raises Varies where it is not."""
        if isinstance(known, Sum) and not known.terms and isinstance(known.base, int):
            return known.base
        raise Varies(frozenset() if known is None else axes_of(known))
