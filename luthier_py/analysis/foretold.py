"""How often pieces of a kernel run in one launch, and with how many lanes, before it runs.

In: what is foreseen of the kernel, and a launch. Out: :class:`Foretold`. Invariant: it is what all waves of the launch
execute, whatever memory contains.

One walk along the code stands for a box of waves: numbers are sums of multiples of their ids. Where a branch or EXEC
is not the same for all waves of the box, it is cut in two along an axis that decides that, and both are walked. So
there is a walk for each class of work-groups that ids tell apart, and few cuts find the work-group at the edge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass

from luthier_py.analysis.born import Birth, Box, GivenLaunch, Varies
from luthier_py.analysis.foreseen import Foreseen
from luthier_py.analysis.volumes import volume
from luthier_py.analysis.walks import Course, TooLong, Turns, Walk
from luthier_py.errors import Unsupported
from luthier_py.isa.semantics.readers.sums import Axis

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
    stops: int
    """Straight-line pieces that were walked to find this out."""
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
    name = foreseen.record.name
    while todo:
        box = todo.pop()
        birth = Birth(foreseen.target, foreseen.record, foreseen.lanes, given, box)
        course = Course(foreseen, birth, stops, MOST_STOPS)
        try:
            walk = Walk(course, box.axes, birth.registers())
            walk.go()
        except Varies as varies:
            axis = max(varies.axes & box.axes.keys(), key=lambda each: box.sides[each], default=None)
            if axis is None or box.sides[axis] == 1:
                raise Unsupported(f"kernel {name}: what decides its way has no number") from None
            todo += box.halve(axis)
        except TooLong:
            raise Unsupported(f"kernel {name}: this launch is too long to be foreseen") from None
        else:
            walks += 1
            _add(executions, walk.tally.executions, box, foreseen.pcs)
            _add(lanes, walk.tally.lanes, box, foreseen.masks)
        stops = course.stops
        read.update(birth.read)
    waves = per_group * given.grid[0] * given.grid[1] * given.grid[2]
    return Foretold(executions, lanes, waves, walks, stops, read)


def _add(total: Counter[int], found: Mapping[Turns, Counter[int]], box: Box, known: Set[int]) -> None:
    for turns, counts in found.items():
        times = volume({**box.axes, **dict(turns)})
        total.update({pc: count * times for pc, count in counts.items() if pc in known})
