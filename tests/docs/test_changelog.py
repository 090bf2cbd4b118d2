"""The changelog says nothing twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

PAGE = Path(__file__).parents[2] / "CHANGELOG.md"


def test_no_change_stands_twice() -> None:
    bullets = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("* ")]
    assert len(bullets) > 50 and [line for line, times in Counter(bullets).items() if times > 1] == []
