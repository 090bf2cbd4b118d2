"""rocRAND, called as it is installed: argv is a generator. Prints whether NumPy gets the same numbers, bit for bit."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

import numpy as np

PHILOX, SOBOL = 404, 501  # rocrand_rng_type
N, SEED = 5000, 0x1234_5678_9ABC
UINT, SIZE, POINTER = np.uint32, ctypes.c_size_t, ctypes.c_void_p


def philox() -> np.ndarray:
    """Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3")."""
    low = np.uint64(0xFFFFFFFF)
    counter = np.zeros((4, N // 4), np.uint64)
    counter[0] = np.arange(N // 4)
    keys = [SEED & 0xFFFFFFFF, SEED >> 32]
    for _ in range(10):
        a, b = counter[0] * np.uint64(0xD2511F53), counter[2] * np.uint64(0xCD9E8D57)
        left, right = (np.uint64(key) for key in keys)
        counter = np.array([(b >> 32) ^ counter[1] ^ left, b & low, (a >> 32) ^ counter[3] ^ right, a & low])
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter.T.ravel().astype(UINT)


def sobol() -> np.ndarray:
    """The first dimension of Sobol's sequence, in Gray code order: van der Corput's."""
    gray = [i ^ i >> 1 for i in range(N)]
    return np.array([int(f"{code:032b}"[::-1], 2) for code in gray], UINT)


def main(kind: int, expected: Callable[[], np.ndarray]) -> None:
    rocrand, hip = ctypes.CDLL("librocrand.so.1"), ctypes.CDLL("libamdhip64.so.5")
    generator, memory, found = POINTER(), POINTER(), np.empty(N, UINT)
    assert rocrand.rocrand_create_generator(ctypes.byref(generator), kind) == 0
    if kind == PHILOX:
        assert rocrand.rocrand_set_seed(generator, ctypes.c_ulonglong(SEED)) == 0
    assert hip.hipMalloc(ctypes.byref(memory), SIZE(found.nbytes)) == 0
    assert rocrand.rocrand_generate(generator, memory, SIZE(N)) == 0
    assert hip.hipMemcpy(POINTER(found.ctypes.data), memory, SIZE(found.nbytes), 2) == 0
    assert rocrand.rocrand_destroy_generator(generator) == 0
    print("PASSED" if np.array_equal(found, expected()) else "other numbers")


main(*{"philox": (PHILOX, philox), "sobol": (SOBOL, sobol)}[sys.argv[1]])
