"""GEMMs of rocBLAS against NumPy: each precision, each way its matrices may be transposed, one and in a batch.

In: the folder of its libraries; sizes as words (M N K), or none. Out: a line for each; PASSED. Types and names are
those of rocblas-types.h and rocblas-functions.h. Sizes are odd, so that lanes at the edges have nothing to do.
"""

from __future__ import annotations

import ctypes
import itertools
import sys

import numpy as np
from on_device import OnDevice, checked, compare, library

BLAS = library("librocblas")
SIZES = tuple(map(int, sys.argv[2:])) or (65, 33, 47)
OPERATIONS = {"N": 111, "T": 112, "C": 113}
PLAIN = {"s": (np.float32, 1e-5), "d": (np.float64, 1e-13), "h": (np.float16, 2e-2), "c": (np.complex64, 1e-5),
         "z": (np.complex128, 1e-13)}
MIXED = {"f16": (150, np.float16, 2e-3), "bf16": (168, np.uint16, 2e-2)}  # rocblas_gemm_ex computes in f32
COMPUTED_IN_F32 = 151
BATCH = 3


def narrowed(values: np.ndarray, kind: type) -> np.ndarray:
    """``uint16``: bf16, by its bits."""
    if kind is np.uint16:
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(kind)


def widened(values: np.ndarray) -> np.ndarray:
    if values.dtype == np.uint16:
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.complex128 if np.iscomplexobj(values) else np.float64)


def operand(matrix: np.ndarray, operation: str) -> np.ndarray:
    return {"N": matrix, "T": matrix.swapaxes(-1, -2), "C": matrix.conj().swapaxes(-1, -2)}[operation]


def matrices(kind: type, transposed: str, count: int) -> list[np.ndarray]:
    """A, B and C of ``count`` products, as rows of columns: rocBLAS has them by column."""
    rng, (m, n, k) = np.random.default_rng(1), SIZES
    shapes = [(m, k) if transposed[0] == "N" else (k, m), (k, n) if transposed[1] == "N" else (n, k), (m, n)]
    values = [rng.standard_normal((count, *shape)) for shape in shapes]
    if np.issubdtype(kind, np.complexfloating):
        values = [value + 1j * rng.standard_normal(value.shape) for value in values]
    return [np.ascontiguousarray(narrowed(value, kind).swapaxes(-1, -2)) for value in values]


def multiply(handle: ctypes.c_void_p, name: str, transposed: str, count: int) -> None:
    mixed, (m, n, k) = name in MIXED, SIZES
    kind = MIXED[name][1] if mixed else PLAIN[name][0]
    arrays = matrices(kind, transposed, count)
    a, b, c = (OnDevice(array) for array in arrays)
    wanted = [widened(array).swapaxes(-1, -2) for array in arrays]
    expected = 1.5 * operand(wanted[0], transposed[0]) @ operand(wanted[1], transposed[1]) + 0.5 * wanted[2]
    alpha, beta = (np.array([factor], np.float32 if mixed else kind) for factor in (1.5, 0.5))
    leading = [array.shape[-1] for array in arrays]
    strides = [ctypes.c_int64(array[0].size) for array in arrays]
    head = handle, *(OPERATIONS[way] for way in transposed), m, n, k, ctypes.c_void_p(alpha.ctypes.data)
    factor = ctypes.c_void_p(beta.ctypes.data)
    if mixed:
        of = MIXED[name][0]
        status = BLAS.rocblas_gemm_ex(*head, a.place, of, leading[0], b.place, of, leading[1], factor, c.place, of,
                                      leading[2], c.place, of, leading[2], COMPUTED_IN_F32, 0, 0, 0)
    elif count == 1:
        status = getattr(BLAS, f"rocblas_{name}gemm")(*head, a.place, leading[0], b.place, leading[1], factor, c.place,
                                                      leading[2])
    else:
        status = getattr(BLAS, f"rocblas_{name}gemm_strided_batched")(
            *head, a.place, leading[0], strides[0], b.place, leading[1], strides[1], factor, c.place, leading[2],
            strides[2], count)
    checked(status, f"{name} {transposed}")
    most = (MIXED[name] if mixed else PLAIN[name])[-1]
    compare(f"{name} {transposed} x{count}", widened(c.back()).swapaxes(-1, -2), expected, most)


def main() -> None:
    handle = ctypes.c_void_p()
    checked(BLAS.rocblas_create_handle(ctypes.byref(handle)), "rocblas_create_handle")
    cases = [(name, f"{a}{b}", 1) for name, a, b in itertools.product((*PLAIN, *MIXED), "NT", "NT")]
    cases += [(name, "CN", 1) for name in "cz"] + [(name, "NN", BATCH) for name in "sdhcz"]
    for case in cases:
        multiply(handle, *case)
    print("PASSED")


if __name__ == "__main__":
    main()
