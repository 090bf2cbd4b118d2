"""What a tool's worker keeps of a kernel's copy, to read and report the launches of it.

In: a copy. Out: what is read after each launch, and what reports need to know of its program. Invariant: nothing that
only the copy's making needed is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from luthier_py.base.records import dataclass
from luthier_py.rewrite.tool import Allocations, Channel, LaunchParameter, LaunchResult, LaunchVariable, Variable
from luthier_py.rewrite.tool.arguments.launch_variable import launch_bytes

if TYPE_CHECKING:
    from luthier_py.binary.loader import KernelRecord
    from luthier_py.host.worker.instrument.allocations import AccessibleCode
    from luthier_py.host.worker.instrument.patching import Copy
    from luthier_py.program.ir import Program


@dataclass(frozen=True, slots=True)
class CopyFacts:
    """What is stored of a kernel's copy."""

    variables: tuple[Variable, ...]
    wave_size: int
    notes: Callable[[], Any]
    program: Callable[[], Program]
    fixed: list[tuple[str, int]] | None
    """What is read after each launch, where launches size nothing."""
    has_code: bool = True
    record: KernelRecord | None = None
    """Where each launch is reported, with its arguments."""
    accessible: AccessibleCode | None = None
    """Where launches come with what they may access."""

    def read(self, launch: LaunchResult) -> list[tuple[str, int]]:
        """What is read after a launch, by name, and its bytes."""
        if self.fixed is not None:
            return self.fixed
        sized = self.compute_sizes(launch)
        return [(each.name, sized[each] if isinstance(each, LaunchVariable) else each.size_bytes)
                for each in _read_after_launches(self.variables)]

    def compute_sizes(self, launch: LaunchResult) -> dict[LaunchVariable, int]:
        """Bytes of what a launch sizes; Invalid where that is too much."""
        return launch_bytes(self.variables, launch.grid, launch.block, self.wave_size)


def _read_after_launches(variables: Sequence[Variable]) -> list[Variable]:
    return [variable for variable in variables if not isinstance(variable, (Allocations, Channel, LaunchParameter))]


def facts_of(copy: Copy, record: KernelRecord | None, accessible: AccessibleCode | None) -> CopyFacts:
    """What to keep of a copy. ``record``: of the kernel, if launches are reported with their arguments; ``accessible``:
    if they come with what they may access."""
    cloned = copy.made.cloned
    read = _read_after_launches(copy.variables)
    sized = any(isinstance(variable, LaunchVariable) for variable in read)
    fixed = None if sized else [(variable.name, variable.size_bytes) for variable in read]
    return CopyFacts(copy.variables, cloned.wave_size if cloned is not None else 0, copy.notes, copy.program, fixed,
                     cloned is not None, record, accessible)
