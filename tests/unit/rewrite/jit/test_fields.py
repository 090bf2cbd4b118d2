"""Constants that are written into finished code: the same results as of those that are compiled in."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from luthier_py.base.errors import HookError
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.interface import pack_arguments
from luthier_py.intrinsics import atomic_add
from luthier_py.isa import vgpr
from luthier_py.program.analysis import analyse
from luthier_py.program.ir import lift
from luthier_py.rewrite.jit import payload_key
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import (
    Hook,
    Insertion,
    Lane,
    Mutator,
    Tool,
    Variable,
    bool_,
    f32,
    f64,
    hook,
    i32,
    i64,
    ptr,
    u32,
    u64,
    visit,
)

KERNEL = Path(__file__).resolve().parents[3] / "data" / "vector_add.co"
LANES, WORDS = 64, 6
BITS32 = (0, 1, 2, 16, 63, 64, 65, 255, 0x3F800000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFFF, 0x12345678)
BITS64 = (0, 1, 64, 1 << 32, (1 << 32) - 1, 1 << 63, (1 << 64) - 1, 0x123456789ABCDEF0, 0xFFFFFFFF00000000)


def unsigned(out: ptr[u32], lane: Lane[u32], n: u32) -> None:
    out[lane] = lane + n
    out[lane + 64] = lane * n + (n >> 3)
    out[lane + 128] = n if n < 65 and n != lane else lane ^ n
    out[lane + 192] = n * n + 7
    out[lane + 256] = lane // n + lane % n if n != 0 else u32(9)
    out[lane + 320] = lane << (n & 31)


def signed(out: ptr[u32], lane: Lane[u32], n: i32) -> None:
    out[lane] = u32(i32(lane) - n)
    out[lane + 64] = u32(n >> 2) + lane
    out[lane + 128] = u32(max(i32(lane), n))
    out[lane + 192] = u32(n < 0) + 2 * u32(n == 64) + 4 * u32(i32(lane) > n)
    out[lane + 256] = u32(i64(n) * i64(n) >> 32)
    out[lane + 320] = u32(abs(n))


def wide(out: ptr[u32], lane: Lane[u32], n: u64) -> None:
    total = u64(lane) + n
    out[lane] = u32(total)
    out[lane + 64] = u32(total >> 32)
    out[lane + 128] = u32(n * u64(lane + 3) >> 32)
    out[lane + 192] = u32(n == 0) + 2 * u32(n > 1 << 63) + 4 * u32(i64(n) < 3)
    out[lane + 256] = u32(n & 255) + u32((n | 5) >> 40)
    out[lane + 320] = u32(n >> 32 & 0xFFFFFFFF) ^ u32(n + (5 << 32) >> 32)


def single(out: ptr[u32], lane: Lane[u32], n: f32) -> None:
    out[lane] = u32(f32(lane) * n)
    out[lane + 64] = u32(n < 1.0) + 2 * u32(n == 0.0) + 4 * u32(f32(lane) > n)
    out[lane + 128] = u32((f32(lane) + n) * 1024.0)
    out[lane + 192] = u32(n * 1e38)
    out[lane + 256] = u32(1.0 / n < 0.0)
    out[lane + 320] = u32(max(n, f32(lane)))


def double(out: ptr[u32], lane: Lane[u32], n: f64) -> None:
    out[lane] = u32(f64(lane) * n)
    out[lane + 64] = u32(n < 1.0) + 2 * u32(n == 0.0)
    out[lane + 128] = u32((f64(lane) + n) * 1024.0)
    out[lane + 192] = u32(n * 1e308)
    out[lane + 256] = u32(f64(lane) < n)
    out[lane + 320] = u32(n * n)


def two(out: ptr[u32], lane: Lane[u32], a: u32, flag: bool_, b: u32) -> None:
    out[lane] = a - b if flag else b - a
    out[lane + 64] = u32(a == b)
    out[lane + 128] = lane + a * b
    out[lane + 192] = a if lane > b else b
    out[lane + 256] = a & b
    out[lane + 320] = a | b


CASES: tuple[tuple[Callable[..., None], Sequence[tuple[Any, ...]]], ...] = (
    (unsigned, [(n,) for n in BITS32]),
    (signed, [(n,) for n in (0, 1, 64, -1, -16, -17, 65, -(1 << 31), (1 << 31) - 1)]),
    (wide, [(n,) for n in BITS64]),
    (single, [(n,) for n in (0.0, -0.0, 1.0, -1.0, 0.5, 4.0, 1e-40, -1e-45, 3.4e38, 0.1, 0.15915493667125702)]),
    (double, [(n,) for n in (0.0, -0.0, 1.0, -4.0, 5e-324, 1e300, 0.1)]),
    (two, [(a, flag, b) for a in (0, 1, 0xFFFFFFFF) for flag in (True, False) for b in (0, 1, 77)]),
)


class Observer(Tool):
    """Calls a hook for each set of constants; what it leaves goes to a place of its own."""

    def __init__(self, hook: Hook, calls: Sequence[tuple[Any, ...]]) -> None:
        super().__init__()
        self.hook, self.calls = hook, calls
        self.out = Variable(u32, len(calls) * LANES * WORDS, name="observed")

    def instrument(self, m: Mutator) -> None:
        for number, call in enumerate(self.calls):
            m.at_entry(m.kernels[0], self.hook, self.out[number * LANES * WORDS], vgpr(0), *call)


def observe(tool: Observer) -> tuple[bytes, int]:
    """What the hook left, and how many payloads there were."""
    made = instrument(KERNEL.read_bytes(), tool)
    device = EmulatorDevice(made.obj.target)
    module = device.load(made.data)
    buffers = [device.alloc(4 * LANES) for _ in range(3)]
    handle = module.kernel(made.patched.report[0].clone)
    kernarg = pack_arguments(handle.record, [b.address for b in buffers], (1, 1, 1), (LANES, 1, 1))
    device.launch(handle, (1, 1, 1), (LANES, 1, 1), kernarg)
    place = module.variable("observed")
    return device.read(place.address, place.size), len({payload_key(i) for i in made.edits.insertions})


@pytest.mark.parametrize("function, calls", CASES, ids=[function.__name__ for function, _ in CASES])
def test_fields_hold_what_would_be_folded(function: Callable[..., None], calls: Sequence[tuple[Any, ...]]) -> None:
    folded, sets = observe(Observer(hook(fold=True)(function), calls))
    assert sets == len(calls)
    patched, shapes = observe(Observer(hook(fold=False)(function), calls))
    assert shapes == (2 if function is two else 1)  # what is yes or no is always folded
    words = len(calls) * LANES * WORDS
    assert struct.unpack(f"<{words}I", patched) == struct.unpack(f"<{words}I", folded) and any(patched)


@hook
def bump(out: ptr[u32], site: u32, few: u32) -> None:
    atomic_add(out + site, few)


def recorded(calls: Sequence[tuple[Any, ...]], what: Hook = bump) -> tuple[Insertion, ...]:
    class Calls(Tool):
        out = Variable(u32)

        def instrument(self, m: Mutator) -> None:
            for call in calls:
                m.at_entry(m.kernels[0], what, self.out, *call)

    program = lift(load(KERNEL.read_bytes()))
    return visit(Calls(), program, analyse(program)).insertions


def test_few_constants_are_folded_and_many_are_not() -> None:
    few = recorded([(n, 1) for n in range(8)])
    assert len({payload_key(i) for i in few}) == 8 and not any(i.fields for i in few)
    many = recorded([(n, n % 3) for n in range(40)])
    assert len({payload_key(i) for i in many}) == 3 and {i.fields for i in many} == {frozenset({1})}


def test_the_author_may_choose() -> None:
    @hook(fold=("site",))
    def chosen(out: ptr[u32], site: u32, few: u32) -> None:
        atomic_add(out + site, few)

    found = recorded([(n, 5) for n in range(20)], chosen)
    assert len({payload_key(i) for i in found}) == 20 and {i.fields for i in found} == {frozenset({2})}
    with pytest.raises(HookError, match=r"fold=\('place',\): the hook has no parameter place"):

        @hook(fold=("place",))
        def wrong(out: ptr[u32], site: u32) -> None:
            out[site] = 0
