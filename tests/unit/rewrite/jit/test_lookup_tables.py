"""Constants that hooks read from the instrumented copy: C++'s, and those that tools give; as in Python."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from observing import KERNEL, LANES, launch

from luthier_py.base.errors import CheckFailed, HookError, Invalid
from luthier_py.binary.loader import SegmentFlag, load
from luthier_py.isa import vgpr
from luthier_py.proof import prove
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import (
    Hooks,
    Lane,
    LookupTable,
    Mutator,
    Tool,
    Variable,
    WaveVariable,
    f32,
    f64,
    hook,
    i16,
    ptr,
    u8,
    u32,
    u64,
)

pytestmark = pytest.mark.usefixtures("clang")
TEXT = r"""
#include <luthier/hooks.h>
using namespace luthier;

__constant__ u32 shared[100] = {100, 200, 300};
static const u32 squares[64] = {0, 1, 4, 9, 16, 25, 36, 49, 64, 81, 100, 121, 144, 169, 196, 225};
constexpr double tenths[40] = {0.1, 0.2, 0.3, 0.4};
struct Pair { u8 low; u64 high; };
static const Pair pairs[20] = {{1, 1ull << 40}, {2, 2ull << 40}, {3, 3}};
static const u16 square[3][20] = {{1, 2, 3}, {40, 50}, {600}};
__device__ u32 calls;
__device__ u32 text_of(u32 x) { return "a text that has more characters than there are registers: sixty-four"[x % 64]; }

LUTHIER_HOOK() void of_lanes(u64 *out, lane<u32> x) {
    const f32 local[32] = {0.5f, 1.5f, 2.5f};
    if (is_first_lane()) atomic_add(&calls, 1);
    out[x] = shared[x] + squares[x] * 1000;
    out[x + 64] = u64(tenths[x % 40] * 10) + pairs[x % 20].low * 100 + pairs[x % 20].high;
    out[x + 128] = square[x / 20 % 3][x % 20] + u64(local[x % 32] * 2) * 1000;
    out[x + 192] = text_of(x);
}
LUTHIER_HOOK() u64 of_wave(u32 x) { return shared[x] + pairs[x].high; }
LUTHIER_DEVICE u32 cannot(u32 x) { return squares[x]; }
LUTHIER_HOOK() void none(u32 *out, lane<u32> x) { static const u32 few[4] = {1, 2, 3, 4}; out[x] = few[x & 3]; }
"""
MESSAGE = b"a text that has more characters than there are registers: sixty-four"


def padded(values: list[Any], length: int) -> list[Any]:
    return values + [0] * (length - len(values))


def test_constants_of_a_source() -> None:
    hooks, out = Hooks.from_hip(TEXT), Variable(u64, 4 * LANES, "out")

    class Reads(Tool):
        def instrument(self, m: Mutator) -> None:
            m.at_entry(m.kernels[0], hooks.of_lanes, out, vgpr(0))

    done = launch(Reads(), LANES)
    found = np.array(done[out], np.uint64).reshape(4, LANES)
    shared = padded([100, 200, 300], 100)
    squares = padded([x * x for x in range(16)], 64)
    tenths, low = padded([1, 2, 3, 4], 40), padded([1, 2, 3], 20)
    high = padded([1 << 40, 2 << 40, 3], 20)
    square = [padded([1, 2, 3], 20), padded([40, 50], 20), padded([600], 20)]
    local = padded([1, 3, 5], 32)
    for x in range(LANES):
        assert found[0][x] == shared[x] + squares[x] * 1000
        assert found[1][x] == tenths[x % 40] + low[x % 20] * 100 + high[x % 20]
        assert found[2][x] == square[x // 20 % 3][x % 20] + local[x % 32] * 1000
        assert found[3][x] == MESSAGE[x % 64]
    assert done[hooks.calls] == 1


def test_what_is_one_for_the_wave() -> None:
    """Such constants are loaded by scalar loads, and go into scalar registers."""
    hooks, out = Hooks.from_hip(TEXT), Variable(u64, 1, "out")

    class Reads(Tool):
        def instrument(self, m: Mutator) -> None:
            (kernel,) = m.kernels
            value = WaveVariable(u64, "value")
            m.at_entry(kernel, hooks.of_wave, 1, into=value)
            m.at_exit(kernel, stored, out, value)

    assert launch(Reads(), LANES)[out] == (200 + (2 << 40),)


@hook(lanes="one")
def stored(out: ptr[u64], value: u64) -> None:
    out[0] = value


@hook
def looked_up(out: ptr[f64], whole: ptr[i16], parts: ptr[f32], bytes: ptr[u8], x: Lane[u32]) -> None:
    out[x] = f64(whole[x]) + f64(parts[x]) + f64(bytes[x & 15]) * 1024


def test_tables_that_a_tool_gives() -> None:
    rng = np.random.default_rng(7)
    numbers, fractions = rng.integers(-(1 << 15), 1 << 15, (8, 8)), rng.random(LANES).astype(np.float32)
    out = Variable(f64, LANES, "out")

    class Looks(Tool):
        whole = LookupTable(i16, numbers)
        parts = LookupTable(f32, fractions)

        def instrument(self, m: Mutator) -> None:
            m.at_entry(m.kernels[0], looked_up, out, self.whole, self.parts, LookupTable(u8, range(16)), vgpr(0))

    assert Looks.variables == ()
    x = np.arange(LANES)
    wanted = numbers.ravel() + fractions.astype(np.float64) + (x & 15) * 1024.0
    assert np.array_equal(np.array(launch(Looks(), LANES)[out]), wanted)


@pytest.mark.parametrize("type, values, words", [
    (u8, [1, 256], "LookupTable\\(u8\\) cannot hold 256"), (i16, [1.5], "cannot hold 1.5"),
    (f32, [1e60], "cannot hold 1e\\+60"), (u32, [True], "cannot hold True"), (u32, [], "at least one element"),
    (f32, ["x"], "cannot hold 'x'"), (3, [1], "give one of"), (u32, 7, "values of a table"),
])
def test_tables_that_cannot_be_are_refused(type: Any, values: Any, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        LookupTable(type, values)


def test_a_table_is_passed_by_what_it_holds() -> None:
    class Wrong(Tool):
        table = LookupTable(u32, [1, 2])

        def instrument(self, m: Mutator) -> None:
            m.at_entry(m.kernels[0], stored, self.table, 3)

    with pytest.raises(HookError, match=r"out: ptr\[u64\] cannot take LookupTable\(Wrong.table: 2 u32\)"):
        launch(Wrong(), LANES)


def test_functions_that_python_calls_cannot_have_tables() -> None:
    hooks = Hooks.from_hip(TEXT)

    @hook
    def calls(out: ptr[u32]) -> None:
        out[0] = hooks.cannot(3)

    class Calls(Tool):
        def instrument(self, m: Mutator) -> None:
            m.at_entry(m.kernels[0], calls, Variable(u32, 1, "out"))

    with pytest.raises(HookError, match="cannot names variables or tables of its own source"):
        instrument(KERNEL, Calls())


def test_small_tables_need_no_parameter() -> None:
    assert [each.name for each in Hooks.from_hip(TEXT).none.signature.parameters] == ["out", "x"]


class Looks(Tool):
    """Reads one table."""

    table = LookupTable(u64, [3 << 40, 5])

    def instrument(self, m: Mutator) -> None:
        m.at_entry(m.kernels[0], copied, Variable(u64, 1, "out"), self.table)


@hook(lanes="one")
def copied(out: ptr[u64], table: ptr[u64]) -> None:
    out[0] = table[1]


def test_a_table_lies_where_nothing_writes_and_the_proof_knows_it() -> None:
    made = instrument(KERNEL, Looks())
    linked = load(made.data)
    symbol = linked.symbol("Looks.table")
    assert symbol is not None and symbol.size == 16
    (segment,) = (each for each in linked.segments if each.load and each.address <= symbol.address < each.end)
    assert segment.flags == SegmentFlag.READ
    at = segment.offset + symbol.address - segment.address
    assert made.data[at : at + 16] == (3 << 40).to_bytes(8, "little") + (5).to_bytes(8, "little")
    claim, original = made.patched.claim, KERNEL.read_bytes()
    prove(original, made.data, claim)
    damaged = bytearray(made.data)
    damaged[at] ^= 1
    with pytest.raises(CheckFailed, match="Looks.table has other bytes than the claim's"):
        prove(original, bytes(damaged), claim)
    with pytest.raises(CheckFailed, match="Looks.table"):
        prove(original, made.data, replace(claim, tables={}))


INITIAL = r"""
#include <luthier/hooks.h>
using namespace luthier;
__device__ u32 one = 3;
__device__ f64 half = 0.5;
__device__ u64 few[20] = {1, 1ull << 40};
__device__ i16 less[3] = {-1, -2, -3};
__device__ u16 zero[3];
LUTHIER_HOOK(one) void changes() { one += 10; half += 1; few[1] += few[0]; few[19] = 7; zero[1] = 5; less[2] -= 1; }
"""


@hook(lanes="one")
def counted(parts: ptr[u32], sum: ptr[f32]) -> None:
    parts[5] += parts[1]
    sum[0] += 1


class Begun(Tool):
    """Goes on from numbers."""

    parts = Variable(u32, initial=np.arange(6).reshape(2, 3) + 1)
    sum = Variable(f32, initial=2.5)
    nothing = Variable(u64, 3, initial=[0, 0, 0])

    def instrument(self, m: Mutator) -> None:
        m.at_entry(m.kernels[0], counted, self.parts, self.sum)


def test_variables_begin_as_what_they_are_given() -> None:
    hooks = Hooks.from_hip(INITIAL)

    class Changes(Begun):
        def instrument(self, m: Mutator) -> None:
            super().instrument(m)
            m.at_entry(m.kernels[0], hooks.changes)

    done = launch(Changes(), LANES)
    assert done[Changes.parts] == (1, 2, 3, 4, 5, 8) and done[Changes.sum] == 3.5 and done[Changes.nothing] == (0, 0, 0)
    assert (done[hooks.one], done[hooks.half], done[hooks.zero]) == (13, 1.5, (0, 5, 0))
    assert done[hooks.few] == (1, (1 << 40) + 1, *[0] * 17, 7) and done[hooks.less] == (-1, -2, -4)


@pytest.mark.parametrize("length, initial, words", [
    (2, [1, 2, 3], "its initial value has 3 numbers"), (None, "x", "cannot hold 'x'"), (None, -1, "cannot hold -1"),
    (3, 1, "has 1 numbers"), (None, [], "at least one element"),
])
def test_initial_values_that_do_not_fit_are_refused(length: Any, initial: Any, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        Variable(u32, length, "x", initial=initial)


def test_the_proof_knows_what_variables_begin_as() -> None:
    made, original = instrument(KERNEL, Begun()), KERNEL.read_bytes()
    claim, symbol = made.patched.claim, load(made.data).symbol("Begun.parts")
    assert claim.initial.keys() == {"Begun.parts", "Begun.sum"} and symbol is not None
    segment = load(made.data).elf.load_at(symbol.address)
    assert segment is not None and segment.flags == SegmentFlag.READ | SegmentFlag.WRITE
    prove(original, made.data, claim)
    damaged = bytearray(made.data)
    damaged[segment.offset + symbol.address - segment.address] ^= 4
    for data, other in ((bytes(damaged), claim), (made.data, replace(claim, initial={}))):
        with pytest.raises(CheckFailed, match="other bytes than the claim's|of which the claim says nothing"):
            prove(original, data, other)
