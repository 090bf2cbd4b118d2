"""What is told of buffers that differ: how many elements, and the first of them."""

from __future__ import annotations

import numpy as np
import pytest

from luthier_py.session.differing import ComparedBytes, difference


def compared(count: int, parts: int = 1) -> list[ComparedBytes]:
    """Parts of 16 words, of which the first ``count`` of each became 7."""
    expected = np.zeros(16, np.uint32)
    got = np.where(np.arange(16) < count, 7, 0).astype(np.uint32)
    return [ComparedBytes(64 * part, expected.tobytes(), got.tobytes()) for part in range(parts)]


@pytest.mark.parametrize(("count", "parts", "offsets"), [
    (1, 1, [0]), (4, 1, [0, 4, 8, 12]), (5, 1, [0, 4, 8, 12]), (3, 2, [0, 4, 8, 64]), (9, 3, [0, 4, 8, 12])])
def test_the_first_four_are_told(count: int, parts: int, offsets: list[int]) -> None:
    found = difference("out", 0x1000, 64 * parts, "u32", compared(count, parts))
    assert found is not None and found.count == count * parts
    assert [value.offset for value in found.first] == offsets and found.offset == 0
    text = str(found)
    assert text.count("0 became 7 at +0x") == len(offsets) and text.endswith(", ...") == (count * parts > 4)


def test_what_is_the_same_is_no_difference() -> None:
    assert difference("out", 0, 64, "u32", compared(0)) is None
