"""What device code means: the frontend's IR, run on this computer, against the same functions run by Python."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest
from fixed_width import plain, run
from hook_files import INTERESTING, KINDS, load_text, random_function
from on_host import on_host

from luthier_py.rewrite.tool import (
    Hook,
    Scalar,
    array,
    bool_,
    device,
    f32,
    f64,
    hook,
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
)

SCALE = 3
OFFSET = -7


@device
def clamp(x: i64, low: i64, high: i64) -> i64:
    if x < low:
        return low
    if x > high:
        return high
    return x


@device
def halves(x: u64) -> tuple[u32, u32]:
    return u32(x), u32(x >> 32)


@device
def mix(a: u32, b: u32) -> u32:
    low, high = halves(u64(a) * b)
    return low ^ high


@hook
def early_returns(x: i64, y: i64) -> i64:
    return clamp(x, -100, 100) + clamp(y, x, x + 5) * 2


@hook
def tuples(x: u64, y: u32) -> tuple[u32, u64, u32]:
    low, high = halves(x)
    low, high = high, low
    return low + y, u64(mix(low, high)) << 3, high


@hook
def if_chain(x: i32, y: i32) -> i32:
    if x < y and not x == 5 or y > 100:
        z = x - y
    elif 0 <= x <= 1000 < y:
        z = x * SCALE
    else:
        z = (x if x > 0 else -y) + OFFSET
    return z


@hook
def collatz(x: u32, limit: u32) -> tuple[u32, u32]:
    steps = u32(0)
    x = x % 5000 + 1
    while x != 1:
        if steps >= limit % 64:
            break
        steps += 1
        if x & 1:
            x = 3 * x + 1
            continue
        x //= 2
    return steps, x


@hook
def nested_loops(a: i32, b: i32) -> i64:
    total = i64(0)
    for i in range(a % 9):
        for j in range(b % 7, -4, -2):
            if j == i:
                continue
            if total > 500:
                break
            total += i * j + 1
        total ^= i
    return total


@hook
def ranges(a: u32, b: u32) -> u64:
    total = u64(0)
    for i in range(a % 40, b % 50, 3):
        total = total * 31 + i
    for i in range(5):
        total += u64(i)
    for i in range(b % 11, 0, -1):
        total = (total << 1) ^ i
    return total


@hook
def forever(x: u32, y: u32) -> u32:
    n = x % 100
    while True:
        n += 7
        if n > 150:
            found = n - y % 13
            break
    return found


@hook
def floor_division(a: i32, b: i32) -> tuple[i32, i32, i32, i32, i32, i32]:
    return a // b, a % b, a // 8, a % 8, a // -3, a % -3


@hook
def wide_division(a: i64, b: i64) -> tuple[i64, i64]:
    return a // b, a % b


@hook
def unsigned_division(a: u64, b: u32) -> tuple[u64, u64, u32]:
    return a // b, a % b, b // 10


@hook
def shifts(a: i32, b: u32) -> tuple[i32, i32, u32, u32, u32]:
    return a << b, a >> b, b << 5, b >> 31, 1 << b


@hook
def widths(a: i32, b: u32) -> tuple[i64, i64, u64, u64, i64, u32]:
    return a, i64(a) * b, u64(a), b, i64(b) - a, u32(i64(a) - 1)


@hook
def extremes(a: i32, b: i32, c: u32, d: u64) -> tuple[i32, i32, u64, u64, i32]:
    return min(a, b, 3), max(a, b), min(c, d), max(c, d), abs(a)


@hook
def truth(a: u32, b: i64) -> tuple[u32, u32, u32]:
    both = a > 5 and b > 5
    odd = bool_(a & 1) ^ bool_(b & 1)
    return u32(both), u32(odd), u32(not a) + u32(1 if b else 2)


@hook
def floats(a: f32, b: f32) -> tuple[f32, f32, f32, f32, u32]:
    return a * b + 0.5, a - b / 3, max(a, b), abs(-a), u32(a < b)


@hook
def doubles(a: f64, b: f32, n: i32) -> tuple[f64, f64, f32, i32, u64]:
    return a * b, a / (b * b + 1) - 2, f32(a) + f32(n), i32(a), u64(abs(b))


@hook
def bits(a: u32, b: u32) -> tuple[u32, u32, u32, u32, u32, u32]:
    return a & b, a | b, a ^ b, ~a, -a, +b


@hook
def bytes_and_shorts(a: u8, b: i8, c: u16, d: i16) -> tuple[u8, i8, u16, i16, i32, u32, i64]:
    return a + 200, b * b, c // (a % 7 + 1), d >> (a & 3), i32(a) - b, u32(c) * c, d + i64(b)


@hook
def counted_in_bytes(a: u8, b: i8) -> tuple[u32, i32]:
    n, m = u32(0), i32(0)
    for i in range(a):
        n += i
    for k in range(b, 100, 7):
        m += k
    return n, m


@hook
def histograms(x: u64, n: u8) -> tuple[u32, u64, u32, i16]:
    counts = array(u32, 5)
    wide = array(i16, 3)
    for i in range(n % 40):
        at = u32(x >> i) & 7
        counts[at] += i + 1
        wide[u8(at) % 3] -= 7
    sums = u64(0)
    for k in range(len(counts)):
        sums = sums * 100 + counts[k]
        if k == 2:
            counts = array(u32, 5)
    counts[-1] = 9
    return counts[4] + counts[0], sums, counts[n], wide[1] * wide[-1]


HOOKS = [value for value in list(globals().values()) if isinstance(value, Hook)]


@pytest.fixture(scope="module")
def compiled() -> dict[str, Any]:
    return dict(zip([h.name for h in HOOKS], on_host(HOOKS), strict=True))


def samples(hook: Hook, count: int, seed: int) -> list[list[Any]]:
    rng = random.Random(seed)

    def one(type: Scalar) -> Any:
        if type in (f32, f64):
            return type(rng.choice([0.0, -1.0, 1.5, rng.uniform(-1e6, 1e6), rng.uniform(-1, 1), 2.0**40]))
        number = rng.choice([rng.choice(INTERESTING), rng.getrandbits(64), rng.randrange(200)])
        return type(number * rng.choice((1, -1)) + rng.randrange(2))

    return [[one(p.type) for p in hook.signature.parameters] for _ in range(count)]


def same(a: Any, b: Any) -> bool:
    return a == b or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook.name)
def test_device_code_means_what_python_means(hook: Hook, compiled: dict[str, Any]) -> None:
    for args in samples(hook, 300, seed=7):
        found = run(hook, *args)
        want = tuple(map(plain, found)) if isinstance(found, tuple) else (plain(found),)
        got = compiled[hook.name](*args)
        got = got if isinstance(got, tuple) else (got,)
        assert all(map(same, got, want)), (hook.name, args, got, want)


def test_random_programs(tmp_path: Path) -> None:
    rng, texts = random.Random(20), ["from luthier_py import hook, i8, i16, i32, i64, u8, u16, u32, u64", ""]
    for i in range(60):
        kind = rng.choice(KINDS)
        texts.append(random_function(rng, f"@hook\ndef r{i}(x: {kind}, y: {kind}) -> {kind}:", kind))
    hooks = [value for value in vars(load_text(tmp_path, "\n".join(texts))).values() if isinstance(value, Hook)]
    assert len(hooks) == 60
    for made, compiled in zip(hooks, on_host(hooks), strict=True):
        for args in samples(made, 25, seed=3):
            assert compiled(*args) == plain(run(made, *args)), (made.name, args)


def test_conversions_of_floats_stay_in_range(compiled: dict[str, Any]) -> None:
    assert compiled["doubles"](1e300, 0.0, 0)[3] == 2**31 - 1
    assert compiled["doubles"](math.nan, 0.0, 0)[3] == 0
