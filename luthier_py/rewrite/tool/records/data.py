"""Reports as plain data: what JSON, CSV and studies can hold, whatever types a tool made its report of.

In: any value. Out: None, bool, int, finite float, str, and lists and dictionaries of these. Invariant: nothing is
turned into text silently; what has no form here is ToolError, with the way to it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from enum import Enum
from os import PathLike, fspath
from typing import Any

from luthier_py.base.errors import ToolError

NOT_FINITE = ("NaN", "Infinity", "-Infinity")  # texts for floats that JSON's numbers lack, as in protobuf's JSON
TAKEN = "numbers, texts, None, lists, sets, dataclasses, and mappings with texts or integers as keys"


def as_data(value: Any, name: str = "report") -> Any:
    """``value`` as JSON's types. Sets become sorted lists, enums their values, NumPy's arrays and numbers Python's."""
    try:
        return _plain(value, name)
    except RecursionError:
        raise ToolError(f"{name} contains itself, or is too deep") from None


def json_text(value: Any, name: str = "report") -> str:
    """``value`` as JSON for people and programs, strictly as RFC 8259 has it."""
    return json.dumps(as_data(value, name), indent=2, allow_nan=False)


def encoded(text: str) -> bytes:
    """A text for a file; what UTF-8 has not, since names come from programs, is escaped."""
    return text.encode("utf-8", "backslashreplace")


def _plain(value: Any, name: str) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, Enum):
        return _plain(value.value, name)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _not_finite(value)
    if isinstance(value, Mapping):
        return _convert_mapping(value, name)
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{name}[{at}]") for at, item in enumerate(value)]
    if isinstance(value, AbstractSet):
        return _sort_items([_plain(item, f"{name}{{}}") for item in value])
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name), f"{name}.{field.name}") for field in fields(value)}
    if isinstance(value, PathLike):
        return _plain(fspath(value), name)
    if getattr(getattr(value, "dtype", None), "names", None):  # structures of NumPy's
        return [_plain(row, f"{name}[{at}]") for at, row in enumerate(value)] if value.shape else {
            member: _plain(value[member], f"{name}.{member}") for member in value.dtype.names}
    as_python: Callable[[], Any] | None = getattr(value, "tolist", None)  # of NumPy's arrays and numbers
    if callable(as_python) and not isinstance(value, type):
        return _plain(as_python(), name)
    raise ToolError(f"{name} is {type(value).__name__}, which is no data; reports are made of {TAKEN}")


def _not_finite(value: float) -> str:
    return NOT_FINITE[0] if math.isnan(value) else NOT_FINITE[1 + (value < 0)]


def _convert_mapping(value: Mapping[Any, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, item in value.items():
        text = key.value if isinstance(key, Enum) else key
        if isinstance(text, bool) or not isinstance(text, (str, int)):
            raise ToolError(f"{name} has the key {key!r}; reports are made of {TAKEN}")
        if str(text) in found:
            raise ToolError(f"{name} has two keys {text}")
        found[str(text)] = _plain(item, f"{name}.{text}")
    return found


def _sort_items(items: list[Any]) -> list[Any]:
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=json.dumps)
