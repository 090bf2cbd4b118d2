"""What every sample kernel computes, in NumPy.

In: one entry for each kernel argument, in order: a buffer's array as it is before the launch, or
a scalar. Out: the expected arrays of the inout and out buffers, in order. Invariant: exact for
integers and where float operations come in one order; elsewhere computed in double precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Inputs = Sequence[Any]


def vector_add(inputs: Inputs) -> list[Array]:
    a, b, _ = inputs
    return [a + b]


def saxpy(inputs: Inputs) -> list[Array]:
    n, a, x, y = inputs
    expected = y.copy()
    expected[:n] = np.float64(np.float32(a)) * x[:n] + y[:n]
    return [expected]


def reduce(inputs: Inputs) -> list[Array]:
    """The same tree as the kernel's, so the same rounding."""
    partial = inputs[0].reshape(-1, 256)
    while partial.shape[1] > 1:
        half = partial.shape[1] // 2
        partial = partial[:, :half] + partial[:, half:]
    return [partial[:, 0]]


def reduce_words(inputs: Inputs) -> list[Array]:
    return [inputs[0].reshape(-1, 256).sum(axis=1, dtype=np.uint32)]


def transpose(inputs: Inputs) -> list[Array]:
    return [inputs[1].T.copy()]


def lds_widths(inputs: Inputs) -> list[Array]:
    """Loads of bytes that are all 1: one of a byte, one of a half, and 15 of words."""
    unit, addresses, _ = inputs
    loaded = np.uint32(0x01 + 0x0101 + 15 * 0x01010101)
    return [np.where(addresses * unit < 12288, loaded, np.uint32(0))]


def matmul(inputs: Inputs) -> list[Array]:
    _, a, b, _ = inputs
    return [(a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)]


def mandelbrot(inputs: Inputs) -> list[Array]:
    width, height, left, top, step, limit, _ = inputs
    left, top, step = np.float32(left), np.float32(top), np.float32(step)
    cr = np.broadcast_to(left + np.arange(width, dtype=np.float32) * step, (height, width))
    ci = np.broadcast_to((top + np.arange(height, dtype=np.float32) * step)[:, None], (height, width))
    zr, zi = np.zeros_like(cr), np.zeros_like(ci)
    times = np.zeros((height, width), dtype=np.uint32)
    inside = np.ones((height, width), dtype=bool)
    for _ in range(limit):
        inside &= zr * zr + zi * zi <= 4
        times += inside
        zr, zi = (
            np.where(inside, zr * zr - zi * zi + cr, zr),
            np.where(inside, np.float32(2) * zr * zi + ci, zi),
        )
    return [times]


def histogram(inputs: Inputs) -> list[Array]:
    n, values, bins = inputs
    return [bins + np.bincount(values[:n] % 64, minlength=64).astype(np.uint32)]


def nbody(inputs: Inputs) -> list[Array]:
    n, softening, bodies, _ = inputs
    position, mass = bodies[:n, :3].astype(np.float64), bodies[:n, 3].astype(np.float64)
    expected = np.empty((n, 4), dtype=np.float32)
    for i in range(n):
        distance = position - position[i]
        pull = mass / (np.square(distance).sum(axis=1) + softening) ** 1.5
        expected[i] = *(distance * pull[:, None]).sum(axis=0), mass[i]
    return [expected]


def bitonic_sort(inputs: Inputs) -> list[Array]:
    return [np.sort(inputs[0].reshape(-1, 512), axis=1).reshape(-1)]


def device_call(inputs: Inputs) -> list[Array]:
    n, values, _ = inputs
    coprime = np.gcd(values[:n, None], np.arange(1, 17, dtype=np.uint32)) == 1
    return [coprime.sum(axis=1).astype(np.uint32)]


def function_pointers(inputs: Inputs) -> list[Array]:
    n, choice, a, b, _ = inputs
    turn = b & 31
    results = [a + b, a * b, a ^ b, a << turn | a >> (32 - turn & 31)]
    return [np.choose(choice[:n] & 3, results)]


def scratch(inputs: Inputs) -> list[Array]:
    n, seeds, _ = inputs
    lane = np.arange(n)
    cards = np.tile(np.arange(64, dtype=np.uint32), (n, 1))
    random = seeds[:n].copy()
    for k in range(63, 0, -1):
        random = random * np.uint32(1664525) + np.uint32(1013904223)
        j = (random >> np.uint32(16)) % np.uint32(k + 1)
        cards[lane, j], cards[:, k] = cards[:, k].copy(), cards[lane, j]
    return [(cards * np.arange(64, dtype=np.uint32)).sum(axis=1, dtype=np.uint32)]
