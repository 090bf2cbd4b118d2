"""A tool with structures in its copies: of its own, and one of C++ where that is asked for."""

from __future__ import annotations

from typing import Any

from luthier_py import Hooks, LookupTable, Mutator, Option, Tool, Variable, hook, ptr, u8, u32, u64
from luthier_py.intrinsics import atomic_add

HOOKS = Hooks.from_hip(r"""
#include <luthier/hooks.h>
using namespace luthier;
struct Weight { u8 kind; u32 number; };
struct Seen { u64 sum; Weight last; };
__device__ Seen native[2] = {{1, {2, 3}}};
LUTHIER_HOOK(one) void weigh(u32 number) { atomic_add(&native[1].sum, number); native[0].last.number = number; }
""")


class Weight:
    kind: u8
    number: u32


class Seen:
    sum: u64
    last: Weight


@hook(lanes="one")
def note(seen: ptr[Seen], weights: ptr[Weight], number: u32) -> None:
    atomic_add(ptr[u64](seen), u64(weights[number].number))
    seen[0].last = weights[number]


class Structured(Tool):
    """Adds what a table has, once for each wave."""

    native = Option(False)
    per_launch = True
    seen = Variable(Seen, initial=[(0, (0, 0)), (1 << 40, (3, 4)), (5, (6, 7))])
    one = Variable(Seen, initial=(8, (9, 10)))
    weights = LookupTable(Weight, [(1, 10), (2, 70000)])

    def instrument(self, m: Mutator) -> None:
        for kernel in m.kernels:
            m.at_entry(kernel, note, self.seen[1], self.weights, 1)
            m.at_entry(kernel, note, self.one, self.weights, 0)
            if self.native:
                m.at_entry(kernel, HOOKS.weigh, 7)

    def report(self, launch: Any) -> Any:
        own = {"seen": launch[self.seen], "one": launch[self.one]}
        return {**own, "native": launch[HOOKS.native]} if self.native else own
