"""How bytes that differ are told: as which numbers, how many, and which of them are near enough."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from luthier_py.features.replay.differing import (
    SHOWN,
    BufferDifference,
    ComparedBytes,
    DifferentValue,
    difference,
    parse_pointee_type,
)

NAN, INF = math.nan, math.inf


def told(expected: Sequence[Any], got: Sequence[Any], kind: Any = np.float32, declared: str | None = None,
         tolerance: float = 0.0, offset: int = 0) -> BufferDifference | None:
    part = ComparedBytes(offset, np.array(expected, kind).tobytes(), np.array(got, kind).tobytes())
    return difference("out", 0x1000, 64, declared, [part], tolerance)


@pytest.mark.parametrize(("text", "kind"), [
    ("float*", "f32"), ("const unsigned int *__restrict__", "u32"), ("long long const*", "i64"), ("char**", "u64"),
    ("void*", None), ("float", None), ("struct S*", None), ("hip_bfloat16*", "u16"),
])
def test_what_parameters_point_to(text: str, kind: str | None) -> None:
    assert parse_pointee_type(text) == kind


def test_the_first_of_what_differs_and_how_many() -> None:
    """Of all parts together, where they are in the buffer."""
    many = SHOWN + 2
    parts = [ComparedBytes(at, np.zeros(many, np.int32).tobytes(), np.array([0, *range(1, many)], np.int32).tobytes())
             for at in (400, 800)]  # fmt: skip
    found = difference("out", 0x1000, 64, "i32", parts)
    assert found is not None and found.count == 2 * (many - 1) and found.offset == 404 and not found.guessed
    assert found.first == tuple(DifferentValue(400 + 4 * n, 0, n) for n in range(1, SHOWN + 1))
    shown = ", ".join(f"0 became {n} at +0x{400 + 4 * n:x}" for n in range(1, SHOWN + 1))
    assert str(found) == f"out, 64 bytes: {found.count} of i32 differ: {shown}, ..."
    assert difference("out", 0x1000, 64, "i32", [ComparedBytes(0, b"same", b"same")]) is None
    two = [ComparedBytes(at, bytes(4), b"\1\0\0\0") for at in (4, 64)]
    both = difference("out", 0x1000, 64, "i32", two)
    assert both is not None and [each.offset for each in both.first] == [4, 64] and "..." not in str(both)


@pytest.mark.parametrize(("expected", "got", "kind", "said"), [
    ([1.5, 0], [2.5, 0], np.float32, "1 of f32 (a guess) differ: 1.5 became 2.5 at +0x0"),
    ([1, 2], [1, 3], np.uint32, "1 of u32 (a guess) differ: 2 became 3 at +0x4"),
    ([1, 2], [1, 3], np.uint8, "1 of u8 (a guess) differ: 2 became 3 at +0x1"),
    ([1e31], [1.0], np.float32, "1 of u32 (a guess) differ"), ([NAN], [1.0], np.float32, "1 of u32 (a guess) differ"),
])
def test_what_nobody_says_is_guessed(expected: Any, got: Any, kind: Any, said: str) -> None:
    assert said in str(told(expected, got, kind))


def test_what_does_not_fit_its_type_is_bytes() -> None:
    found = told([1, 2, 3, 4], [1, 2, 3, 5], np.uint8, "f32", offset=2)
    assert found is not None and found.first == (DifferentValue(5, 4, 5),)


@pytest.mark.parametrize(("expected", "got", "near"), [
    (100.0, 101.0, True), (100.0, 102.0, False), (-100.0, -101.0, True), (-1.0, 1.0, False), (0.0, -0.0, True),
    (0.0, 1e-30, False), (INF, INF, True), (INF, 3e38, False), (INF, -INF, False), (NAN, -NAN, True), (NAN, 1.0, False),
])
def test_what_is_near_enough(expected: float, got: float, near: bool) -> None:
    """As a share of the greater one; infinities and NaNs are near themselves alone."""
    assert (told([expected], [got], declared="f32", tolerance=0.0100) is None) == near
    same = np.float32(expected).tobytes() == np.float32(got).tobytes()
    assert (told([expected], [got], declared="f32") is None) == same
    assert told([100], [101], np.int32, "i32", tolerance=0.5) is not None, "of floats alone"
