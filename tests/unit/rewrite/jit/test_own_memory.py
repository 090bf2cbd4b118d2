"""Arrays and tables that are a hook's own: in registers or on a stack, proved, executed by the emulator."""

from __future__ import annotations

import pytest
from each_target import EACH_TARGET
from observing import LANES, launch, observe

from luthier_py.intrinsics import read_first_lane
from luthier_py.isa import Target, instruction_set, sgpr, target, vgpr
from luthier_py.isa.properties.vector_modes import moves_relative
from luthier_py.rewrite.jit import PayloadKey, compile_keys
from luthier_py.rewrite.tool import (
    Hooks,
    Lane,
    Mutator,
    Tool,
    Variable,
    WaveVariable,
    array,
    f32,
    f64,
    hook,
    ptr,
    u32,
    u64,
)

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


@pytest.mark.parametrize("row", EACH_TARGET)
def test_elements_that_one_number_names_for_all_lanes(row: Target) -> None:
    """LLVM would find them by the number of a register, which is another one when the hook has been put in place."""
    (made,) = compile_keys({PayloadKey(counted_together, (None, None)): None},
                           instruction_set(row, row.wave_sizes[0])).values()
    assert not any(map(moves_relative, made.instrs)) and made.frame_bytes >= 48


def test_such_elements_are_found() -> None:
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


RESULTS = r"""
#include <luthier/hooks.h>
using namespace luthier;
struct Results { u32 a; u64 b; lane<u64> each; f32 c; lane<u32> more; f64 d; };
LUTHIER_HOOK() Results results(lane<u32> x, u32 n) {
    u64 seen[32];
    for (u32 k = 0; k < 32; ++k) seen[k] = u64(x) * k + n;
    u64 mine = seen[x * n & 31];
    return {read_lane(u32(mine), 5), read_lane(mine, 6) << 33, mine << 8, f32(u32(mine)) / 2, u32(mine) + 1,
            f64(read_lane(u32(mine), 8)) / 4};
}
"""


@hook(lanes="one")
def of_wave(out: ptr[u64], a: u32, b: u64, c: f32, d: f64) -> None:
    out[0] = u64(a)
    out[1] = b
    out[2] = u64(c * 2)
    out[3] = u64(d * 4)


@hook
def of_lanes(out: ptr[u64], x: Lane[u32], each: Lane[u64], more: Lane[u32]) -> None:
    out[x] = each
    out[x + 64] = u64(more)


@pytest.mark.parametrize("lanes", [64, 40])
def test_results_for_the_wave_of_a_hook_with_a_stack(lanes: int) -> None:
    """Together with those of lanes; what differs between lanes is that of the first."""
    hooks, wave, each = Hooks.from_hip(RESULTS), Variable(u64, 4, "wave"), Variable(u64, 128, "each")
    a, b, c = WaveVariable(u32, "a"), WaveVariable(u64, "b"), WaveVariable(f32, "c")

    class Results(Tool):
        def instrument(self, m: Mutator) -> None:
            (kernel,) = m.kernels
            m.at_entry(kernel, hooks.results, vgpr(0), 3, into=(a, b, vgpr(40, 2), c, vgpr(42), sgpr(90, 2)))
            m.at_entry(kernel, of_wave, wave, a, b, c, sgpr(90, 2))
            m.at_entry(kernel, of_lanes, each, vgpr(0), vgpr(40, 2), vgpr(42))

    done = launch(Results(), lanes)
    mine = [x * (3 * x & 31) + 3 for x in range(64)]
    assert done[wave] == (mine[5], mine[6] << 33, mine[0], mine[8])
    assert done[each] == tuple(n << 8 if x < lanes else 0 for x, n in enumerate(mine)) + tuple(
        n + 1 if x < lanes else 0 for x, n in enumerate(mine))


@hook
def two_large(out: ptr[u32], x: Lane[u32]) -> None:
    a, b = x, x * 3
    first = array(u64, 4096)
    second = array(u64, 4096)
    first[a * 60 + 5] = 7
    second[b + 1] = 9
    out[x] = u32(first[read_first_lane(x) + 65] + second[x + 1] * 16)


def test_large_arrays_are_zeroed_by_loops() -> None:
    """A store of each element takes LLVM minutes."""
    (made,) = compile_keys({PayloadKey(two_large, (None, None)): None}, instruction_set(target("gfx90a"))).values()
    assert len(made.instrs) < 200 and made.frame_bytes >= 1 << 16
    found = observe([two_large], LANES, LANES)
    assert found == tuple(7 * (x == 1) + 144 * (x == 0) for x in range(LANES))
