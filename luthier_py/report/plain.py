"""What all reports are made of: plain data, which JSON can hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

Json = dict[str, Any]
KeyPath = tuple[str, ...]


def is_number(value: Any) -> bool:
    """Whether JSON has it as a number: true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def leaves(value: Any, lists: bool = True, way: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """What is in data, with the keys and indices that lead there; without ``lists`` a list is one leaf."""
    if isinstance(value, Mapping) or lists and isinstance(value, list):
        for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from leaves(inner, lists, (*way, str(key)))
    else:
        yield way, value


def flat(value: Any) -> Json:
    """What is nested under names with points; lists as they are."""
    return {".".join(way): inner for way, inner in leaves(value, lists=False)}


def numbers_like(report: Any, pattern: str) -> list[tuple[KeyPath, float]]:
    """Those of a report that ways like ``pattern`` lead to, with these: ``instructions.*.cycles``."""
    return [(way, value) for way, value in leaves(report) if is_number(value) and fnmatchcase(".".join(way), pattern)]
