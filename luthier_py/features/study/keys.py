"""The keys of a TOML table, taken one by one.

In: a file, or a table of one. Out: values, as readers make them. Invariant: a key that is missing, wrong or unknown is
Invalid, and the message has its full name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from luthier_py.base.errors import Invalid
from luthier_py.base.storage import NotRegular, read_regular

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LARGEST_BYTES = 1 << 20  # of the file
T = TypeVar("T")
KeyReader = Callable[[Any], T]
"""From a TOML value; raises ValueError that says what to write."""

_NEEDED: Any = object()


class Keys:
    """A table that is being read (mutable: records which keys were read)."""

    def __init__(self, file: str, place: str, table: Mapping[str, Any]) -> None:
        self.file, self.place, self.table = file, place, table
        self.asked: list[str] = []

    def take(self, key: str, reader: KeyReader[T], default: Any = _NEEDED) -> T:
        """The value of a key, or what it is without."""
        self.asked.append(key)
        if key not in self.table:
            if default is _NEEDED:
                raise self.wrong(key, "is missing")
            without: T = default
            return without
        try:
            return reader(self.table[key])
        except ValueError as error:
            raise self.wrong(key, f"{error}, not {self.table[key]!r}") from None

    def tables(self, key: str) -> Iterator[tuple[str, Keys]]:
        """Each table of a table of tables, with its name."""
        self.asked.append(key)
        found = self.table.get(key, {})
        if not isinstance(found, dict) or not all(isinstance(table, dict) for table in found.values()):
            raise self.wrong(key, f"write [{key}.NAME]")
        for name, table in found.items():
            yield name, Keys(self.file, f"{self.place}{key}.{name}.", table)

    def rows(self, key: str) -> Iterator[Keys]:
        """Each table of an array of tables."""
        self.asked.append(key)
        found = self.table.get(key, [])
        if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
            raise self.wrong(key, f"write [[{key}]]")
        for at, row in enumerate(found):
            yield Keys(self.file, f"{self.place}{key}[{at}].", row)

    def reject_unknown_keys(self) -> None:
        """Nothing else may be there."""
        for key in self.table:
            if key not in self.asked:
                raise self.wrong(key, f"there is no such key; there are {', '.join(sorted(self.asked))}")

    def wrong(self, key: str, message: str) -> Invalid:
        """The error for a key, to be raised by the caller: ``message`` behind the file and the key's full name."""
        return Invalid(f"{self.file}: {self.place}{key}: {message}")


def read_keys(path: Path, what: str) -> Keys:
    """Those of a file; raises OSError, and Invalid where it is no TOML. ``what``: the file should be."""
    try:
        found = tomllib.loads(read_regular(path, LARGEST_BYTES).decode())
    except NotRegular as error:
        raise Invalid(f"{path} is {error.strerror}; give {what} as TOML") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Invalid(f"{path}: no TOML: {error}") from None
    return Keys(str(path), "", found)


def text(value: Any) -> str:
    """A reader for a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ValueError("give a text")
    return value


def flag(value: Any) -> bool:
    """A reader for true or false."""
    if not isinstance(value, bool):
        raise ValueError("give true or false")
    return value


def whole(value: Any) -> int:
    """A reader for a whole number from 1 on."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError("give a whole number from 1 on")
    return value


def number(value: Any) -> float:
    """A reader for a number above 0, whole or not."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or value <= 0:
        raise ValueError("give a number above 0")
    return float(value)


def texts(value: Any) -> tuple[str, ...]:
    """One text, or a list."""
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise ValueError("give a list of texts")
    return tuple(found)


def text_lists(value: Any) -> dict[str, tuple[str, ...]]:
    """Lists of texts by name, at least one; without names, their words are the name."""
    if isinstance(value, dict) and value:
        return {name: texts(one) for name, one in value.items()}
    if not isinstance(value, list) or not value or not all(isinstance(one, list) for one in value):
        raise ValueError("give a list of lists of texts, or a table of lists")
    return {" ".join(words): words for words in map(texts, value)}


def numbers_or_texts(value: Any) -> dict[str, str]:
    """A table of single values, as texts."""
    if not isinstance(value, dict) or not all(isinstance(one, (str, int, float)) for one in value.values()):
        raise ValueError("give a table of texts and numbers")
    return {name: str(one).lower() if isinstance(one, bool) else str(one) for name, one in value.items()}
