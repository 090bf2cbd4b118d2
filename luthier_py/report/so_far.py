"""What a tool has counted so far: of each kernel one report, however many launches there were.

In: launches with their reports, in order. Out: texts, and what the tool says of all together. Invariant: memory grows
with kernels and not with launches; of a tool that makes no report of several launches it is the last one's, and said
to be.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from luthier_py.base.records import dataclass, replace

if TYPE_CHECKING:
    from luthier_py.rewrite.tool import LaunchResult, Tool


@dataclass(slots=True)
class KernelSoFar:
    """Mutable: a kernel of one code object. ``last``: its last launch, as many as there were. ``whole``: the report is
    of all of them."""

    last: LaunchResult
    report: Any
    whole: bool = True


class SoFar:
    """Mutable: grows with a run."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool
        self.kernels: dict[tuple[str, int], KernelSoFar] = {}  # code objects may have kernels of one name

    def add(self, launch: LaunchResult, report: Any) -> None:
        """Take up a launch with its report: combined with those before it, or in their place where the tool combines
        none."""
        known = self.kernels.setdefault((launch.kernel, id(launch.notes)), KernelSoFar(launch, report))
        if known.last is launch:
            return
        combined = self.tool.combined([known.report, report]) if known.whole else None
        known.whole = combined is not None
        known.report = combined if known.whole else report
        known.last = replace(launch, launches=known.last.launches + launch.launches)

    @property
    def launches(self) -> int:
        """How many launches of all kernels there were."""
        return sum(each.last.launches for each in self.kernels.values())

    def texts(self) -> Iterator[str]:
        """Texts of each kernel, and what the tool says of all."""
        for known in self.kernels.values():
            if text := self.tool.text(known.last if known.whole else replace(known.last, launches=1), known.report):
                others = known.last.launches - 1
                yield text if known.whole else f"{text}\n  the last of them; {others} before it"
        if ending := self.describe_end():
            yield ending

    def describe_end(self) -> str:
        """What the tool says of all launches together; empty for a tool that says nothing at the end."""
        reports = [known.report for known in self.kernels.values()]
        return self.tool.ending(reports) if self.tool.tells_end else ""
