"""rocSPARSE, called as it is installed: argv is an operation. Prints whether NumPy gets the same."""

from __future__ import annotations

import ctypes
import sys
from ctypes import byref

import numpy as np

sparse, hip = ctypes.CDLL("librocsparse.so.0"), ctypes.CDLL("libamdhip64.so.5")
NONE, POINTER, SIZE = 111, ctypes.c_void_p, ctypes.c_size_t  # 111: rocsparse_operation_none
ROWS, COLUMNS = 200, 150
random = np.random.default_rng(5)


def call(name: str, *arguments: object) -> None:
    status = getattr(sparse, name)(*arguments)
    if status:
        sys.exit(f"{name} gave {status}")


def made(kind: str) -> POINTER:
    handle = POINTER()
    call(f"rocsparse_create_{kind}", byref(handle))
    return handle


def device(values: np.ndarray) -> POINTER:
    memory, values = POINTER(), np.ascontiguousarray(values)
    assert hip.hipMalloc(byref(memory), SIZE(max(values.nbytes, 16))) == 0
    assert hip.hipMemcpy(memory, POINTER(values.ctypes.data), SIZE(values.nbytes), 1) == 0
    return memory


def host(memory: POINTER, like: np.ndarray) -> np.ndarray:
    values = np.empty_like(like)
    assert hip.hipMemcpy(POINTER(values.ctypes.data), memory, SIZE(values.nbytes), 2) == 0
    return values


def scratch(name: str, *arguments: object) -> POINTER:
    size = SIZE()
    call(f"{name}_buffer_size", *arguments, byref(size))
    return device(np.zeros(size.value, np.uint8))


def csr(dense: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, row pointers, columns."""
    rows, columns = np.nonzero(dense)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(dense)))])
    return dense[rows, columns], starts.astype(np.int32), columns.astype(np.int32)


def normal(*shape: int) -> np.ndarray:
    return random.standard_normal(shape).astype(np.float32)


handle, general = made("handle"), made("mat_descr")
DENSE = np.where(random.random((ROWS, COLUMNS)) < 0.08, normal(ROWS, COLUMNS), np.float32(0))
VALUES, STARTS, PLACES = csr(DENSE)
ALPHA, BETA = ctypes.c_float(1.5), ctypes.c_float(0.5)


def multiply() -> bool:
    """Matrix times vector, twice: a wave to a row, and by an analysis of the rows."""
    x, y, info = normal(COLUMNS), normal(ROWS), made("mat_info")
    values, starts, places = map(device, (VALUES, STARTS, PLACES))
    call("rocsparse_scsrmv_analysis", handle, NONE, ROWS, COLUMNS, len(VALUES), general, values, starts, places, info)
    right = True
    for how in (None, info):
        out = device(y)
        call("rocsparse_scsrmv", handle, NONE, ROWS, COLUMNS, len(VALUES), byref(ALPHA), general, values, starts,
             places, how, device(x), byref(BETA), out)
        right &= np.allclose(host(out, y), 1.5 * DENSE @ x + 0.5 * y, atol=1e-4)
    return right


def dot() -> bool:
    """Of a sparse and a dense vector: a reduction over work-groups."""
    x, y, places, out = normal(1000), normal(5000), random.choice(5000, 1000, False).astype(np.int32), ctypes.c_float()
    call("rocsparse_sdoti", handle, len(x), device(x), device(places), device(y), byref(out), 0)
    return bool(np.isclose(out.value, x @ y[places], atol=1e-3))


def sort() -> bool:
    """The columns of each row: rocPRIM's segmented sort."""
    order = np.concatenate([np.arange(a, b)[::-1] for a, b in zip(STARTS[:-1], STARTS[1:], strict=True)])
    shuffled = PLACES[order].astype(np.int32)
    places, kept = device(shuffled), device(np.arange(len(VALUES), dtype=np.int32))
    what = handle, ROWS, COLUMNS, len(VALUES)
    buffer = scratch("rocsparse_csrsort", *what, device(STARTS), places)
    call("rocsparse_csrsort", *what, general, device(STARTS), places, kept, buffer)
    return np.array_equal(host(places, PLACES), PLACES) and np.array_equal(shuffled[host(kept, PLACES)], PLACES)


def solve() -> bool:
    """A triangular system: each row's wave waits for the rows that it needs."""
    size = 120
    lower = np.tril(np.where(random.random((size, size)) < 0.1, normal(size, size), np.float32(0)), -1) / 3
    lower += np.diag(random.uniform(1, 2, size)).astype(np.float32)
    values, starts, places = csr(lower)
    right, out, triangle = normal(size), device(normal(size)), made("mat_descr")
    call("rocsparse_set_mat_fill_mode", triangle, 0)
    matrix = triangle, device(values), device(starts), device(places), made("mat_info")
    what = handle, NONE, size, len(values)
    buffer = scratch("rocsparse_scsrsv", *what, *matrix)
    call("rocsparse_scsrsv_analysis", *what, *matrix, 0, 0, buffer)
    call("rocsparse_scsrsv_solve", *what, byref(ALPHA), *matrix, device(right), out, 0, buffer)
    return np.allclose(host(out, right), 1.5 * np.linalg.solve(lower.astype(np.float64), right), atol=1e-3)


print("PASSED" if {"multiply": multiply, "dot": dot, "sort": sort, "solve": solve}[sys.argv[1]]() else "other numbers")
