"""Waves that begin, weighed by what the host has set before their launch."""

from __future__ import annotations

from typing import Any

from luthier_py import LAUNCH_NUMBER, LaunchParameter, Mutator, Option, Tool, Variable, hook, ptr, u32, u64
from luthier_py.intrinsics import atomic_add


@hook(lanes="one")
def weigh(total: ptr[u64], numbers: ptr[u64], weight: u64, number: u32) -> None:
    atomic_add(total, weight)
    atomic_add(numbers, u64(number))


class Weighed(Tool):
    """Waves times a weight, and times the launch's number."""

    per_launch = Option(True)
    weight = LaunchParameter(u64, 1 << 40)
    total = Variable(u64)
    numbers = Variable(u64)

    def instrument(self, m: Mutator) -> None:
        for kernel in m.kernels:
            m.at_entry(kernel, weigh, self.total, self.numbers, self.weight, LAUNCH_NUMBER)

    def launching(self, launch: Any) -> None:
        if launch.index:
            self.weight = 3 * launch.index + (launch.index << 33)
