"""Arrays and tables that are a hook's own: in registers or on a stack, proved, executed by the emulator."""

from __future__ import annotations

import pytest
from observing import LANES, launch, observe

from luthier_py.intrinsics import read_first_lane
from luthier_py.isa import instruction_set, target, targets, vgpr
from luthier_py.isa.vector_modes import moves_relative
from luthier_py.jit import PayloadKey, compile_keys
from luthier_py.tool import Hooks, Lane, Mutator, Tool, Variable, array, hook, ptr, u32

pytestmark = pytest.mark.usefixtures("clang")


OWN_MEMORY = r"""
#include <luthier/hooks.h>
using namespace luthier;
static const u32 table[8] = {3, 4, 5, 9, 11, 12, 13, 14};
__constant__ f32 weights[4] = {.5f, 1.5f, 2.5f, 8};
static constexpr u8 bytes[5] = {9, 8, 7, 6, 5};
LUTHIER_DEVICE u32 third() { return table[2]; }
LUTHIER_HOOK() void tables(u32 *out, lane<u32> x) {
    const u64 own[3] = {1ul << 40, 2, 3};
    out[x] = table[x & 7] + u32(weights[x & 3] * 2) * 100 + bytes[x % 5] * 10000 + third() * 1000000;
    out[x + 64] = u32(own[x % 3] >> 40) + u32(own[(x + 1) % 3]);
}
LUTHIER_HOOK() void arrays(u32 *out, lane<u32> x) {
    u32 counts[8] = {};
    f64 halves[4];
    for (u32 i = 0; i < 12; ++i) counts[(x >> (i & 3)) & 7] += i;
    for (u32 i = 0; i < 4; ++i) halves[i] = i * .5;
    out[x] = counts[x & 7];
    out[x + 64] = u32(halves[x & 3] * 2);
}
"""


def test_tables_and_arrays_in_registers() -> None:
    hooks = Hooks.from_hip(OWN_MEMORY)
    found, counted = observe([hooks.tables], LANES, 2 * LANES), observe([hooks.arrays], LANES, 2 * LANES)
    table, weights, own = (3, 4, 5, 9, 11, 12, 13, 14), (1, 3, 5, 16), (1 << 40, 2, 3)
    for x in range(LANES):
        assert found[x] == table[x & 7] + weights[x & 3] * 100 + (9 - x % 5) * 10000 + 5 * 1000000
        assert found[x + 64] == (own[x % 3] >> 40) + own[(x + 1) % 3] % 2**32
        assert counted[x] == sum(i for i in range(12) if x >> (i & 3) & 7 == x & 7) and counted[x + 64] == x & 3


@hook
def counted_together(out: ptr[u32], x: Lane[u32]) -> None:
    counts = array(u32, 12)
    for k in range(read_first_lane(x) + 30):
        counts[read_first_lane(x) + k * k % 12] += x + k
    out[x] = counts[read_first_lane(x) + 4]


def test_elements_that_one_number_names_for_all_lanes() -> None:
    """LLVM would find them by the number of a register, which is another one when the hook has been put in place."""
    for row in targets():
        key = PayloadKey(counted_together, (None, None))
        (made,) = compile_keys({key: None}, instruction_set(target(row.name), row.wave_sizes[0])).values()
        assert not any(map(moves_relative, made.instrs)) and made.frame_bytes >= 48

    class Observer(Tool):
        out = Variable(u32, LANES)

        def instrument(self, m: Mutator) -> None:
            m.at_entry(m.kernels[0], counted_together, self.out, vgpr(0))

    want = tuple(sum(x + k for k in range(30) if k * k % 12 == 4) for x in range(LANES))
    assert launch(Observer(), LANES)[Observer.out] == want


@pytest.mark.parametrize("name", ["tables", "arrays"])
def test_what_comes_of_it_is_proved(name: str) -> None:
    one, out = Hooks.from_hip(OWN_MEMORY)[name], Variable(u32, 5 * LANES, name="observed")

    class Observer(Tool):
        def instrument(self, m: Mutator) -> None:
            m.at_entry(m.kernels[0], one, out, vgpr(0))

    assert launch(Observer(), LANES)[out] == observe([one], LANES, 5 * LANES)
