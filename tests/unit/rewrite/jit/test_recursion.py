"""Hooks that call themselves: loops over frames of their own; proved, executed by the emulator, against Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from observing import LANES, launch

from luthier_py.base.errors import HookError, ToolError, Unsupported
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented
from luthier_py.isa import instruction_set, target, vgpr
from luthier_py.proof.claim import Payload
from luthier_py.proof.payloads import summary
from luthier_py.rewrite.jit import PayloadKey, compile_keys
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import (
    Hook,
    Hooks,
    Lane,
    Mutator,
    Pointer,
    Tool,
    Variable,
    array,
    device,
    f32,
    hook,
    ptr,
    u32,
    u64,
)
from luthier_py.samples import sample

TEXT = r"""
#include <luthier/hooks.h>
using namespace luthier;

LUTHIER_DEPTH(10) __device__ u32 fibonacci(u32 n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
LUTHIER_HOOK() void fibonaccis(u32 *out, lane<u32> x) { out[x] = fibonacci(x % 11); }

__device__ u64 seen[3];
LUTHIER_HOOK() void counted(lane<u32> x) {
    atomic_add(&seen[1], u64(fibonacci(x % 11)));
    atomic_sub(&seen[2], u64(1));
}

LUTHIER_DEPTH(32) __device__ void sort(u32 *a, i32 low, i32 high) {
    if (low >= high) return;
    u32 pivot = a[(low + high) / 2];
    i32 i = low, j = high;
    while (i <= j) {
        while (a[i] < pivot) ++i;
        while (a[j] > pivot) --j;
        if (i <= j) { u32 t = a[i]; a[i] = a[j]; a[j] = t; ++i; --j; }
    }
    sort(a, low, j);
    sort(a, i, high);
}
LUTHIER_HOOK() void sorted(u32 *out, lane<u32> x) {
    u32 a[32];
    for (u32 i = 0; i < 32; ++i) a[i] = (i * 7 + x * 13) % 101;
    sort(a, 0, 31);
    for (u32 i = 0; i < 32; ++i) out[x * 32 + i] = a[i];
}

__device__ u32 odd(u32 n);
LUTHIER_DEPTH(64) __device__ u32 even(u32 n) { return n == 0 ? 100 : 1 + odd(n - 1); }
__device__ u32 odd(u32 n) { return n == 0 ? 200 : 2 + even(n - 1); }
LUTHIER_HOOK() void evens(u32 *out, lane<u32> x) { out[x] = even(x % 50) + 1000 * odd(x % 9); }

LUTHIER_DEPTH(40) __device__ u32 ackermann(u32 m, u32 n) {
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
LUTHIER_HOOK() void ackermanns(u32 *out, lane<u32> x) { out[x] = ackermann(x % 3, x % 5); }

struct Node { u32 left, right, value; };
LUTHIER_DEPTH(8) __device__ u64 sum(const u32 *nodes, const u32 *node, u32 factor) {
    u64 found = u64(node[2]) * factor << 8;
    for (u32 side = 0; side < 2; ++side)
        if (node[side] != 0) found += sum(nodes, nodes + 3 * node[side], factor + side);
    return found;
}
__device__ u32 tree[24];
LUTHIER_HOOK() void sums(u64 *out, lane<u32> x) {
    for (u32 i = 0; i < 8; ++i) {
        tree[3 * i] = 2 * i + 1 < 8 ? 2 * i + 1 : 0;
        tree[3 * i + 1] = 2 * i + 2 < 8 ? 2 * i + 2 : 0;
        tree[3 * i + 2] = i + 1;
    }
    out[x] = sum(tree, tree, x % 7);
}

struct Both { f64 half; u32 count; };
LUTHIER_DEPTH(6) __device__ Both halved(f64 x) {
    if (x < 1) return {x, 0};
    u32 own[3] = {1, 2, 3};
    Both rest = halved(x / 2);
    own[rest.count % 3] += u32(x);
    return {rest.half + own[0] + own[1] * 10, rest.count + 1};
}
LUTHIER_HOOK() void halves(u64 *out, lane<u32> x) {
    Both found = halved(x / 2.);
    out[2 * x] = as_bits(found.half);
    out[2 * x + 1] = found.count;
}

LUTHIER_DEPTH(3) __device__ u32 deep(u32 n) { return n == 0 ? 7 : 3 * (deep(n - 1) ^ n); }
LUTHIER_HOOK() void deeper(u32 *out, lane<u32> x) { out[x % 64] = deep(x % 64 % 5); }

LUTHIER_DEPTH(2) __device__ u32 counted(u32 n, u32 so_far) { return n == 0 ? so_far : counted(n - 1, so_far + n); }
LUTHIER_HOOK() void tail(u32 *out, lane<u32> x) { out[x] = counted(x, 5); }
"""


pytestmark = pytest.mark.usefixtures("clang")


@pytest.fixture
def hooks() -> Hooks:
    return Hooks.from_hip(TEXT)


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def even(n: int) -> int:
    return 100 if n == 0 else 1 + odd(n - 1)


def odd(n: int) -> int:
    return 200 if n == 0 else 2 + even(n - 1)


def ackermann(m: int, n: int) -> int:
    return n + 1 if m == 0 else ackermann(m - 1, 1) if n == 0 else ackermann(m - 1, ackermann(m, n - 1))


def tree_sum(node: int, factor: int) -> int:
    if node == 0:
        return 0
    return ((node + 1) * factor << 8) + sum(tree_sum(child, factor + side)
                                            for side, child in enumerate((2 * node + 1, 2 * node + 2)) if child < 8)


def halved(x: float) -> tuple[float, int]:
    if x < 1:
        return x, 0
    own, (rest, count) = [1, 2, 3], halved(x / 2)
    own[count % 3] += int(x)
    return rest + own[0] + own[1] * 10, count + 1


def proved(one: Hook, words: int, lanes: int = LANES, type=u32) -> tuple[int, ...]:
    """What a hook leaves in memory, of a copy that is proved."""
    out = Variable(type, words, name="observed")

    class Observer(Tool):
        def instrument(self, m: Mutator) -> None:
            m.at_entry(m.kernels[0], one, out, vgpr(0))

    found = launch(Observer(), lanes)[out]
    assert isinstance(found, tuple)
    return found


def launched(one: Hook) -> None:
    class Deep(Tool):
        out = Variable(u32, LANES)

        def instrument(self, m: Mutator) -> None:
            m.at_entry(m.kernels[0], one, self.out, vgpr(0))

    chosen, tool = sample("vector_add"), Deep()
    code = chosen.path.read_bytes()
    run_instrumented(EmulatorDevice(load(code).target), instrument(code, tool), tool, launch_of(chosen))


@pytest.mark.parametrize("lanes", [64, 40])
@pytest.mark.parametrize("name, want", [
    ("fibonaccis", lambda x: fibonacci(x % 11)),
    ("evens", lambda x: even(x % 50) + 1000 * odd(x % 9)),
    ("ackermanns", lambda x: ackermann(x % 3, x % 5)),
    ("tail", lambda x: 5 + x * (x + 1) // 2),
])
def test_results_are_those_of_python(hooks: Hooks, name: str, want: Callable[[int], int], lanes: int) -> None:
    assert proved(hooks[name], LANES, lanes) == tuple(want(x) if x < lanes else 0 for x in range(LANES))


def test_places_in_variables_of_the_source(hooks: Hooks) -> None:
    class Counting(Tool):
        def instrument(self, m: Mutator) -> None:
            m.at_entry(m.kernels[0], hooks.counted, vgpr(0))

    assert launch(Counting(), 40)[hooks.seen] == (0, sum(fibonacci(x % 11) for x in range(40)), (1 << 64) - 40)


def test_an_array_of_the_caller_is_sorted(hooks: Hooks) -> None:
    want = np.sort((np.arange(32) * 7 + np.arange(LANES)[:, None] * 13) % 101)
    assert np.array_equal(np.reshape(proved(hooks["sorted"], 32 * LANES), (LANES, 32)), want)


def test_pointers_are_kept_in_frames(hooks: Hooks) -> None:
    own = tree_sum(1, 1), tree_sum(2, 2)
    assert all(own)
    want = tuple((x % 7 << 8) + tree_sum(1, x % 7) + tree_sum(2, x % 7 + 1) for x in range(LANES))
    assert proved(hooks["sums"], LANES, type=u64) == want


def test_structures_doubles_and_arrays_in_frames(hooks: Hooks) -> None:
    found = np.array(proved(hooks["halves"], 2 * LANES, type=u64), np.uint64).reshape(LANES, 2)
    want = [halved(x / 2) for x in range(LANES)]
    assert found[:, 1].tolist() == [count for _, count in want]
    assert found[:, 0].view(np.float64).tolist() == [half for half, _ in want]


def test_what_goes_too_deep_is_told(hooks: Hooks, capsys: pytest.CaptureFixture[str]) -> None:
    line = 1 + TEXT[: TEXT.index("LUTHIER_DEPTH(3)")].count("\n")
    with pytest.raises(ToolError, match=f"calls itself deeper than the 3 levels that line {line} of its source"):
        launched(hooks.deeper)
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 8 * sum(x % LANES % 5 > 2 for x in range(256))


def test_depth_is_declared() -> None:
    text = TEXT.replace("LUTHIER_DEPTH(10)", "")
    hook = Hooks.from_hip(text).fibonaccis
    key = PayloadKey(hook, (None,) * len(hook.signature.parameters))
    with pytest.raises(Unsupported, match=r"calls _Z9fibonaccij, which calls itself: declare how deep, with LUTHIER_D"):
        compile_keys({key: None}, instruction_set(target("gfx90a"), 64))


@pytest.mark.parametrize("text, words", [
    ("struct S { u32 a[40]; }; LUTHIER_DEPTH(4) __device__ u32 f(S s, u32 n) { return n ? f(s, n / 2) ^ 3 : s.a[9]; }"
     "LUTHIER_HOOK() void h(u32 *o, lane<u32> x) { S s = {{x}}; o[x] = f(s, x); }", "a structure in memory; give"),
    ("LUTHIER_DEPTH(4) __device__ u32 f(u32 n) { volatile u32 a[n]; a[0] = n; return n ? f(n / 2) ^ a[0] : 3; }"
     "LUTHIER_HOOK() void h(u32 *o, lane<u32> x) { o[x] = f(x); }", "has an array of a length that is not known"),
])
def test_what_cannot_be_in_a_frame_is_refused(text: str, words: str) -> None:
    hook = Hooks.from_hip("#include <luthier/hooks.h>\nusing namespace luthier;\n" + text + "\n").h
    with pytest.raises(Unsupported, match=words):
        compile_keys({PayloadKey(hook, (None,) * len(hook.signature.parameters)): None},
                     instruction_set(target("gfx90a"), 64))


@pytest.mark.parametrize("name", ["gfx950", "gfx1201", *(
    pytest.param(name, marks=pytest.mark.slow) for name in ("gfx906", "gfx1030", "gfx1151", "gfx1250"))])
def test_every_target(hooks: Hooks, name: str) -> None:
    for wave_size in target(name).wave_sizes:
        keys = [PayloadKey(one, (None,) * len(one.signature.parameters)) for one in (hooks.fibonaccis, hooks.sums)]
        try:
            payloads = compile_keys(dict.fromkeys(keys), isa := instruction_set(target(name), wave_size))
        except HookError as error:
            assert "unknown" in str(error) or "invalid target" in str(error)  # to this clang
            continue
        for key, made in payloads.items():
            pointers = tuple(depth_of(parameter.type) for parameter in key.hook.signature.parameters)
            code = b"".join(inst.raw for inst in made.instrs)
            claimed = Payload(key.hook.name, code, tuple(slot.reg for slot in made.params), (), pointers,
                              (4,) * len(pointers), None, stack=made.stack, frame_bytes=made.frame_bytes)
            assert made.frame_bytes and summary(isa, claimed).gives_exec_back


def depth_of(type: object) -> int:
    return 1 + depth_of(type.element) if isinstance(type, Pointer) else 0


@device(depth=10)
def plain_fibonacci(n: Lane[u32]) -> Lane[u32]:
    if n < 2:
        return n
    return plain_fibonacci(n - 1) + plain_fibonacci(n - 2)


@device(depth=6)
def moves(disks: Lane[u32], source: Lane[u32], into: Lane[u32], pegs: ptr[u32], seen: Lane[u32]) -> Lane[u32]:
    """Towers of Hanoi: moves, each of which is counted at the peg that it goes to."""
    if disks == 0:
        return 0
    done = moves(disks - 1, source, 3 - source - into, pegs, seen)
    pegs[seen * 4 + into] += 1
    return done + 1 + moves(disks - 1, 3 - source - into, into, pegs, seen)


@device(depth=8)
def halves_and_steps(x: Lane[f32], n: Lane[u32]) -> tuple[Lane[f32], Lane[u32]]:
    kept = array(u32, 4)
    if n == 0 or x < 0.5:
        return x, 0
    kept[n % 4] = n
    rest, steps = halves_and_steps(x / 2, n - 1)
    return rest + f32(kept[n % 4]), steps + 1


@device(depth=2)
def shallow(n: Lane[u32]) -> Lane[u32]:
    return u32(7) if n == 0 else 3 * (shallow(n - 1) ^ n)


@hook
def plain_hook(out: ptr[u32], x: Lane[u32]) -> None:
    out[x] = plain_fibonacci(x % 11)
    out[64 + x] = moves(x % 6, 0, 2, out + 256, x)
    rest, steps = halves_and_steps(f32(x), x % 7)
    out[128 + x] = u32(rest * 64)
    out[192 + x] = steps


@hook
def shallow_hook(out: ptr[u32], x: Lane[u32]) -> None:
    out[x % 64] = shallow(x % 4)


def steps_of(x: float, n: int) -> tuple[float, int]:
    if n == 0 or x < 0.5:
        return x, 0
    rest, steps = steps_of(x / 2, n - 1)
    return rest + n, steps + 1


@pytest.mark.parametrize("lanes", [64, 33])
def test_device_functions_in_python(lanes: int) -> None:
    found = np.array(proved(plain_hook, 512, lanes))
    item = range(lanes)
    assert found[:lanes].tolist() == [fibonacci(x % 11) for x in item]
    assert found[64 : 64 + lanes].tolist() == [2 ** (x % 6) - 1 for x in item]
    assert found[128 : 128 + lanes].tolist() == [int(steps_of(x, x % 7)[0] * 64) for x in item]
    assert found[192 : 192 + lanes].tolist() == [steps_of(x, x % 7)[1] for x in item]
    assert found[256:].reshape(64, 4)[:lanes].sum(axis=1).tolist() == [2 ** (x % 6) - 1 for x in item]


def test_python_tells_what_goes_too_deep(capsys: pytest.CaptureFixture[str]) -> None:
    line = shallow.function.__code__.co_firstlineno
    with pytest.raises(ToolError, match=f"calls itself deeper than the 2 levels that line {line} of its source"):
        launched(shallow_hook)
    assert len(capsys.readouterr().out.splitlines()) == 8 * 128


def test_python_calls_what_calls_itself_in_cpp() -> None:
    cpp = Hooks.from_hip(TEXT + "LUTHIER_DEVICE lane<u32> each(lane<u32> n) { return fibonacci(n); }\n")

    @hook
    def mixed(out: ptr[u32], x: Lane[u32]) -> None:
        out[x] = cpp.each(x % 11) * 1000 + plain_fibonacci(x % 7)

    assert proved(mixed, LANES) == tuple(fibonacci(x % 11) * 1000 + fibonacci(x % 7) for x in range(LANES))


def test_a_hook_in_python_must_be_able_to_tell_what_goes_too_deep(tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text(
        "LUTHIER_DEPTH(4) __device__ unsigned f(unsigned n) { return n ? 3 * (f(n / 2) ^ n) : 3; }")
    cpp = Hooks.from_hip('#include <luthier/hooks.h>\n#include "own.h"\n'
                         "LUTHIER_DEVICE luthier::lane<unsigned> g(luthier::lane<unsigned> n) { return f(n); }\n",
                         "-I", str(tmp_path))

    @hook
    def told(out: ptr[u32], x: Lane[u32]) -> None:
        out[x] = cpp.g(x)

    with pytest.raises(Unsupported, match="has no channel to tell what goes too deep: let the source itself"):
        proved(told, LANES)


@device(depth=3)
def of_the_wave(n: u32) -> Lane[u32]:
    return u32(0) if n == 0 else of_the_wave(n - 1) + of_the_wave(n - 1)


@hook
def calls_of_the_wave(out: ptr[u32], x: Lane[u32]) -> None:
    out[x] = of_the_wave(3)


def test_what_is_one_for_the_wave_is_the_same_at_each_level() -> None:
    with pytest.raises(HookError, match="of_the_wave: n: u32 may be another one at each level"):
        proved(calls_of_the_wave, LANES)
    with pytest.raises(HookError, match="depth=0: give 1 to 65536"):
        device(depth=0)(steps_of)
