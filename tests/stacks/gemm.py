"""Matrix products that programs ask libraries for: operands, and what NumPy says of them.

In: a type, how operands are transposed, sizes. Out: arrays as the libraries have them, by column. Invariant: bf16 is
uint16 here, by its bits; whole numbers are so small that products of them are exact.
"""

from __future__ import annotations

import numpy as np

OPERATIONS = {"N": 111, "T": 112, "C": 113}  # of rocBLAS and hipBLAS


def narrowed(values: np.ndarray, kind: type) -> np.ndarray:
    if kind is np.uint16:
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(kind)


def widened(values: np.ndarray) -> np.ndarray:
    if values.dtype == np.uint16:
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.complex128 if np.iscomplexobj(values) else np.float64)


def by_row(array: np.ndarray) -> np.ndarray:
    """Of what lies by column, as NumPy's numbers of most bits."""
    return widened(array).swapaxes(-1, -2)


def _operand(matrix: np.ndarray, operation: str) -> np.ndarray:
    return {"N": matrix, "T": matrix.swapaxes(-1, -2), "C": matrix.conj().swapaxes(-1, -2)}[operation]


def matrices(kinds: tuple[type, type], transposed: str, sizes: tuple[int, int, int], count: int) -> list[np.ndarray]:
    """A, B and C of ``count`` products. ``kinds``: of A and B, and of C."""
    rng, (m, n, k) = np.random.default_rng(1), sizes
    shapes = [(m, k) if transposed[0] == "N" else (k, m), (k, n) if transposed[1] == "N" else (n, k), (m, n)]
    values = [rng.standard_normal((count, *shape)) for shape in shapes]
    if np.issubdtype(kinds[0], np.complexfloating):
        values = [value + 1j * rng.standard_normal(value.shape) for value in values]
    if np.issubdtype(kinds[0], np.signedinteger):
        values = [np.round(20 * value) for value in values]
    types = kinds[0], kinds[0], kinds[1]
    return [
        np.ascontiguousarray(narrowed(value, kind).swapaxes(-1, -2)) for value, kind in zip(values, types, strict=True)
    ]


def product(arrays: list[np.ndarray], transposed: str) -> np.ndarray:
    """Of A and B, by row."""
    a, b = (_operand(by_row(array), way) for array, way in zip(arrays, transposed, strict=False))
    return a @ b
