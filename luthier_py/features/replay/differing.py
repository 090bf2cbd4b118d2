"""Where memory is not what it was to be.

In: bytes that were expected and those that came, part by part of a buffer. Out: a BufferDifference, with values as the
buffer's type has them. Invariant: bits decide; with a tolerance only floats may be near instead, and a type that is
guessed is marked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luthier_py.base.records import dataclass
from luthier_py.features.run.specs import TYPES

SHOWN = 4
_POINTED = {
    "float": "f32", "double": "f64", "half": "f16", "_Float16": "f16", "__half": "f16", "bool": "u8",
    "char": "i8", "signed char": "i8", "unsigned char": "u8", "short": "i16", "unsigned short": "u16",
    "__hip_bfloat16": "u16", "hip_bfloat16": "u16", "int": "i32", "unsigned int": "u32", "long": "i64",
    "unsigned long": "u64", "long long": "i64", "unsigned long long": "u64",
}  # fmt: skip
"""Types of C++ that elements are read as."""
_LARGE, _SMALL = 1e30, 1e-30
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class ComparedBytes:
    """Bytes of a buffer from ``offset`` on, as they were to be and as they are."""

    offset: int
    expected: bytes
    got: bytes


@dataclass(frozen=True, slots=True)
class DifferentValue:
    """One element that differs."""

    offset: int
    expected: int | float
    got: int | float

    def __str__(self) -> str:
        expected, got = (f"{each:.9g}" if isinstance(each, float) else each for each in (self.expected, self.got))
        return f"{expected} became {got} at +0x{self.offset:x}"


@dataclass(frozen=True, slots=True)
class BufferDifference:
    """``address``: of the buffer when it was recorded. ``count``: elements that differ; ``first`` of these."""

    buffer: str
    address: int
    size: int
    type: str
    guessed: bool
    count: int
    first: tuple[DifferentValue, ...]

    @property
    def offset(self) -> int:
        """Bytes from the buffer's start to the first element that differs."""
        return self.first[0].offset

    def __str__(self) -> str:
        values = ", ".join(map(str, self.first))
        more = ", ..." if self.count > len(self.first) else ""
        kind = f"{self.type}{' (a guess)' if self.guessed else ''}"
        return f"{self.buffer}, {self.size} bytes: {self.count} of {kind} differ: {values}{more}"


def parse_pointee_type(text: str) -> str | None:
    """The type of what a C++ parameter points to, as TYPES names it."""
    if text.count("*") > 1:
        return "u64"
    words = text.replace("*", " ").replace("__restrict__", " ").replace("const", " ").split()
    return _POINTED.get(" ".join(words)) if "*" in text else None


def difference(buffer: str, address: int, size: int, declared: str | None, parts: Sequence[ComparedBytes],
               tolerance: float = 0.0) -> BufferDifference | None:
    """None where they are the same, or near enough. ``parts``: those of the buffer whose bits differ, at least."""
    kind = declared or _guess(parts)
    apart: list[DifferentValue] = []
    count = 0
    for part in parts:
        expected, got, step = _elements(part, kind)
        wrong = np.flatnonzero(_differ(part, expected, got, step, tolerance))
        count += len(wrong)
        apart += [DifferentValue(part.offset + int(at) * step, expected[at].item(), got[at].item())
                  for at in wrong[: SHOWN - len(apart)]]
    return BufferDifference(buffer, address, size, kind, declared is None, count, tuple(apart)) if count else None


def _elements(part: ComparedBytes, kind: str) -> tuple[NDArray[Any], NDArray[Any], int]:
    """As the type has them, or bytes where it does not fit."""
    step = TYPES[kind].itemsize
    whole = part.offset % step == 0 and len(part.expected) % step == 0
    dtype = TYPES[kind] if whole else np.dtype(np.uint8)
    return np.frombuffer(part.expected, dtype), np.frombuffer(part.got, dtype), dtype.itemsize


def _differ(
    part: ComparedBytes, expected: NDArray[Any], got: NDArray[Any], step: int, tolerance: float
) -> NDArray[np.bool_]:
    bits = np.frombuffer(part.expected, np.uint8) != np.frombuffer(part.got, np.uint8)
    differ: NDArray[np.bool_] = bits.reshape(-1, step).any(axis=1)
    if tolerance and expected.dtype.kind == "f":
        with np.errstate(all="ignore"):
            one, other = expected.astype(np.float64), got.astype(np.float64)
            near = np.abs(one - other) <= tolerance * np.maximum(np.abs(one), np.abs(other))
        near &= np.isfinite(one) & np.isfinite(other)
        differ &= ~(near | (one == other) | (np.isnan(one) & np.isnan(other)))
    return differ


def _guess(parts: Sequence[ComparedBytes]) -> str:
    """f32 where all words could well be such."""
    if any((part.offset | len(part.expected)) % 4 for part in parts):
        return "u8"
    words = np.concatenate([np.frombuffer(data, np.float32) for part in parts for data in (part.expected, part.got)])
    sizes = np.abs(words)
    return "f32" if bool(np.all((sizes == 0) | (sizes > _SMALL) & (sizes < _LARGE))) else "u32"
