"""Half a GiB for each work-group: launches of four have room for it."""

from __future__ import annotations

from typing import Any

from luthier_py import LaunchVariable, Mutator, Tool, hook, ptr, u64


@hook(lanes="one")
def touch(own: ptr[u64]) -> None:
    own[0] = 1


class Oversized(Tool):
    """Work-groups."""

    each = LaunchVariable(u64, "workgroup", 1 << 26)

    def instrument(self, m: Mutator) -> None:
        m.at_entry(m.kernels[0], touch, self.each.own)

    def report(self, launch: Any) -> Any:
        return {"groups": len(launch[self.each]), "touched": int(launch[self.each].sum())}
