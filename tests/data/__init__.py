"""The sample kernels: code objects, how to launch them, and what they must compute.

Installed as ``luthier_py.samples``; ``luthier_py`` finds ``SAMPLES`` through the entry point group of that
name, as it would find anybody's. Invariant: every sample is self-contained: the object, a launch, and a
reference that shares no code with Luthier-py. ``README.md`` says what each one exercises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from . import references
from .references import Array, Inputs

FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Sample:
    """One kernel and one launch of it."""

    name: str
    """Of the kernel, its source and its object."""
    grid: tuple[int, int, int]
    """Work-groups in x, y, z."""
    block: tuple[int, int, int]
    """Work-items of a work-group in x, y, z."""
    args: tuple[str, ...]
    """The kernel's arguments in the command line's syntax: ``in:f32[1024]=random:1``, ``u32=7``."""
    reference: Callable[[Inputs], list[Array]]
    """Every argument before the launch -> the inout and out buffers after it."""
    rtol: float = 0.0
    """Permitted error relative to the largest expected magnitude; 0 means bit for bit."""

    @property
    def kernel(self) -> str:
        return self.name

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.co"

    @property
    def source(self) -> Path:
        return FOLDER / f"{self.name}.hip"

    def agrees(self, actual: Array, expected: Array) -> bool:
        """Whether one output buffer is right."""
        actual = actual.reshape(expected.shape)
        if self.rtol == 0:
            return np.array_equal(actual, expected)
        return np.allclose(actual, expected, rtol=0, atol=self.rtol * float(np.abs(expected).max()))


SAMPLES: tuple[Sample, ...] = (
    Sample(
        "vector_add", (8, 1, 1), (256, 1, 1),
        ("in:f32[2048]=random:1", "in:f32[2048]=random:2", "out:f32[2048]"),
        references.vector_add,
    ),
    Sample(
        "saxpy", (4, 1, 1), (256, 1, 1),
        ("u32=1000", "f32=0.7", "in:f32[1000]=random:1", "inout:f32[1000]=random:2"),
        references.saxpy, rtol=1e-6,
    ),
    Sample(
        "reduce", (8, 1, 1), (256, 1, 1),
        ("in:f32[2048]=random:1", "out:f32[8]"),
        references.reduce,
    ),
    Sample(
        "matmul", (4, 4, 1), (16, 16, 1),
        ("u32=64", "in:f32[64,64]=random:1", "in:f32[64,64]=random:2", "out:f32[64,64]"),
        references.matmul, rtol=1e-5,
    ),
    Sample(
        "mandelbrot", (7, 4, 1), (16, 16, 1),
        ("u32=100", "u32=60", "f32=-2.0", "f32=-1.2", "f32=0.04", "u32=64", "out:u32[60,100]"),
        references.mandelbrot,
    ),
    Sample(
        "histogram", (4, 1, 1), (256, 1, 1),
        ("u32=4000", "in:u32[4000]=random:1", "inout:u32[64]=arange"),
        references.histogram,
    ),
    Sample(
        "nbody", (1, 1, 1), (256, 1, 1),
        ("u32=240", "f32=0.01", "in:f32[240,4]=random:1", "out:f32[240,4]"),
        references.nbody, rtol=1e-4,
    ),
    Sample(
        "bitonic_sort", (2, 1, 1), (256, 1, 1),
        ("inout:u32[1024]=random:1",),
        references.bitonic_sort,
    ),
    Sample(
        "device_call", (4, 1, 1), (256, 1, 1),
        ("u32=1000", "in:u32[1000]=random:1:1:1000", "out:u32[1000]"),
        references.device_call,
    ),
    Sample(
        "function_pointers", (4, 1, 1), (256, 1, 1),
        ("u32=1000", "in:u32[1000]=random:1", "in:u32[1000]=random:2", "in:u32[1000]=random:3", "out:u32[1000]"),
        references.function_pointers,
    ),
    Sample(
        "scratch", (2, 1, 1), (256, 1, 1),
        ("u32=500", "in:u32[500]=random:1", "out:u32[500]"),
        references.scratch,
    ),
    Sample(
        "transpose", (2, 2, 1), (32, 8, 1),
        ("u32=64", "in:u32[64,64]=random:1", "out:u32[64,64]"),
        references.transpose,
    ),
    Sample(
        "transpose_padded", (2, 2, 1), (32, 8, 1),
        ("u32=64", "in:u32[64,64]=random:1", "out:u32[64,64]"),
        references.transpose,
    ),
    Sample(
        "reduce_strided", (8, 1, 1), (256, 1, 1),
        ("in:u32[2048]=random:1", "out:u32[8]"),
        references.reduce_words,
    ),
    Sample(
        "reduce_padded", (8, 1, 1), (256, 1, 1),
        ("in:u32[2048]=random:1", "out:u32[8]"),
        references.reduce_words,
    ),
    Sample(
        "lds_widths", (1, 1, 1), (64, 1, 1),
        ("u32=8", "in:u32[64]=random:1:0:1700", "out:u32[64]"),
        references.lds_widths,
    ),
)


def sample(name: str) -> Sample:
    """The sample called ``name``; KeyError if there is none."""
    return {one.name: one for one in SAMPLES}[name]


def large() -> tuple[Sample, ...]:
    """Launches that keep a device busy, for benchmarks: millions of wave instructions each."""
    return (
        replace(
            sample("nbody"), grid=(32, 1, 1),
            args=("u32=8192", "f32=0.01", "in:f32[8192,4]=random:1", "out:f32[8192,4]"),
        ),
        replace(
            sample("matmul"), grid=(32, 32, 1),
            args=("u32=512", "in:f32[512,512]=random:1", "in:f32[512,512]=random:2", "out:f32[512,512]"),
        ),
    )
