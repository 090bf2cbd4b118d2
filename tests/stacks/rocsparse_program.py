"""Products of rocSPARSE against NumPy: a matrix in rows (CSR) with a vector, with its analysis and without, and with a
matrix. Names and numbers are those of rocsparse-types.h and rocsparse-functions.h."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from on_device import OnDevice, checked, compare, library

SPARSE = library("librocsparse")
KINDS = {"s": (np.float32, 1e-5), "d": (np.float64, 1e-13), "c": (np.complex64, 1e-5), "z": (np.complex128, 1e-13)}
PLAIN = 111  # rocsparse_operation_none
ROWS, COLUMNS, VECTORS = 213, 150, 5


def made(name: str) -> ctypes.c_void_p:
    found = ctypes.c_void_p()
    checked(getattr(SPARSE, f"rocsparse_create_{name}")(ctypes.byref(found)), f"rocsparse_create_{name}")
    return found


def normal(rng: np.random.Generator, kind: type, *shape: int) -> np.ndarray:
    values = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return (values if np.issubdtype(kind, np.complexfloating) else values.real).astype(kind)


def matrix(rng: np.random.Generator, kind: type) -> np.ndarray:
    """A tenth of it is not 0; of one row all, of another nothing."""
    whole = normal(rng, kind, ROWS, COLUMNS) * (rng.random((ROWS, COLUMNS)) < 0.1)
    whole[7], whole[9] = 1, 0
    return whole.astype(kind)


def multiply(handle: ctypes.c_void_p, name: str) -> None:
    kind, most = KINDS[name]
    rng = np.random.default_rng(11)
    given = matrix(rng, kind)
    rows, columns = np.nonzero(given)
    values = OnDevice(given[rows, columns])
    begins = OnDevice(np.searchsorted(rows, np.arange(ROWS + 1)).astype(np.int32))
    places = OnDevice(columns.astype(np.int32))
    alpha, beta = np.array([1.5], kind), np.array([0.5], kind)
    scale, keep = (ctypes.c_void_p(factor.ctypes.data) for factor in (alpha, beta))
    described, info, count = made("mat_descr"), made("mat_info"), len(rows)
    stored = described, values.place, begins.place, places.place

    def call(what: str, *words: Any) -> None:
        checked(getattr(SPARSE, f"rocsparse_{name}{what}")(handle, PLAIN, *words), f"{name}{what}")

    call("csrmv_analysis", ROWS, COLUMNS, count, *stored, info)
    x, y = normal(rng, kind, COLUMNS), normal(rng, kind, ROWS)
    for way, known in (("as it is", None), ("analysed", info)):
        there, result = OnDevice(x), OnDevice(y)
        call("csrmv", ROWS, COLUMNS, count, scale, *stored, known, there.place, keep, result.place)
        compare(f"{name} by a vector, {way}", result.back(), 1.5 * given @ x + 0.5 * y, most)

    x, y = normal(rng, kind, VECTORS, COLUMNS), normal(rng, kind, VECTORS, ROWS)  # by column
    there, result = OnDevice(x), OnDevice(y)
    call("csrmm", PLAIN, ROWS, VECTORS, COLUMNS, count, scale, *stored, there.place, COLUMNS, keep, result.place, ROWS)
    compare(f"{name} by a matrix", result.back().T, 1.5 * given @ x.T + 0.5 * y.T, most)


def main() -> None:
    handle = made("handle")
    for name in KINDS:
        multiply(handle, name)
    print("PASSED")


if __name__ == "__main__":
    main()
