"""Hooks in HIP C++: compiled by clang, inlined and proved, executed by the emulator; against Python and NumPy."""

from __future__ import annotations

import os
import re
import struct
import textwrap
from pathlib import Path

import pytest
from each_target import EACH_TARGET
from executables import executable
from observing import LANES, launch, observe

from luthier_py import intrinsics
from luthier_py.base.errors import HookError, LuthierError, Unsupported
from luthier_py.isa import Target, instruction_set, target, vgpr
from luthier_py.rewrite.clang.search import CLANG
from luthier_py.rewrite.jit import PayloadKey, compile_keys
from luthier_py.rewrite.tool import (
    Hook,
    Hooks,
    Lane,
    Mutator,
    Tool,
    Variable,
    WaveVariable,
    computed,
    device,
    f32,
    hook,
    ptr,
    u32,
    u64,
)
from luthier_py.rewrite.tool.cpp.hip import INCLUDE

TEXT = r"""
#include <luthier/hooks.h>
using namespace luthier;

__device__ u64 seen[64];
__device__ u32 waves;
__device__ f64 never;

LUTHIER_HOOK() void count(lane<u32> x, u32 weight) {
    atomic_add(&seen[x % 64], x * weight);
    if (is_first_lane()) atomic_add(&waves, 1);
    seen[3] += 1000;
}

struct Parts { u32 low; u64 high; f32 half; };
LUTHIER_HOOK() Parts parts(u64 x, u32 y) { return {u32(x) + y, x >> 32, float(y) / 2}; }

struct Pair { lane<u32> each; u32 all; };
LUTHIER_HOOK() Pair pair(lane<u32> x) { return {x * x, popcount(active_mask())}; }

LUTHIER_HOOK(one, fold) void add(u64 *total, u64 n, bool twice) { atomic_add(total, twice ? 2 * n : n); }

template <class T> LUTHIER_HOOK() lane<T> larger(lane<T> a, T b) { return a < b ? b : T(a); }
namespace inner { LUTHIER_HOOK(all) void nothing() {} }

LUTHIER_DEVICE lane<u32> twice(lane<u32> x) { return x * 2; }
LUTHIER_DEVICE u32 square(u32 x) { return x * x; }
LUTHIER_DEVICE f32 halved(f32 x) { return x / 2; }
LUTHIER_DEVICE bool odd(lane<u32> x) { return x & 1; }
LUTHIER_DEVICE u32 *second(u32 *p) { return p + 1; }
LUTHIER_DEVICE Parts taken(u64 x) { return {u32(x), x >> 32, 0}; }

LUTHIER_HOOK() void lanes(u32 *out, lane<u32> x) {
    u64 third = ballot(x % 3 == 1);
    out[x] = lane_id();
    out[x + 64] = mbcnt(third);
    out[x + 128] = is_first_lane() + 2 * any(x == 20) + 4 * all(x < 39) + 8 * any(x > 99);
    out[x + 192] = read_lane(x, 5) * 3 + read_first_lane(x + 7) * 1000;
    out[x + 256] = count_trailing_zeros(third) + wave_size();
}

LUTHIER_HOOK() void atomics(u32 *out, lane<u32> x) {
    atomic_sub(out, x);
    atomic_max(out + 1, x * 5);
    atomic_exchange(out + 2, 77);
    if (x == 9) atomic_cas(out + 2, 77, 78);
    atomic_or((u64 *)(out + 4), u64(1) << x);
}

LUTHIER_HOOK() void looping(u32 *out, lane<u32> x) {
    u32 steps = 0;
    for (u32 n = x + 1; n != 1; n = n % 2 ? 3 * n + 1 : n / 2) ++steps;
    out[x] = steps;
}
"""


pytestmark = pytest.mark.usefixtures("clang")


@pytest.fixture
def hooks() -> Hooks:
    return Hooks.from_hip(TEXT)


def described(one: Hook) -> str:
    taken = ", ".join(map(str, one.signature.parameters))
    return f"{one.lanes.value} ({taken}) -> {', '.join(map(str, one.signature.results))}"


def test_types_are_those_of_the_source(hooks: Hooks) -> None:
    assert described(hooks.count) == "active (x: Lane[u32], weight: u32, seen: ptr[u64], waves: ptr[u32]) -> "
    assert described(hooks.parts) == "active (x: u64, y: u32) -> low: u32, high: u64, half: f32"
    assert described(hooks.pair) == "active (x: Lane[u32]) -> each: Lane[u32], all: u32"
    assert described(hooks.add) == "one (total: ptr[u64], n: u64, twice: bool_) -> "
    assert hooks.add.folded == {0, 1, 2} and hooks.parts.folded is None
    assert described(hooks["larger<f32>"]) == "active (a: Lane[f32], b: f32) -> : Lane[f32]"
    assert described(hooks["inner::nothing"]) == "all () -> "
    assert hooks.count is hooks["count"] and hooks.count.captured == (hooks.seen, hooks.waves)
    assert (hooks.seen.type, hooks.seen.length, hooks.never.size_bytes) == (u64, 64, 8)
    assert {"count", "twice", "seen"} <= set(dir(hooks)) and "never" in dir(hooks)
    assert f"{Path(__file__).name}:" in hooks.count.place


@pytest.mark.parametrize("lanes", [64, 40])
def test_variables_of_the_source_are_tool_variables(hooks: Hooks, lanes: int) -> None:
    class Counts(Tool):
        def instrument(self, m: Mutator) -> None:
            m.at_entry(m.kernels[0], hooks.count, vgpr(0), 3)

    done = launch(Counts(), lanes)
    want = [3 * x if x < lanes else 0 for x in range(64)]
    want[3] += 1000
    assert done[hooks.seen] == tuple(want) and done[hooks.waves] == 1


def test_variables_go_with_arguments_that_are_computed(hooks: Hooks) -> None:
    """Of two values that a call gives: what is captured comes behind them."""
    class Touched(Tool):
        def instrument(self, m: Mutator) -> None:
            (kernel,) = m.kernels
            m.at_entry(kernel, hooks.count, computed(product, vgpr(0), 3), 2)

    done = launch(Touched(), LANES)
    want = [0] * 64
    for x in range(LANES):
        want[3 * x % 64] += 6 * x
    want[3] += 1000
    assert done[hooks.seen] == tuple(want) and done[hooks.waves] == 1


@device
def product(x: Lane[u32], y: u32) -> Lane[u32]:
    return x * y


@pytest.mark.parametrize("lanes", [64, 40])
def test_lanes(hooks: Hooks, lanes: int) -> None:
    found = observe([hooks.lanes], lanes, 5 * LANES)
    for x in range(lanes):
        marks = int(x == 0) + 2 * (lanes > 20) + 4 * (lanes <= 39)
        want = [x, sum(y % 3 == 1 for y in range(x)), marks, 15 + 7000, 1 + 64]
        assert [found[x + LANES * k] for k in range(5)] == want


def test_atomics_take_every_lane(hooks: Hooks) -> None:
    found = observe([hooks.atomics], LANES, 8)
    assert found[:3] == (-sum(range(LANES)) % 2**32, 63 * 5, 78) and found[4:6] == (2**32 - 1, 2**32 - 1)


def test_loops_that_differ_between_lanes(hooks: Hooks) -> None:
    found = observe([hooks.looping], LANES, LANES)
    for x in range(LANES):
        n, steps = x + 1, 0
        while n != 1:
            n, steps = 3 * n + 1 if n % 2 else n // 2, steps + 1
        assert found[x] == steps


def test_results_go_where_they_are_wanted(hooks: Hooks) -> None:
    low, high, half = WaveVariable(u32, "low"), WaveVariable(u64, "high"), WaveVariable(f32, "half")
    out, total = Variable(u32, 4, "out"), Variable(u64, name="total")

    class Results(Tool):
        def instrument(self, m: Mutator) -> None:
            (kernel,) = m.kernels
            m.at_entry(kernel, hooks.parts, 5 << 32 | 7, 9, into=(low, high, half))
            m.at_exit(kernel, stored, out, low, high, half)
            m.at_exit(kernel, hooks.add, total, 20, True)
            m.at_exit(kernel, hooks.add, total, 1, False)

    done = launch(Results(), LANES)
    assert done[out] == (16, 5, 4, 0) and done[total] == 41


@hook(lanes="one")
def stored(out: ptr[u32], low: u32, high: u64, half: f32) -> None:
    out[0] = low
    out[1] = u32(high)
    out[2] = u32(half)


def test_python_calls_what_is_in_the_source(hooks: Hooks) -> None:
    @device
    def both(x: Lane[u32]) -> Lane[u32]:
        return hooks.twice(x) + 1

    @hook
    def calls(out: ptr[u32], x: Lane[u32]) -> None:
        k = hooks.square(12)
        low, high, rest = hooks.taken(u64(k) << 31)
        out[x] = both(x) + k + u32(hooks.halved(f32(8.5)))
        if hooks.odd(x):
            hooks.second(out + 63)[x] = low + u32(high)

    found = observe([calls], LANES, 2 * LANES)
    assert found[:LANES] == tuple(2 * x + 1 + 144 + 4 for x in range(LANES))
    assert found[LANES:] == tuple(72 if x % 2 else 0 for x in range(LANES))


MORE = r"""
#include <luthier/hooks.h>
using namespace luthier;
LUTHIER_HOOK() void more(u32 *out, lane<u32> x) {
    u64 *wide = (u64 *)(out + 128);
    atomic_exchange(out + x, as_bits(f32(x)) ^ as_bits(f16(x)));
    pause();
    out[x + 64] = atomic_load(out + x) + u32(from_bits(u32(0x3f800000)) + from_bits(u64(0x4000000000000000)));
    store_release(wide + x, u64(x) << 40);
    wide[x] = load_acquire(wide + x) + u64(clock() != 0) + popcount(3);
    atomic_and(wide + x, ~0ul);
    atomic_xor(wide + x, 1);
    atomic_min(wide + x, u64(1) << 62);
}
"""


def test_the_header_has_the_intrinsics() -> None:
    text = (INCLUDE / "luthier" / "hooks.h").read_text()
    named = set(re.findall(r"(\w+)\(", text)) | set(re.findall(r"LUTHIER_ATOMIC\((\w+),", text))
    assert {name.rstrip("_") for name in intrinsics.__all__} <= named


def test_more_of_the_header() -> None:
    found = observe([Hooks.from_hip(MORE).more], LANES, 256)
    for x in range(LANES):
        bits = struct.unpack("<I", struct.pack("<f", x))[0] ^ struct.unpack("<H", struct.pack("<e", x))[0]
        assert (found[x], found[x + 64]) == (bits, (bits + 3) % 2**32)
        assert found[128 + 2 * x] | found[129 + 2 * x] << 32 == min((x << 40) + 3 ^ 1, 1 << 62)


@pytest.mark.parametrize("row", EACH_TARGET)
def test_every_target(hooks: Hooks, row: Target) -> None:
    for wave_size in row.wave_sizes:
        isa = instruction_set(row, wave_size)
        chosen = hooks.count, hooks.pair, hooks.lanes
        keys = [PayloadKey(one, (None,) * len(one.signature.parameters)) for one in chosen]
        try:
            payloads = compile_keys(dict.fromkeys(keys), isa)
        except HookError as error:
            assert "unknown" in str(error) or "invalid target" in str(error)  # to this clang
            continue
        assert all(payload.instrs for payload in payloads.values())


def refused(text: str, name: str = "h") -> str:
    with pytest.raises(LuthierError) as raised:
        one = getattr(Hooks.from_hip("#include <luthier/hooks.h>\nusing namespace luthier;\n" + text + "\n"), name)
        key = PayloadKey(one, (None,) * len(one.signature.parameters))
        compile_keys({key: None}, instruction_set(target("gfx90a"), 64))
    return str(raised.value)


@pytest.mark.parametrize("text, words", [
    ("LUTHIER_HOOK() void h(u32 x) { return y; }", ":3:39: error: use of undeclared identifier 'y'"),
    ("LUTHIER_HOOK() void g() {}", "has no hook, device function or variable h; it has: g"),
    ("__device__ void h() {}", "it has: nothing that is marked with LUTHIER_HOOK"),
    ("LUTHIER_HOOK() void h() {} LUTHIER_HOOK() void h(u32 x) {}", "has several functions h"),
    ("LUTHIER_HOOK() void h(__int128 c) {}", ":3: h: c: __int128 is not a device type; use numbers of"),
    ("struct S { u32 a, b; }; LUTHIER_HOOK() void h(S s) {}", ":3: h: s: S is not a device type"),
    ("struct S; LUTHIER_HOOK() void h(S *s) {}", "h: s: S is not a device type"),
    ("LUTHIER_HOOK() void h(void *p) {}", "h: p: void is not a device type"),
    ("LUTHIER_HOOK() void h(__attribute__((address_space(3))) u32 *p) { *p = 1; }",
     "h: p: hooks read LDS and private memory by luthier::lds<T> and luthier::scratch<T>"),
    ("LUTHIER_HOOK() void h(lds<u32> p) { *(__attribute__((address_space(3))) u32 *)u32(p) = 1; }",
     "hook h changes the application's LDS"),
    ("LUTHIER_HOOK() bool h() { return true; }", "a hook cannot return bool_"),
    ("LUTHIER_HOOK(one) void h(lane<u32> x) {}", "lanes='one' has a single lane; x cannot be Lane"),
    ("LUTHIER_HOOK(some) void h() {}", "lanes='some' is unknown"),
    ("LUTHIER_HOOK(one, all) void h() {}", "LUTHIER_HOOK\\(one, all\\): give it lanes once"),
    ("__device__ u32 f(u32 n) { return n ? f(n - 1) + f(n / 2) : 1; } LUTHIER_HOOK() u32 h(u32 n) { return f(n); }",
     "hook h calls _Z1fj, which calls itself: declare how deep"),
    ('extern "C" __device__ u32 f(u32); LUTHIER_HOOK() u32 h(u32 n) { return f(n); }',
     "hook h calls f, which is not in its source"),
    ("struct S { u32 *a; }; __device__ S v[2][2]; LUTHIER_HOOK() u32 h() { return ++*v[1][1].a; }",
     "h uses v, which is no tool"),
    ("__shared__ u32 s[9]; LUTHIER_HOOK() u32 h(u32 i) { s[i] = i; return s[1]; }", "hook h uses s, which is in LDS"),
    ('static const char *const names[9] = {"a"}; LUTHIER_HOOK() u32 h(u32 i) { return *names[i]; }',
     "hook h uses _ZL5names, a constant that holds addresses"),
])  # fmt: skip
def test_what_cannot_be_is_refused(text: str, words: str) -> None:
    said = refused(text)
    assert re.search(words, said), said


def test_a_device_function_with_variables_is_for_its_own_source(tmp_path: Path) -> None:
    hooks = Hooks.from_hip("#include <luthier/hooks.h>\n__device__ int v;\nLUTHIER_DEVICE int get() { return v; }\n")

    @hook
    def calls(out: ptr[u32], x: Lane[u32]) -> None:
        out[x] = u32(hooks.get())

    with pytest.raises(HookError, match="get names variables or tables of its own source"):
        observe([calls], LANES, LANES)


def test_a_file_stands_beside_the_tool(tmp_path: Path) -> None:
    (tmp_path / "mine.hip").write_text(TEXT)
    hooks = Hooks.from_hip(tmp_path / "mine.hip")
    assert hooks.count.place == f"{tmp_path / 'mine.hip'}:9" and hooks.seen.name == "mine.seen"
    with pytest.raises(HookError, match=f"there is no file {Path(__file__).parent}/none.hip"):
        Hooks.from_hip("none.hip")


def test_bitcode_that_is_there(hooks: Hooks, clang: str, tmp_path: Path) -> None:
    from luthier_py.rewrite.tool.cpp.hip import HipSource

    (tmp_path / "mine.bc").write_bytes(HipSource("mine", TEXT).bitcode("gfx90a", 64))
    ready = Hooks.from_bitcode(tmp_path / "mine.bc")
    assert observe([ready.lanes], 40, 5 * LANES) == observe([hooks.lanes], 40, 5 * LANES)
    with pytest.raises(HookError, match="larger<u32> cannot be made of it"):
        ready["larger<u32>"]
    data = bytearray((tmp_path / "mine.bc").read_bytes())
    (tmp_path / "broken.bc").write_bytes(data[:200])
    with pytest.raises(Unsupported, match="broken.bc: LLVM cannot read this bitcode.*clang 22 or older"):
        dir(Hooks.from_bitcode(tmp_path / "broken.bc"))


@pytest.mark.usefixtures("own_cache")
def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(CLANG)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    newer = "#!/bin/sh\ncase $1 in --version) echo clang version 99.0.0;; *) echo '    gfx90a gfx950' >&2; esac\n"
    with pytest.raises(Unsupported, match="no clang|there is no"):
        dir(Hooks.from_hip(TEXT))
    executable(tmp_path / "clang++", newer.replace("gfx90a gfx950", "gfx950"))
    with pytest.raises(Unsupported, match="of version 22 or older"):
        dir(Hooks.from_hip(TEXT))
    monkeypatch.setenv(CLANG, str(executable(tmp_path / "other", "#!/bin/sh\nexit 1\n")))
    with pytest.raises(Unsupported, match="other has no target amdgcn"):
        dir(Hooks.from_hip(TEXT))


@pytest.mark.usefixtures("own_cache")
def test_it_is_compiled_once(clang: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, header = tmp_path / "log", tmp_path / "own.h"
    script = f'#!/bin/sh\ncase "$*" in *" -E "*|*-print*|*--version*) ;; *) echo >> {log};; esac\nexec {clang} "$@"\n'
    monkeypatch.setenv(CLANG, str(executable(tmp_path / "clang", script)))
    header.write_text("#define STEP 1\n")
    text = textwrap.dedent("""
        #include <luthier/hooks.h>
        #include "own.h"
        LUTHIER_HOOK() unsigned h(unsigned x) { return x + STEP; }
        """)

    def times() -> int:
        hooks = Hooks.from_hip(text, "-I", os.fspath(tmp_path))
        assert hooks.h.name == "h"
        return log.read_text().count("\n")

    first, again = times(), times()
    header.write_text("#define STEP 2\n")
    assert (first, again, times()) == (1, 1, 2)
