"""How often pieces of a kernel run in one launch, and with how many lanes, before it runs.

In: what is launch-invariant of the kernel, and a launch. Out: :class:`StaticCounts`. Invariant: it is what all waves of
the launch execute, whatever memory contains.

One walk along the code stands for a domain of waves: numbers are sums of multiples of their ids. Where a branch or EXEC
is not the same for all waves of the domain, it is cut in two along an axis that decides that, and both are walked. So
there is a walk for each class of work-groups that ids distinguish, and few cuts find the work-group at the edge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from typing import TYPE_CHECKING

from luthier_py.base.errors import Unsupported
from luthier_py.base.records import dataclass
from luthier_py.isa.semantics.readers.sums import Axis
from luthier_py.program.analysis.initial_values import GivenLaunch, InitialState, IterationDomain, Varies
from luthier_py.program.analysis.point_counts import count_points
from luthier_py.program.analysis.symbolic_execution import ExecutionLimits, TooLong, Turns, Walk

if TYPE_CHECKING:
    from luthier_py.program.analysis.launch_invariant import LaunchInvariants

MOST_STOPS = 1 << 18
"""Straight-line pieces that are walked for one launch at most."""


@dataclass(frozen=True, slots=True)
class StaticCounts:
    """Sums over all waves of a launch."""

    executions: Mapping[int, int]
    """Of straight-line pieces, by where they begin."""
    lanes: Mapping[int, int]
    """Active lanes, summed over executions, of ranges with one EXEC, by where they begin."""
    waves: int
    walks: int
    """Classes of waves that were distinguished."""
    stops: int
    """Straight-line pieces that were walked to find this out."""
    read: Mapping[tuple[Axis, int], int]
    """The dwords of the launch's arguments and shape that it follows from."""

    def holds_for(self, given: GivenLaunch) -> bool:
        """Whether the counts hold for another launch of as many work-groups of the same size."""
        return all(given.dword(axis, at) == number for (axis, at), number in self.read.items())


def count_statically(launch_invariants: LaunchInvariants, given: GivenLaunch) -> StaticCounts:
    """Unsupported where that would take too long."""
    per_group = -(-given.items // launch_invariants.lanes)
    todo = [IterationDomain((0, 0, 0, 0), (per_group, *given.grid))]
    executions, lanes, read, walks, stops = Counter[int](), Counter[int](), dict[tuple[Axis, int], int](), 0, 0
    name = launch_invariants.record.name
    while todo:
        domain = todo.pop()
        initial_state = InitialState(launch_invariants.target, launch_invariants.record, launch_invariants.lanes, given,
                                     domain)
        limits = ExecutionLimits(launch_invariants, initial_state, stops, MOST_STOPS)
        try:
            walk = Walk(limits, domain.axes, initial_state.registers())
            walk.go()
        except Varies as varies:
            axis = max(varies.axes & domain.axes.keys(), key=lambda each: domain.sides[each], default=None)
            if axis is None or domain.sides[axis] == 1:
                raise Unsupported(f"kernel {name}: what decides its way has no number") from None
            todo += domain.halve(axis)
        except TooLong:
            raise Unsupported(f"kernel {name}: this launch is too long to be foreseen") from None
        else:
            walks += 1
            _add(executions, walk.tally.executions, domain, launch_invariants.pcs)
            _add(lanes, walk.tally.lanes, domain, launch_invariants.masks)
        stops = limits.stops
        read.update(initial_state.read)
    waves = per_group * given.grid[0] * given.grid[1] * given.grid[2]
    return StaticCounts(executions, lanes, waves, walks, stops, read)


def _add(total: Counter[int], found: Mapping[Turns, Counter[int]], domain: IterationDomain, known: Set[int]) -> None:
    for turns, counts in found.items():
        times = count_points({**domain.axes, **dict(turns)})
        total.update({pc: count * times for pc, count in counts.items() if pc in known})
