"""What tests of matrix instructions share: values, and where elements lie as AMD's lab notes have them.

There the lanes of a wave are threads (x, y) with x below the size of a block: A[x][k], B[k][x], and D's rows in steps
of four over registers and y.
"""

from __future__ import annotations

import itertools

import numpy as np
from reference.small import FORMATS

RNG = np.random.default_rng(3)
BYTES = {"f32": 4, "xf32": 4, "f16": 2, "bf16": 2, "i8": 1, "f64": 8, "fp8": 1, "bf8": 1}


def values(kind, shape):
    if kind == "i8":
        return RNG.integers(-128, 128, shape).astype(np.int8)
    if kind in ("fp8", "bf8"):  # codes of numbers below 16, but 0: with a sign that is a NaN of some targets
        codes = RNG.integers(1, 0x50 if kind == "fp8" else 0x4C, shape) | RNG.integers(0, 2, shape) << 7
        return codes.astype(np.uint8)
    if kind == "f16":
        return RNG.normal(size=shape).astype(np.float16)
    numbers = RNG.normal(size=shape).astype(np.float64 if kind == "f64" else np.float32)
    if kind == "bf16":
        numbers = (numbers.view(np.uint32) & 0xFFFF0000).view(np.float32)
    return numbers


def exact_values(matrix, kind, fnuz, exact):
    """What the instruction computes with."""
    if kind == "xf32":
        return (matrix.view(np.uint32) & 0xFFFFE000).view(np.float32).astype(exact)
    if kind in ("fp8", "bf8"):
        small = FORMATS[f"{kind} fnuz" if fnuz else kind]
        return np.array([float(small.number(code) or 0) for code in range(256)])[matrix]
    return matrix.astype(exact)


def place_source(matrix, size, blocks, per_lane, kind):
    """(block, row, k) -> what each lane's registers hold."""
    depth = matrix.shape[2]
    lanes = np.zeros((64, per_lane), matrix.dtype)
    for b, i, k in itertools.product(range(blocks), range(size), range(depth)):
        lanes[i + size * (b + blocks * (k // per_lane)), k % per_lane] = matrix[b, i, k]
    if kind == "bf16":
        lanes = (lanes.view(np.uint32) >> 16).astype(np.uint16)
    words = np.ascontiguousarray(lanes).view(np.uint32).reshape(64, -1)
    return {number: np.ascontiguousarray(words[:, number]) for number in range(words.shape[1])}


def result_place(size, kind, i, j, b):
    """(lane, register) of D[i][j] of block b."""
    if kind == "f64":
        return (j + 16 * (i % 4), i // 4) if size == 16 else (j + 4 * b + 16 * i, 0)
    if size == 4:
        return j + 4 * b, i
    groups = 64 // size
    return j + size * (i // 4 % groups), i % 4 + 4 * (i // (4 * groups)) + size * size // 64 * b
