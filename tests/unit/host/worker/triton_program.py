"""Kernels that Triton compiles for the device, launched through hip-python. Says PASSED when NumPy gets the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from luthier_py.emulator.interface import pack_arguments
from luthier_py.host.hip.device import HipDevice

WARPS, WAVE = 4, 64
BLOCK = (WARPS * WAVE, 1, 1)
FLOATS, HALVES, INTS = "*fp32", "*fp16", "*i32"


@triton.jit
def softmax(rows, out, columns, WIDTH: tl.constexpr):  # noqa: ANN001, ANN201, N803
    place = tl.arange(0, WIDTH)
    values = tl.load(rows + tl.program_id(0) * columns + place, mask=place < columns, other=-float("inf"))
    values = tl.exp(values - tl.max(values, 0))
    tl.store(out + tl.program_id(0) * columns + place, values / tl.sum(values, 0), mask=place < columns)


@triton.jit
def multiply(a, b, out, columns, inner, WIDTH: tl.constexpr, STEP: tl.constexpr):  # noqa: ANN001, ANN201, N803
    row = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)[:, None]
    column = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)[None, :]
    total = tl.zeros((WIDTH, WIDTH), dtype=tl.float32)
    for start in range(0, inner, STEP):
        step = start + tl.arange(0, STEP)
        total += tl.dot(tl.load(a + row * inner + step[None, :]), tl.load(b + step[:, None] * columns + column))
    tl.store(out + row * columns + column, total)


@triton.jit
def count(values, counts, sums, n, WIDTH: tl.constexpr):  # noqa: ANN001, ANN201, N803
    place = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    value = tl.load(values + place, mask=place < n, other=0)
    tl.atomic_add(counts + value % 7, 1, mask=place < n)
    tl.store(sums + place, tl.cumsum(value, 0), mask=place < n)


def compiled(device: HipDevice, function: Any, types: Sequence[str], **constants: int) -> tuple[Any, int]:
    """The kernel, and the bytes of LDS that it wants."""
    names = [*function.arg_names[: len(types)], *constants]
    signature = dict(zip(names, [*types, *["constexpr"] * len(constants)], strict=True))
    source = ASTSource(fn=function, signature=signature, constexprs=constants)
    made = triton.compile(source, target=GPUTarget("hip", device.target.name, WAVE), options={"num_warps": WARPS})
    return device.load(made.asm["hsaco"]).kernel(made.metadata.name), made.metadata.shared


def launched(
    device: HipDevice, kernel: tuple[Any, int], grid: tuple[int, int], values: Sequence[np.ndarray | int]
) -> list[np.ndarray]:
    """What the arrays hold afterwards. Two more arguments are Triton's own scratch memory, which these do not use."""
    handle, lds_bytes = kernel
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    buffers = [device.alloc(array.nbytes) for array in arrays]
    for array, buffer in zip(arrays, buffers, strict=True):
        device.write(buffer.address, array.tobytes())
    rest = iter(buffers)
    arguments = [next(rest) if isinstance(value, np.ndarray) else value for value in values]
    packed = pack_arguments(handle.record, [*arguments, 0, 0], (*grid, 1), BLOCK, lds_bytes)
    device.launch(handle, (*grid, 1), BLOCK, packed, lds_bytes)
    device.synchronize()
    return [np.frombuffer(device.read(buffer.address, array.nbytes), array.dtype).reshape(array.shape)
            for array, buffer in zip(arrays, buffers, strict=True)]  # fmt: skip


def main() -> None:
    device, random = HipDevice(), np.random.default_rng(0)
    rows = random.standard_normal((37, 401)).astype(np.float32)
    kernel = compiled(device, softmax, (FLOATS, FLOATS, "i32"), WIDTH=512)
    _, out = launched(device, kernel, (37, 1), (rows, np.zeros_like(rows), 401))
    powers = np.exp(rows - rows.max(1, keepdims=True))
    assert np.allclose(out, powers / powers.sum(1, keepdims=True), atol=1e-6)

    a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((128, 96), (96, 192)))
    kernel = compiled(device, multiply, (HALVES, HALVES, FLOATS, "i32", "i32"), WIDTH=64, STEP=32)
    out = launched(device, kernel, (2, 3), (a, b, np.zeros((128, 192), np.float32), 192, 96))[2]
    assert np.allclose(out, a.astype(np.float32) @ b.astype(np.float32), atol=1e-3)

    values, n = random.integers(0, 1000, 2500).astype(np.int32), 2500
    kernel = compiled(device, count, (INTS, INTS, INTS, "i32"), WIDTH=1024)
    _, counts, sums = launched(device, kernel, (3, 1), (values, np.zeros(7, np.int32), np.zeros(n, np.int32), n))
    assert np.array_equal(counts, np.bincount(values % 7))
    assert np.array_equal(sums, np.concatenate([np.cumsum(values[start : start + 1024]) for start in (0, 1024, 2048)]))
    print("PASSED")


if __name__ == "__main__":
    main()
