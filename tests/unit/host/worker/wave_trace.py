"""A record for each wave that begins, and one for each of its lanes, on their way out of a running program."""

from __future__ import annotations

import os
import time
from typing import Any

from luthier_py import Channel, Lane, Mutator, Option, Tool, Variable, channel, hook, ptr, u32, u64, vgpr
from luthier_py.intrinsics import atomic_add, lane_id, push


class Begun:
    wave: u64


class Item:
    item: u32


@hook
def begin(begun: channel[Begun], items: channel[Item], waves: ptr[u64], item: Lane[u32]) -> None:
    push(items, item)
    if lane_id() == 0:
        push(begun, atomic_add(waves, 1))


class WaveTrace(Tool):
    """Waves that begin."""

    per_launch = Option(True)
    slow = Option(0.0)
    fails = Option(False)
    begun = Channel(Begun, capacity=128)
    items = Channel(Item, capacity=128, full=os.environ.get("WAVE_TRACE_FULL", "wait"))
    waves = Variable(u64)

    def instrument(self, m: Mutator) -> None:
        for kernel in m.kernels:
            m.at_entry(kernel, begin, self.begun, self.items, self.waves, vgpr(0))

    def received(self, channel: Channel, launch: Any, records: Any) -> None:
        time.sleep(self.slow)
        if self.fails:
            raise ValueError("enough")
        counts = vars(self).setdefault("counts", {})
        key = launch.index, launch.kernel, channel.attribute
        if channel is WaveTrace.begun:  # the numbers of a launch's waves, each once
            counts.setdefault(key, []).extend(records["wave"].tolist())
        else:
            counts[key] = counts.get(key, 0) + len(records)

    def report(self, launch: Any) -> Any:
        counts = vars(self).get("counts", {})
        begun = counts.get((launch.index, launch.kernel, "begun"), [])
        return {"waves": launch[self.waves], "begun": len(begun), "whole": sorted(begun) == list(range(len(begun))),
                "items": counts.get((launch.index, launch.kernel, "items"), 0)}
