"""Tables of vector instructions against plain Python, one lane at a time.

In: cases: how an instruction is written, and what it computes on Python integers (the operands' bits).
Out: a comparison of every lane on edge values and random ones.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from waves import ISA, MODE, run

from luthier_py.isa import vgpr

LANES = 64
EDGES = {
    16: [0, 1, 2, 15, 16, 17, 0x7FFF, 0x8000, 0x8001, 0xFFFF, 0x3C00, 0xBC00, 0x7BFF, 0x0400, 0x03FF, 0x7C00],
    32: [0, 1, 2, 3, 7, 15, 16, 31, 32, 33, 63, 64, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0xFFFFFF,
         0x800000, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF, 0x55555555, 0xAAAAAAAA],
    64: [0, 1, 31, 32, 33, 63, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1,
         0x123456789ABCDEF0],
}
FLOAT_EDGES = {
    16: [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        1.5,
        2.5,
        -2.5,
        65504.0,
        6e-8,
        -6e-8,
        6.1e-5,
        math.inf,
        -math.inf,
        math.nan,
        1024.5,
    ],
    32: [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        1.5,
        2.5,
        -2.5,
        -0.5,
        3.4e38,
        -3.4e38,
        1e-45,
        -1e-45,
        1.2e-38,
        1e-40,
        math.inf,
        -math.inf,
        math.nan,
        4294967296.0,
        2147483648.0,
        -2147483649.0,
        0.99999994,
        8388609.0,
        1e10,
        1e-10,
    ],
    64: [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        2.5,
        -2.5,
        1.7e308,
        5e-324,
        -5e-324,
        2.3e-308,
        1e-310,
        math.inf,
        -math.inf,
        math.nan,
        4294967296.0,
        -2147483649.0,
        1e300,
        1e-300,
    ],
}
CODES = {16: "<e", 32: "<f", 64: "<d"}


@dataclass(frozen=True)
class Case:
    """One instruction: widths of its sources, width of its result, and the result by Python."""

    name: str
    sources: tuple[int, ...]
    result: int
    compute: Callable[..., int]
    modifiers: dict[str, int] = field(default_factory=dict)
    same: Callable[[int, int], bool] | None = None  # how results compare; bit for bit without it


def bits_of(value: float, width: int) -> int:
    """The nearest float of that width, as bits; too large is infinity."""
    if width == 64 or not math.isfinite(value):
        return int.from_bytes(struct.pack(CODES[width], value), "little")
    kind = {16: np.float16, 32: np.float32}[width]
    with np.errstate(over="ignore"):
        return int.from_bytes(kind(value).tobytes(), "little")


def float_of(bits: int, width: int) -> float:
    result: float = struct.unpack(CODES[width], bits.to_bytes(width // 8, "little"))[0]
    return result


def signed(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> width - 1 else value


def samples(width: int, seed: int, floats: bool) -> list[int]:
    """64 operands: edges first, in an order that the seed decides, then random bits or numbers."""
    rng = np.random.default_rng(seed)
    edges = [bits_of(x, width) for x in FLOAT_EDGES[width]] if floats else list(EDGES[width])
    rng.shuffle(edges)
    while len(edges) < LANES:
        if floats and rng.random() < 0.7:
            edges.append(bits_of(float(rng.normal() * 10.0 ** rng.integers(-3, 4)), width))
        else:
            edges.append(int.from_bytes(rng.bytes(width // 8), "little"))
    chosen = edges[:LANES]
    rng.shuffle(chosen)
    return chosen


def nan_or_equal(width: int) -> Callable[[int, int], bool]:
    """Equal bits, or both NaN."""
    return lambda a, b: a == b or (math.isnan(float_of(a, width)) and math.isnan(float_of(b, width)))


def close(width: int, ulps: int) -> Callable[[int, int], bool]:
    """Within ``ulps`` units in the last place."""
    same = nan_or_equal(width)
    return lambda a, b: same(a, b) or (a >> width - 1 == b >> width - 1 and abs(a - b) <= ulps)


def check(cases: Sequence[Case], floats: bool = False, mode: int = MODE, seeds: Sequence[int] = (1, 2, 3)) -> None:
    """Run all cases on the same registers and compare."""
    code: list[Any] = []
    places = []
    target = 32
    for case in cases:
        operands = [
            vgpr(4 * i + {64: 0, 32: 2, 16: 3}[width], width // 32 or 1) for i, width in enumerate(case.sources)
        ]
        dwords = 2 if case.result == 64 else 1
        target += target % 2
        code.append(ISA.make(case.name, vgpr(target, dwords), *operands, **case.modifiers))
        places.append(target)
        target += dwords
    assert target <= 256, "too many cases for one run"
    for seed in seeds:
        values = [{width: samples(width, 10 * seed + i, floats) for width in (64, 32, 16)} for i in range(3)]
        registers: dict[int, Any] = {}
        for i, of_width in enumerate(values):
            registers[4 * i] = np.array(of_width[64], np.uint64)
            registers[4 * i + 2] = np.array(of_width[32], np.uint32)
            registers[4 * i + 3] = np.array(of_width[16], np.uint32)
        state = run(code, vgprs=registers, mode=mode)
        for case, place in zip(cases, places, strict=True):
            _compare(case, state.vgpr(place, np.uint64 if case.result == 64 else np.uint32), values, seed)


def _compare(case: Case, actual: Any, values: list[dict[int, list[int]]], seed: int) -> None:
    for lane in range(LANES):
        operands = [values[i][width][lane] for i, width in enumerate(case.sources)]
        expected = case.compute(*operands) & ((1 << max(case.result, 32)) - 1)
        got = int(actual[lane])
        same = case.same or (lambda a, b: a == b)
        shown = ", ".join(f"0x{operand:x}" for operand in operands)
        assert same(got, expected), (
            f"{case.name}({shown}) {case.modifiers}: 0x{got:x}, not 0x{expected:x} (seed {seed})"
        )
