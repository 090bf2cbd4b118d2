"""More kernels that Triton compiles for the device: dot products of small floats, scans, sorting, atomics.

argv: a file for results. Says PASSED when NumPy gets the same, else a line for each kernel that differs or fails.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import triton
import triton.language as tl
from foreign_numbers import Comparison
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton_program import multiply, softmax

from luthier_py.base.errors import LuthierError
from luthier_py.emulator.interface import pack_arguments
from luthier_py.host.hip.device import HipDevice

WARPS = 4


@triton.jit
def multiply_bytes(a, b, out, columns, inner, WIDTH: tl.constexpr, STEP: tl.constexpr):  # noqa: ANN001, ANN201, N803
    row, column = tl.arange(0, WIDTH)[:, None], tl.arange(0, WIDTH)[None, :]
    total = tl.zeros((WIDTH, WIDTH), dtype=tl.int32)
    for start in range(0, inner, STEP):
        step = start + tl.arange(0, STEP)
        total += tl.dot(tl.load(a + row * inner + step[None, :]), tl.load(b + step[:, None] * columns + column),
                        out_dtype=tl.int32)
    tl.store(out + row * columns + column, total)


@triton.jit
def larger(a, b):  # noqa: ANN001, ANN201
    return tl.maximum(a, b)


@triton.jit
def scan(values, sums, most, WIDTH: tl.constexpr):  # noqa: ANN001, ANN201, N803
    place = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    value = tl.load(values + place)
    tl.store(sums + place, tl.cumsum(value, 0))
    tl.store(most + place, tl.associative_scan(value, 0, larger))


@triton.jit
def sort(values, out, where, WIDTH: tl.constexpr):  # noqa: ANN001, ANN201, N803
    place = tl.arange(0, WIDTH)
    value = tl.load(values + tl.program_id(0) * WIDTH + place)
    tl.store(out + tl.program_id(0) * WIDTH + place, tl.sort(value))
    tl.store(where + tl.program_id(0), tl.argmax(value, 0))


@triton.jit
def atomics(values, counts, most, total, bits, n, WIDTH: tl.constexpr):  # noqa: ANN001, ANN201, N803
    place = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    there = place < n
    value = tl.load(values + place, mask=there, other=0)
    tl.atomic_add(counts + value % 7, 1, mask=there)
    tl.atomic_max(most + value % 5, value, mask=there)
    tl.atomic_add(total + value % 3, value.to(tl.float32), mask=there)
    tl.atomic_xor(bits + value % 2, value, mask=there)


@triton.jit
def mathematics(values, out, n, WIDTH: tl.constexpr):  # noqa: ANN001, ANN201, N803
    place = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    x = tl.load(values + place)
    y = tl.sqrt(tl.abs(x)) + tl.sin(x) * tl.cos(x) + tl.log(tl.abs(x) + 1) - tl.exp2(x) + tl.sigmoid(x) + tl.erf(x)
    tl.store(out + place, y + tl.floor(x) + tl.where(x > 0, x, -x) / 3.0)


KINDS = {"fp32": "f32", "fp16": "f16", "bf16": "bf16", "fp8e4b8": "f8E4M3FNUZ", "fp8e5b16": "f8E5M2FNUZ",
         "fp8e4nv": "f8E4M3FN", "fp8e5": "f8E5M2"}  # fmt: skip
"""As MLIR calls them."""


class Bench(Comparison):
    """Mutable: results so far, and what was wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.device = HipDevice()
        self.wave = self.device.target.wave_sizes[0]

    def run(self, name: str, function: Any, types: Sequence[str], grid: tuple[int, int],
            values: Sequence[np.ndarray | int], **constants: int) -> list[np.ndarray]:
        names = [*function.arg_names[: len(types)], *constants]
        signature = dict(zip(names, [*types, *["constexpr"] * len(constants)], strict=True))
        source = ASTSource(fn=function, signature=signature, constexprs=constants)
        target = GPUTarget("hip", self.device.target.name, self.wave)
        made = triton.compile(source, target=target, options={"num_warps": WARPS})
        kernel, lds = self.device.load(made.asm["hsaco"]).kernel(made.metadata.name), made.metadata.shared
        arrays = [value for value in values if isinstance(value, np.ndarray)]
        buffers = [self.device.alloc(array.nbytes) for array in arrays]
        for array, buffer in zip(arrays, buffers, strict=True):
            self.device.write(buffer.address, array.tobytes())
        rest = iter(buffers)
        arguments = [next(rest) if isinstance(value, np.ndarray) else value for value in values]
        block = (WARPS * self.wave, 1, 1)
        packed = pack_arguments(kernel.record, [*arguments, 0, 0], (*grid, 1), block, lds)
        self.device.launch(kernel, (*grid, 1), block, packed, lds)
        self.device.synchronize()
        found = [np.frombuffer(self.device.read(buffer.address, array.nbytes), array.dtype).reshape(array.shape)
                 for array, buffer in zip(arrays, buffers, strict=True)]
        self.results |= {f"{name} {number}": array for number, array in enumerate(found)}
        return found


def softmaxes(bench: Bench) -> None:
    rows = bench.random.standard_normal((7, 401)).astype(np.float32)
    _, out = bench.run("softmax", softmax, ("*fp32", "*fp32", "i32"), (7, 1), (rows, np.zeros_like(rows), 401),
                       WIDTH=512)
    powers = np.exp(rows - rows.max(1, keepdims=True))
    bench.near("softmax", out, powers / powers.sum(1, keepdims=True), 1e-6)


def dots(bench: Bench, kind: str) -> None:
    (a, left), (b, right) = (bench.floats(KINDS[kind], shape) for shape in ((64, 64), (64, 128)))
    out = bench.run(f"dot {kind}", multiply, (f"*{kind}", f"*{kind}", "*fp32", "i32", "i32"), (1, 2),
                    (a, b, np.zeros((64, 128), np.float32), 128, 64), WIDTH=64, STEP=32)[2]
    error = 1e-3 if kind == "fp32" else 2e-6  # Triton takes xf32 for it, of which 10 bits behind the first count
    bench.near(f"dot {kind}", out, left @ right, error * float((np.abs(left) @ np.abs(right)).max()))


def bytes_dot(bench: Bench) -> None:
    a, b = (bench.random.integers(-128, 128, shape).astype(np.int8) for shape in ((32, 64), (64, 32)))
    out = bench.run("dot int8", multiply_bytes, ("*i8", "*i8", "*i32", "i32", "i32"), (1, 1),
                    (a, b, np.zeros((32, 32), np.int32), 32, 64), WIDTH=32, STEP=32)[2]
    bench.near("dot int8", out, a.astype(int) @ b.astype(int), 0)


def scans(bench: Bench) -> None:
    values = bench.random.integers(-1000, 1000, 2048).astype(np.int32)
    _, sums, most = bench.run("scan", scan, ("*i32",) * 3, (2, 1), (values, values * 0, values * 0), WIDTH=1024)
    parts = values.reshape(2, 1024)
    bench.near("scan: sums", sums, np.cumsum(parts, 1).ravel(), 0)
    bench.near("scan: largest", most, np.maximum.accumulate(parts, 1).ravel(), 0)


def sorts(bench: Bench) -> None:
    values = bench.random.standard_normal((3, 256)).astype(np.float32)
    out, where = bench.run("sort", sort, ("*fp32", "*fp32", "*i32"), (3, 1),
                           (values, values * 0, np.zeros(3, np.int32)), WIDTH=256)[1:]
    bench.near("sort", out, np.sort(values, 1), 0)
    bench.near("sort: largest", where, values.argmax(1), 0)


def counts(bench: Bench) -> None:
    values, n = bench.random.integers(0, 1000, 1500).astype(np.int32), 1500
    found = bench.run("atomics", atomics, ("*i32", "*i32", "*i32", "*fp32", "*i32", "i32"), (2, 1),
                      (values, np.zeros(7, np.int32), np.zeros(5, np.int32), np.zeros(3, np.float32),
                       np.zeros(2, np.int32), n), WIDTH=1024)[1:]
    wanted = [np.bincount(values % 7), [values[values % 5 == k].max() for k in range(5)],
              [values[values % 3 == k].sum() for k in range(3)],
              [np.bitwise_xor.reduce(values[values % 2 == k]) for k in range(2)]]
    for name, got, right in zip(("counts", "largest", "sums", "bits"), found, wanted, strict=True):
        bench.near(f"atomics: {name}", got, np.array(right), 0)


def functions(bench: Bench) -> None:
    x = bench.random.uniform(-6, 6, 1024).astype(np.float32)
    _, out = bench.run("mathematics", mathematics, ("*fp32", "*fp32", "i32"), (2, 1), (x, x * 0, 1024), WIDTH=512)
    v = x.astype(float)
    wanted = np.sqrt(np.abs(v)) + np.sin(v) * np.cos(v) + np.log(np.abs(v) + 1) - np.exp2(v) + 1 / (1 + np.exp(-v))
    wanted = wanted + np.vectorize(math.erf)(v) + np.floor(v) + np.abs(v) / 3
    bench.near("mathematics", out, wanted, 3e-5)


def main() -> None:
    bench = Bench()
    target = bench.device.target
    eighths = {"gfx942": ("fp8e4b8", "fp8e5b16"), "gfx950": ("fp8e4nv", "fp8e5"), "gfx1201": ("fp8e4nv", "fp8e5"),
               "gfx1250": ("fp8e4nv", "fp8e5")}.get(target.name, ())  # fmt: skip
    tasks = [(softmaxes,), *((dots, kind) for kind in ("fp32", "fp16", "bf16", *eighths)), (bytes_dot,), (scans,),
             (sorts,), (counts,), (functions,)]
    for task, *arguments in tasks:
        try:
            task(bench, *arguments)
        except (LuthierError, RuntimeError, triton.TritonError) as error:  # the device is of no use after it
            bench.wrong.append(f"{task.__name__} {' '.join(arguments)}: {type(error).__name__}: {error}"[:300])
            break
    bench.end(sys.argv[1] if len(sys.argv) > 1 else None)


main()
