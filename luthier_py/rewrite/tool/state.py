"""What Python objects hold, as a key: equal keys, equal behaviour of the functions that see them.

In: objects. Out: a digest. Invariant: functions and classes count by name, since their sources are keyed elsewhere,
but what they have collected since they were made (closures, defaults, attributes of classes) counts by value; what
cannot be told apart that way (an open file, a lock, a generator) is Untold.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from pickle import PickleError
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any

from luthier_py.base.errors import LuthierError
from luthier_py.base.storage import cache_key
from luthier_py.rewrite.tool.cpp.hip import Hooks
from luthier_py.rewrite.tool.cpp.native import Native
from luthier_py.rewrite.tool.hooks.hook import Device, Hook, namespace

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), range)
_BY_PYTHON = (MemberDescriptorType, GetSetDescriptorType)  # of classes
_CODE = (FunctionType, classmethod, staticmethod, property)
REFUSALS = (TypeError, ValueError, AttributeError, LookupError, RuntimeError, PickleError)  # of objects, to be pickled
_PROTOCOL = 2  # of pickle: the least that knows slots


class Untold(Exception):
    """There is no key for this value."""


def state_of(values: Iterable[object], own: Callable[[str], bool]) -> str:
    """``own``: whether classes and functions of a module belong to the tool, and so may hold what it collects."""
    writer = _Writer(own)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of things that are not to be pickled some day
        for value in values:
            writer.add(value)
    return cache_key(*writer.words)


def _identity(hooks: Hooks) -> str:
    try:
        return hooks.identity()
    except LuthierError as error:
        raise Untold(f"{hooks!r}: {error.message}") from error


class _Writer:
    """Mutable: the words so far. What was met before is a number, so circles end."""

    def __init__(self, own: Callable[[str], bool]) -> None:
        self.own, self.words = own, list[str]()
        self._met: dict[int, tuple[int, object]] = {}

    def add(self, value: object) -> None:
        kind = type(value)
        if kind in _PLAIN:
            self.words.append(f"{kind.__name__} {value!r}")
            return
        if id(value) in self._met:
            self.words.append(f"again {self._met[id(value)][0]}")
            return
        self._met[id(value)] = len(self._met), value  # the object is kept, or another could get its number
        parts = list(self._parts(value))
        self.words.append(f"{kind.__module__}.{kind.__qualname__} {len(parts)}")
        for part in parts:
            self.add(part)

    def _parts(self, value: object) -> Iterator[object]:
        if isinstance(value, ModuleType):
            yield value.__name__
        elif isinstance(value, Native):
            yield from (value.symbol, value.code)
        elif isinstance(value, Hooks):
            yield _identity(value)
        elif isinstance(value, (Hook, Device)):
            yield value.function
            yield (value.lanes, value.folded, value.mode) if isinstance(value, Hook) else ()
        elif isinstance(value, FunctionType):
            yield from self._function(value)
        elif isinstance(value, (classmethod, staticmethod)):
            yield value.__func__
        elif isinstance(value, property):
            yield from (value.fget, value.fset, value.fdel)
        elif isinstance(value, type):
            yield from self._class(value)
        elif isinstance(value, (set, frozenset)):
            yield from sorted(state_of([item], self.own) for item in value)
        elif type(value) in (list, tuple):
            yield from value  # type: ignore[misc]
        elif type(value) is dict:
            yield from (part for item in value.items() for part in item)
        else:
            yield from self._reduce_value(value)

    def _function(self, value: FunctionType) -> Iterator[object]:
        yield f"{value.__module__}.{value.__qualname__}"
        if self.own(value.__module__):
            yield value.__defaults__
            yield value.__kwdefaults__
            yield {name: seen for name, seen in namespace(value).items() if name in value.__code__.co_freevars}
            yield value.__dict__

    def _class(self, value: type) -> Iterator[object]:
        yield f"{value.__module__}.{value.__qualname__}"
        if self.own(value.__module__):
            yield value.__bases__
            for name, attribute in vars(value).items():
                hidden = name.startswith("_abc_") or name.startswith("__") and not isinstance(attribute, _CODE)
                if not hidden and not isinstance(attribute, _BY_PYTHON):
                    yield name
                    yield attribute

    def _reduce_value(self, value: Any) -> Iterator[object]:
        """As pickle takes it apart: what makes it, with what, its state, its items."""
        try:
            reduced = value.__reduce_ex__(_PROTOCOL)
        except REFUSALS as error:
            raise Untold(f"{value!r:.60}: {error}") from error
        if isinstance(reduced, str):  # a name, as of what functools.cache makes
            yield reduced
            yield getattr(value, "__wrapped__", None)
            return
        yield from reduced[:3]
        for items in reduced[3:5]:
            yield list(items) if items is not None else None
