"""A tool with numbers in its copies: of its own, and of a source in C++."""

from __future__ import annotations

from typing import Any

from luthier_py import Hooks, LookupTable, Mutator, Option, Tool, Variable, hook, ptr, u32, u64
from luthier_py.intrinsics import atomic_add

HOOKS = Hooks.from_hip(r"""
#include <luthier/hooks.h>
using namespace luthier;
static const u64 weights[32] = {1, 10, 1ull << 40};
__device__ u64 weighed = 5;
LUTHIER_HOOK(one) void weigh(u32 number) { atomic_add(&weighed, weights[number]); }
""")


@hook(lanes="one")
def look_up(total: ptr[u64], table: ptr[u32], number: u32) -> None:
    atomic_add(total, u64(table[number]))


class LookingUp(Tool):
    """Adds what tables have, once for each wave."""

    per_launch = Option(True)
    total = Variable(u64)
    begun = Variable(u64, initial=[1, 1 << 40, 3])
    table = LookupTable(u32, [7, 11, 13] * 40)

    def instrument(self, m: Mutator) -> None:
        for kernel in m.kernels:
            m.at_entry(kernel, HOOKS.weigh, 2)
            m.at_entry(kernel, look_up, self.total, self.table, 100)
            m.at_entry(kernel, look_up, self.begun[1], self.table, 99)

    def report(self, launch: Any) -> Any:
        return {"weighed": launch[HOOKS.weighed], "total": launch[self.total], "begun": list(launch[self.begun])}
