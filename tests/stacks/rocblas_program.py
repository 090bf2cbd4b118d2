"""GEMMs of rocBLAS against NumPy: each precision, each way its matrices may be transposed, one and in a batch.

    python rocblas_program.py FOLDER [--sizes M N K] [--only REGEX]

In: the folder of its libraries. Out: a line for each that --only is found in; PASSED. Types and names are those of
rocblas-types.h and rocblas-functions.h. Sizes are odd, so that lanes at the edges have nothing to do.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import re
from typing import NamedTuple

import numpy as np
from gemm import OPERATIONS, by_row, matrices, product
from on_device import OnDevice, checked, compare, library

BLAS = library("librocblas")
PLAIN = {"s": (np.float32, 1e-5), "d": (np.float64, 1e-13), "h": (np.float16, 2e-2), "c": (np.complex64, 1e-5),
         "z": (np.complex128, 1e-13)}
BATCH = 3


class Mixed(NamedTuple):
    """``kinds`` and ``numbers``: of A and B, of C, of what is computed with."""

    kinds: tuple[type, type, type]
    numbers: tuple[int, int, int]
    factors: tuple[float, float]
    most: float


MIXED = {
    "f16": Mixed((np.float16, np.float16, np.float32), (150, 150, 151), (1.5, 0.5), 2e-3),
    "bf16": Mixed((np.uint16, np.uint16, np.float32), (168, 168, 151), (1.5, 0.5), 2e-2),
    "i8": Mixed((np.int8, np.int32, np.int32), (160, 162, 162), (2, 3), 1e-15),
}
"""For rocblas_gemm_ex."""


def multiply(handle: ctypes.c_void_p, sizes: tuple[int, int, int], name: str, transposed: str, count: int) -> None:
    mixed = MIXED.get(name)
    kinds = mixed.kinds if mixed else (PLAIN[name][0],) * 3
    factors, most = (mixed.factors, mixed.most) if mixed else ((1.5, 0.5), PLAIN[name][1])
    arrays = matrices(kinds[:2], transposed, sizes, count)
    a, b, c = (OnDevice(array) for array in arrays)
    expected = factors[0] * product(arrays, transposed) + factors[1] * by_row(arrays[2])
    alpha, beta = (np.array([factor], kinds[2]) for factor in factors)
    leading = [array.shape[-1] for array in arrays]
    strides = [ctypes.c_int64(array[0].size) for array in arrays]
    head = handle, *(OPERATIONS[way] for way in transposed), *sizes, ctypes.c_void_p(alpha.ctypes.data)
    factor = ctypes.c_void_p(beta.ctypes.data)
    if mixed:
        of, result, computed = mixed.numbers
        status = BLAS.rocblas_gemm_ex(*head, a.place, of, leading[0], b.place, of, leading[1], factor, c.place, result,
                                      leading[2], c.place, result, leading[2], computed, 0, 0, 0)
    elif count == 1:
        status = getattr(BLAS, f"rocblas_{name}gemm")(*head, a.place, leading[0], b.place, leading[1], factor, c.place,
                                                      leading[2])
    else:
        status = getattr(BLAS, f"rocblas_{name}gemm_strided_batched")(
            *head, a.place, leading[0], strides[0], b.place, leading[1], strides[1], factor, c.place, leading[2],
            strides[2], count)
    checked(status, f"{name} {transposed}")
    compare(f"{name} {transposed} x{count}", by_row(c.back()), expected, most)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--sizes", nargs=3, type=int, default=(65, 33, 47))
    parser.add_argument("--only", default="", help="of 's NN x1' and the others")
    words = parser.parse_args()
    handle = ctypes.c_void_p()
    checked(BLAS.rocblas_create_handle(ctypes.byref(handle)), "rocblas_create_handle")
    cases = [(name, f"{a}{b}", 1) for name, a, b in itertools.product((*PLAIN, *MIXED), "NT", "NT")]
    cases += [(name, "CN", 1) for name in "cz"] + [(name, "NN", BATCH) for name in "sdhcz"]
    for name, transposed, count in cases:
        if re.search(words.only, f"{name} {transposed} x{count}"):
            multiply(handle, tuple(words.sizes), name, transposed, count)
    print("PASSED")


if __name__ == "__main__":
    main()
