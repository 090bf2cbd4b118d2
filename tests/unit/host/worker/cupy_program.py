"""CuPy as PyPI has it, against NumPy: arrays, kernels that CuPy writes, kernels of our own. Says PASSED."""

from __future__ import annotations

import cupy
import numpy as np

RANDOM = np.random.default_rng(1)
VALUES = RANDOM.normal(size=(64, 33)).astype(np.float32)
ADD = """
extern "C" __global__ void add(const float *a, const float *b, float *sum, int n)
{
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n)
        sum[i] = a[i] + b[i];
}
"""
SCALE = "template <typename T> __global__ void scale(T *v) { v[threadIdx.x] *= 3; }\n"


def arrays() -> None:
    there = cupy.asarray(VALUES)
    np.testing.assert_array_equal(cupy.asnumpy(there), VALUES)
    np.testing.assert_array_equal(cupy.asnumpy(there[there > 0]), VALUES[VALUES > 0])


def elementwise() -> None:
    there = cupy.asarray(VALUES)
    found = cupy.asnumpy(cupy.sin(there) * 2 + cupy.exp(there))
    np.testing.assert_allclose(found, np.sin(VALUES) * 2 + np.exp(VALUES), rtol=1e-5, atol=1e-6)
    square = cupy.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "squared_difference")
    np.testing.assert_allclose(cupy.asnumpy(square(there, np.float32(5))), (VALUES - 5) ** 2, rtol=1e-6)
    half = VALUES.astype(np.float16)
    np.testing.assert_allclose(cupy.asnumpy(cupy.asarray(half) + cupy.float16(1)), half + np.float16(1), rtol=1e-3)


def reductions() -> None:
    there = cupy.asarray(VALUES)
    np.testing.assert_allclose(cupy.asnumpy(there.sum(axis=0)), VALUES.sum(axis=0), rtol=1e-4, atol=1e-5)
    assert int(there.argmin()) == VALUES.argmin()
    norm = cupy.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
    np.testing.assert_allclose(float(norm(there)), np.sqrt((VALUES.astype(np.float64) ** 2).sum()), rtol=1e-5)
    np.testing.assert_array_equal(cupy.asnumpy(cupy.sort(there.ravel())), np.sort(VALUES.ravel()))


def own_kernels() -> None:
    count = 100
    left, total = cupy.arange(count, dtype=cupy.float32), cupy.zeros(count, cupy.float32)
    cupy.RawKernel(ADD, "add")((2,), (64,), (left, left, total, np.int32(count)))
    np.testing.assert_array_equal(cupy.asnumpy(total), 2 * np.arange(count))
    module = cupy.RawModule(code=SCALE, options=("-std=c++17",), name_expressions=["scale<int>", "scale<double>"])
    for name, kind in (("scale<int>", cupy.int32), ("scale<double>", cupy.float64)):
        values = cupy.arange(10, dtype=kind)
        module.get_function(name)((1,), (10,), (values,))
        np.testing.assert_array_equal(cupy.asnumpy(values), 3 * np.arange(10))


arrays()
elementwise()
reductions()
own_kernels()
print("PASSED")
