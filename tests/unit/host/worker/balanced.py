"""How many instructions each wave has executed, and who was there: by wave, work-group and work-item of a launch."""

from __future__ import annotations

from typing import Any

import numpy as np

from luthier_py import (
    Lane,
    LaunchVariable,
    Mutator,
    Option,
    Tool,
    Variable,
    WaveVariable,
    hook,
    ptr,
    u32,
    u64,
    wave_in_launch,
    workgroup_in_launch,
    workitem_in_launch,
)
from luthier_py.intrinsics import atomic_add


@hook
def add(count: u64, n: u32) -> u64:
    return count + n


@hook
def come(own: Lane[ptr[u32]], number: Lane[u32]) -> None:
    own[0] += number + 1


@hook(lanes="one")
def leave(waves: ptr[u64], groups: ptr[u64], own: ptr[u64], wave: u32, group: u32, count: u64, total: ptr[u64]) -> None:
    waves[wave] += count
    atomic_add(own, count)
    atomic_add(groups + 2 * group + 1, u64(1))
    atomic_add(total, count)


class Balanced(Tool):
    """Instructions of each wave, and of each work-group with its waves; one for each work-item that was there."""

    per_launch = Option(True)
    whole = Option(True)  # the report has all that was counted; else what of it is wrong
    waves = LaunchVariable(u64, "wave")
    groups = LaunchVariable(u64, "workgroup", 2)
    items = LaunchVariable(u32, "workitem")
    total = Variable(u64)
    count = WaveVariable(u64)

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            for block in m.blocks(function):
                m.at_block(block, add, self.count, len(block.instrs), into=self.count, anywhere=True)
        for kernel in m.kernels:
            m.at_entry(kernel, come, self.items.own, workitem_in_launch())
            m.at_exit(kernel, leave, self.waves, self.groups, self.groups.own, wave_in_launch(), workgroup_in_launch(),
                      self.count, self.total)

    def report(self, launch: Any) -> Any:
        found = super().report(launch)
        return found if self.whole else {"wrong": wrong(launch), "total": found["total"], "waves": found["waves"]}


def wrong(launch: Any) -> list[str]:
    """What does not agree, of a launch of whole work-groups."""
    tool, (waves, groups, items) = Balanced, (launch[v] for v in (Balanced.waves, Balanced.groups, Balanced.items))
    size = int(np.prod(launch.block))
    by_group = waves.reshape(launch.workgroups, -(-size // 64))
    times = launch.launches
    waves_there = np.full(len(groups), by_group.shape[1] * times)
    facts = {
        "sum of waves": waves.sum() == launch[tool.total],
        "groups": np.array_equal(groups, np.column_stack([by_group.sum(1), waves_there])),
        "items": np.array_equal(items, times * np.arange(1, len(items) + 1, dtype=np.uint32)),
        "number of items": len(items) == launch.workgroups * size,
        "every wave": bool(waves.all()),
    }  # fmt: skip
    return [name for name, holds in facts.items() if not holds]
