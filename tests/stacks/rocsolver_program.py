"""Factorisations of rocSOLVER against NumPy: LU with pivots, and Cholesky. Names are those of rocsolver-functions.h."""

from __future__ import annotations

import ctypes

import numpy as np
from on_device import OnDevice, checked, compare, library

BLAS, SOLVER = library("librocblas"), library("librocsolver")
KINDS = {"s": (np.float32, 1e-4), "d": (np.float64, 1e-12), "c": (np.complex64, 1e-4), "z": (np.complex128, 1e-12)}
LOWER = 122  # rocblas_fill_lower
SIZE = 37
ROWS_OF_CHOLESKY = 33  # with more, rocSOLVER's own kernel has a race where waves have 32 lanes (docs/stacks.md)


def matrix(kind: type, size: int) -> np.ndarray:
    rng = np.random.default_rng(3)
    values = rng.standard_normal((size, size))
    whole = values + 1j * rng.standard_normal(values.shape) * np.issubdtype(kind, np.complexfloating)
    return (whole if np.iscomplexobj(kind(0)) else whole.real).astype(kind)


def by_column(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values.T)


def solve(handle: ctypes.c_void_p, name: str) -> None:
    kind, most = KINDS[name]
    given = matrix(kind, SIZE)
    a, pivots, info = OnDevice(by_column(given)), OnDevice(np.zeros(SIZE, np.int32)), OnDevice(np.ones(1, np.int32))
    status = getattr(SOLVER, f"rocsolver_{name}getrf")(handle, SIZE, SIZE, a.place, SIZE, pivots.place, info.place)
    checked(status, f"{name}getrf")
    found, rows = a.back().T, np.arange(SIZE)
    checked(int(info.back()[0]), f"info of {name}getrf")
    for row, pivot in enumerate(pivots.back() - 1):
        rows[[row, pivot]] = rows[[pivot, row]]
    compare(f"{name}getrf", (np.tril(found, -1) + np.eye(SIZE)) @ np.triu(found), given[rows], most)

    given, size = matrix(kind, ROWS_OF_CHOLESKY), ROWS_OF_CHOLESKY
    definite = (given @ given.conj().T + size * np.eye(size)).astype(kind)
    a = OnDevice(by_column(definite))
    checked(getattr(SOLVER, f"rocsolver_{name}potrf")(handle, LOWER, size, a.place, size, info.place), f"{name}potrf")
    found = np.tril(a.back().T)
    checked(int(info.back()[0]), f"info of {name}potrf")
    compare(f"{name}potrf", found @ found.conj().T, definite, most)


def main() -> None:
    handle = ctypes.c_void_p()
    checked(BLAS.rocblas_create_handle(ctypes.byref(handle)), "rocblas_create_handle")
    for name in KINDS:
        solve(handle, name)
    print("PASSED")


if __name__ == "__main__":
    main()
