"""Targets as parameters: one of each generation always, all others by night.

Out: what ``pytest.mark.parametrize`` takes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import pytest

from luthier_py.isa import targets

T = TypeVar("T")
ALWAYS = ("gfx803", "gfx90a", "gfx1030", "gfx1100", "gfx1201")
EACH_TARGET = [pytest.param(row, id=row.name, marks=() if row.name in ALWAYS else pytest.mark.slow)
               for row in targets()]


def sometimes(always: Iterable[T], others: Iterable[T]) -> list[Any]:
    """Parameters, of which the others are marked slow."""
    return [*always, *(pytest.param(other, marks=pytest.mark.slow) for other in others)]
