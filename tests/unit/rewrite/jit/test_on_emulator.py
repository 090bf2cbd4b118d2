"""Per-lane device code as it runs: compiled, inlined, executed by the emulator; against Python, lane by lane.

The hooks run at the entry of the vector-add sample, one wave of it, in as many lanes as the work-group has items. There
v0 holds the work-item's number.
"""

from __future__ import annotations

import random
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fixed_width import plain, run
from hook_files import KINDS, load_text, random_function
from observing import LANES, launch, observe

from luthier_py.intrinsics import (
    active_mask,
    all_,
    any_,
    as_bits,
    atomic_add,
    atomic_cas,
    atomic_exchange,
    atomic_max,
    atomic_min,
    ballot,
    count_trailing_zeros,
    is_first_lane,
    lane_id,
    mbcnt,
    popcount,
    read_first_lane,
    read_lane,
    wave_size,
)
from luthier_py.isa import vgpr
from luthier_py.rewrite.tool import (
    Lane,
    Mutator,
    Tool,
    Variable,
    array,
    bf16,
    device,
    f16,
    f32,
    f64,
    hook,
    i8,
    i16,
    i32,
    ptr,
    u8,
    u32,
    u64,
)

TYPES = "i8, i16, i32, i64, u8, u16, u32, u64"


@hook
def masks(out: ptr[u32], x: Lane[u32]) -> None:
    third = ballot(x % 3 == 1)
    out[x] = lane_id()
    out[x + 64] = mbcnt(third)
    out[x + 128] = popcount(active_mask())
    out[x + 192] = u32(is_first_lane()) + 2 * u32(any_(x == 20)) + 4 * u32(all_(x < 39)) + 8 * u32(any_(x > 99))
    out[x + 256] = read_lane(x * 3, 5) + read_first_lane(x + 7) * 1000
    out[x + 320] = count_trailing_zeros(third) + wave_size()


@pytest.mark.parametrize("lanes", [64, 40, 7])
def test_masks_and_lanes(lanes: int) -> None:
    found = observe([masks], lanes, 6 * LANES)
    active = range(lanes)
    for x in active:
        marks = int(x == 0) + 2 * (lanes > 20) + 4 * (lanes <= 39)
        want = [x, sum(y % 3 == 1 for y in range(x)), lanes, marks, 15 + 7000 if lanes > 5 else None, 1 + 64]
        assert [found[x + LANES * k] for k in range(6)] == want
    assert not any(found[x + LANES * k] for k in range(6) for x in range(lanes, LANES))


@hook
def first_of_branch(out: ptr[u32], x: Lane[u32]) -> None:
    if x % 4 == 3:
        out[x] = read_first_lane(x) + popcount(active_mask()) * 100
    else:
        k = u32(0)
        while k < x % 5:
            k += 1
            out[x] = read_first_lane(x) + popcount(active_mask()) * 100 + k * 10000
    out[x + 64] = popcount(active_mask())


def test_lanes_in_branches_and_loops() -> None:
    found = observe([first_of_branch], LANES, 2 * LANES)
    odd = [x for x in range(LANES) if x % 4 == 3]
    for x in range(LANES):
        if x in odd:
            want = odd[0] + 100 * len(odd)
        else:
            trips = x % 5
            there = [y for y in range(LANES) if y not in odd and y % 5 >= trips]
            want = there[0] + 100 * len(there) + 10000 * trips if trips else 0
        assert found[x] == want, x
        assert found[x + LANES] == LANES  # all lanes are back


@hook
def atomics(out: ptr[u32], x: Lane[u32]) -> None:
    old = atomic_add(out, x)
    atomic_max(out + 1, x * 5)
    atomic_min(out + 2, 0)
    atomic_exchange(out + 3, 77)
    if x == 9:
        atomic_cas(out + 3, 77, 78)
    if old == 0:
        atomic_add(out + 4, 1)
    atomic_add(out + 5, popcount(active_mask()))


def test_atomics_take_every_lane() -> None:
    found = observe([atomics], LANES, 8)
    assert found[:4] == (sum(range(LANES)), 63 * 5, 0, 78)
    assert 1 <= found[4] <= 2 and found[5] == LANES * LANES


@device
def search(x: Lane[u32], y: Lane[u32]) -> Lane[u32]:
    for i in range(y % 50):
        if x == 1:
            return i
        if x % 2 == 0:
            x //= 2
            continue
        for j in range(x % 3):
            if j == 1:
                break
            x += 1
        x = 3 * x + 1
    return x


@device
def signed(x: Lane[u32], y: Lane[u32]) -> Lane[u32]:
    a, b = i32(x) - 1000, i32(y) % 17 - 8
    if a < 0 and b != 0 or a > 5000:
        return u32(a // b + a % b)
    return u32(abs(b) << 3) if a > b > -5 else u32(min(a, b, 7))


@device
def forever(x: Lane[u32], y: Lane[u32]) -> Lane[u32]:
    n = y % 31
    while True:
        n += 3
        if n > 60 + x % 20:
            break
        if n == 33:
            return n * 7
    return n


@hook
def arrays(out: ptr[u32], x: Lane[u32]) -> None:
    counts = array(u32, 8)
    same = array(u32, 4)
    for i in range(u32(12)):
        counts[(x >> (i & 3)) & 7] += i
        same[i & 3] += 1
    if x % 3 == 1:
        counts[0] = 99
    shown: u32 = same[3]
    for k in range(u32(8)):
        out[x * 8 + k] = counts[k] + shown * 1000


def test_arrays_of_lanes() -> None:
    found = observe([arrays], LANES, 8 * LANES)
    for x in range(LANES):
        counts = [0] * 8
        for i in range(12):
            counts[x >> (i & 3) & 7] += i
        counts[0] = 99 if x % 3 == 1 else counts[0]
        assert found[8 * x : 8 * x + 8] == tuple(count + 3000 for count in counts)


@hook
def short_values_of_lanes(out: ptr[u32], x: Lane[u32]) -> None:
    shorts, bytes_ = ptr[i16](u64(out + 192)), ptr[u8](u64(out + 224))
    out[x] = u32(read_lane(f16(x) / 8, 5) * 16)
    out[x + 64] = u32(i32(read_first_lane(i16(x) - 300)))
    out[x + 128] = u32(read_lane(bf16(x), 9)) + read_lane(u8(x * 5), 60)
    shorts[x] = i16(x) * -100
    bytes_[x] = u8(x) * 3


def test_short_values_of_lanes_and_memory() -> None:
    found = observe([short_values_of_lanes], LANES, 240)
    assert set(found[:64]) == {10} and set(found[64:128]) == {2**32 - 300} and set(found[128:192]) == {9 + 300 % 256}
    data = struct.pack("<48I", *found[192:])
    assert struct.unpack("<64h", data[:128]) == tuple(-100 * x for x in range(LANES))
    assert data[128:] == bytes(x * 3 % 256 for x in range(LANES))


@hook(fold=False)
def shortened(x: Lane[u8], k: i16, h: f16, b: bf16, s: u8) -> tuple[Lane[i8], Lane[f16]]:
    return i8(x) + i8(k) + i8(h) + i8(b), f16(x) / 4 + f16(s)


@hook
def stored(out: ptr[u32], x: Lane[u32], h: Lane[u32]) -> None:
    out[x & 63] = x
    out[64 + (x & 63)] = h


def test_short_arguments_and_results() -> None:
    out = Variable(u32, 128, name="out")

    class Shorts(Tool):
        def instrument(self, m: Mutator) -> None:
            (kernel,) = m.kernels
            m.at_entry(kernel, shortened, vgpr(0), -40, 2.5, -1.5, 250, into=(vgpr(5), vgpr(6)))
            m.at_entry(kernel, stored, out, vgpr(5), vgpr(6))

    found = launch(Shorts(), LANES)[out]
    assert isinstance(found, tuple)
    for x in range(LANES):
        low = (x - 40 + 2 - 1) % 2**32
        assert found[low & 63] == low
        assert found[64 + (low & 63)] == int.from_bytes(struct.pack("<e", x / 4 + 250), "little")


@device
def halves(x: Lane[u32], y: Lane[u32]) -> Lane[u32]:
    a, b = f16(i32(x % 4001) - 2000) / 16, f16(i16(y)) / 1000
    first = as_bits(a + b) ^ as_bits(a * b) << 1 ^ as_bits(a / (b * b + 1)) << 2
    exact = as_bits(a * f32(b)) ^ as_bits(f64(a) - b * f64(y))
    return first ^ u32(exact) ^ u32(i16(a)) << 3 ^ u32(u8(b)) << 4 ^ u32(a < b) << 31 ^ u32(as_bits(max(a, -b, abs(b))))


@device
def brains(x: Lane[u32], y: Lane[u32]) -> Lane[u32]:
    a, b = bf16(i32(x % 4001) - 2000) / 16, bf16(i16(y)) / 1000
    first = as_bits(a + b) ^ as_bits(a * b) << 1 ^ as_bits(a / (b * b + 1)) << 2
    exact = as_bits(a * f32(b)) ^ as_bits(f16(b / 1000))
    return first ^ exact ^ u32(i16(a)) << 3 ^ u32(u8(b)) << 4 ^ u32(a < b) << 31 ^ u32(as_bits(bf16(f64(x) / f64(y))))


HOOK = """
@hook
def h{i}(out: ptr[u32], x: Lane[u32]) -> None:
    y = u64({name}({kind}(x * 2654435761), {kind}(x * 40503 + 12345)))
    out[x + {low}] = u32(y)
    out[x + {high}] = u32(y >> 32)
"""


def check_lane_functions(functions: Sequence[Any], folder: Path, lanes: int = LANES) -> None:
    """Each lane computes what Python computes for it."""
    source = Path(sys.modules[functions[0].function.__module__].__file__ or "").stem
    names = ", ".join(function.name for function in functions)
    sys.path.append(str(folder))
    texts = [f"from {source} import {names}\nfrom luthier_py.rewrite.tool import Lane, hook, ptr, {TYPES}\n"]
    for i, function in enumerate(functions):
        kind = function.signature.parameters[0].type
        texts.append(HOOK.format(i=i, name=function.name, kind=kind, low=2 * i * LANES, high=(2 * i + 1) * LANES))
    module = load_text(folder, "\n".join(texts))
    hooks = [getattr(module, f"h{i}") for i in range(len(functions))]
    found = observe(hooks, lanes, 2 * LANES * len(functions))
    for i, function in enumerate(functions):
        kind = function.signature.parameters[0].type
        for x in range(lanes):
            want = u64(plain(run(function, kind(u32(x * 2654435761)), kind(u32(x * 40503 + 12345)))))
            low, high = found[2 * i * LANES + x], found[(2 * i + 1) * LANES + x]
            assert low | high << 32 == want, (function.name, x)


@pytest.mark.parametrize("lanes", [64, 33])
def test_lanes_compute_what_python_does(tmp_path: Path, lanes: int) -> None:
    check_lane_functions([search, signed, forever, halves, brains], tmp_path, lanes)


def test_random_lane_programs(tmp_path: Path) -> None:
    rng, texts = random.Random(5), [f"from luthier_py.rewrite.tool import Lane, device, {TYPES}", ""]
    for i in range(16):
        kind = rng.choice(KINDS)
        header = f"@device\ndef r{i}(x: Lane[{kind}], y: Lane[{kind}]) -> Lane[{kind}]:"
        texts.append(random_function(rng, header, kind))
    module = load_text(tmp_path, "\n".join(texts))
    check_lane_functions([getattr(module, f"r{i}") for i in range(16)], tmp_path)
