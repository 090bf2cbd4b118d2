"""bitsandbytes' kernels for ROCm, as its wheel has them: argv is the library. Says PASSED when NumPy gets the same.

The signatures are those of bitsandbytes/backends/cuda/ops.py (MIT licence).
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import byref, c_bool, c_float, c_int

import numpy as np

BLOCK = 256
NF4 = np.array([  # Dettmers et al., "QLoRA", appendix E
    -1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1], np.float32)  # fmt: skip
FLOAT, HALF = np.float32, np.float16
POINTER, SIZE = ctypes.c_void_p, ctypes.c_size_t
hip = ctypes.CDLL("libamdhip64.so.7", ctypes.RTLD_GLOBAL)
kernels = ctypes.CDLL(sys.argv[1])
random = np.random.default_rng(1)


def device(values: np.ndarray) -> POINTER:
    memory = POINTER()
    assert hip.hipMalloc(byref(memory), SIZE(values.nbytes)) == 0
    assert hip.hipMemcpy(memory, POINTER(values.ctypes.data), SIZE(values.nbytes), 1) == 0
    return memory


def host(memory: POINTER, shape: int | tuple[int, ...], kind: type) -> np.ndarray:
    values = np.empty(shape, kind)
    assert hip.hipMemcpy(POINTER(values.ctypes.data), memory, SIZE(values.nbytes), 2) == 0
    return values


def blockwise() -> None:
    """Eight bits an element: the nearest of 256 levels times the block's largest magnitude, and back."""
    values, levels = normal(8192), np.sort(random.uniform(-1, 1, 256)).astype(FLOAT)
    levels[0], levels[-1] = -1, 1
    count, table = len(values), device(levels)
    largest, codes, back = device(np.zeros(count // BLOCK, FLOAT)), device(np.zeros(count, np.uint8)), device(values)
    kernels.cquantize_blockwise_fp32(table, device(values), largest, codes, c_int(BLOCK), c_int(count))
    kernels.cdequantize_blockwise_fp32(table, codes, largest, back, c_int(BLOCK), c_int(count), None)
    most, code = host(largest, count // BLOCK, FLOAT), host(codes, count, np.uint8)
    assert np.array_equal(most, np.abs(values.reshape(-1, BLOCK)).max(1))
    scaled = (values.reshape(-1, BLOCK) / most[:, None]).ravel()
    assert np.allclose(np.abs(levels[code] - scaled), np.abs(levels[None] - scaled[:, None]).min(1), atol=1e-6)
    assert np.array_equal(host(back, count, FLOAT), (levels[code].reshape(-1, BLOCK) * most[:, None]).ravel())


def four_bits() -> None:
    """A matrix in four bits an element, times a vector: what the stored matrix times the vector is."""
    rows, columns, block = 96, 512, 64
    count = rows * columns
    matrix, vector = device(normal(count)), normal(columns)
    codes, largest = device(np.zeros(count // 2, np.uint8)), device(np.zeros(count // block, FLOAT))
    stored = device(np.zeros(count, FLOAT))
    kernels.cquantize_blockwise_fp32_nf4(None, matrix, largest, codes, c_int(block), c_int(count))
    kernels.cdequantize_blockwise_fp32_nf4(None, codes, largest, stored, c_int(block), c_int(count), None)
    known = host(stored, (rows, columns), FLOAT)
    unit = known.reshape(-1, block) / host(largest, count // block, FLOAT)[:, None]
    assert np.abs(unit.ravel()[:, None] - NF4[None]).min(1).max() < 1e-6
    for kind, name, error in ((FLOAT, "fp32", 1e-6), (HALF, "fp16", 1e-3)):
        out, x = device(np.zeros(rows, kind)), vector.astype(kind)
        getattr(kernels, f"cgemm_4bit_inference_naive_{name}")(
            rows, 1, columns, device(x), codes, largest, device(NF4), out, rows, (columns + 1) // 2, rows,
            block, None)  # fmt: skip
        wanted = known.astype(float) @ x.astype(float)
        assert np.abs(host(out, rows, kind) - wanted).max() < error * np.abs(wanted).max()


def adam() -> None:
    """One step of the optimiser."""
    gradient, values, first, second = normal(4000), normal(4000), normal(4000), np.abs(normal(4000))
    placed = [device(array) for array in (gradient, values, first, second)]
    numbers = [c_float(number) for number in (0, 0, 0.9, 0.99, 0, 0, 1e-8, 0)]
    last = c_int(3), c_float(1e-2), c_float(1), c_bool(False), c_int(4000)
    kernels.cadam32bit_grad_fp32(*placed, None, *numbers, *last)
    first, second = 0.9 * first + 0.1 * gradient, 0.99 * second + 0.01 * gradient**2
    scale = (1 - 0.99**3) ** 0.5
    values = values - 1e-2 * scale / (1 - 0.9**3) * first / (np.sqrt(second) + 1e-8 * scale)
    for memory, wanted in zip(placed[1:], (values, first, second), strict=True):
        assert np.allclose(host(memory, 4000, FLOAT), wanted, atol=1e-6)


def rows_to_bytes() -> None:
    """Eight-bit integers, by the largest magnitude of each row: rocPRIM's reduction."""
    rows, columns = 20, 1000
    matrix = normal(rows * columns).reshape(rows, columns).astype(HALF)
    out, most = device(np.zeros(matrix.shape, np.int8)), device(np.zeros(rows, FLOAT))
    kernels.cint8_vector_quant(device(matrix), out, most, c_float(0), rows, columns, None)
    scale = host(most, rows, FLOAT)
    assert np.array_equal(scale, np.abs(matrix).max(1))
    assert np.array_equal(host(out, matrix.shape, np.int8), np.rint(matrix.astype(FLOAT) * (127 / scale[:, None])))


def normal(count: int) -> np.ndarray:
    return random.standard_normal(count).astype(FLOAT)


for part in (blockwise, four_bits, adam, rows_to_bytes):
    part()
print("PASSED")
