"""Translations on disk, found by the bytes of the code alone: nothing is decoded for it.

In: a text, settings, the address of a function. Out: its Translation, if this version of the translator has made it
before. Two steps: the first bytes of a function name the runs of code that functions with such a beginning were found
to have; what is in these runs now names the translation. Invariant: a translation is found only by all bytes it was
made of, the settings, and the sources of the translator; what cannot be read is ignored, which is said once.
"""

from __future__ import annotations

import json

from luthier_py.base.errors import Malformed
from luthier_py.base.storage import Shelf, cache_key, tell_damaged
from luthier_py.emulator.options import sizes
from luthier_py.emulator.options.settings import Settings
from luthier_py.emulator.options.translator import translator
from luthier_py.emulator.reading.text import Text
from luthier_py.emulator.translation.translated import CodeRun, Translation, unpack_translation

SHELF = Shelf("translations", 256 << 20)
BEGINNING_BYTES = 128
MOST_EXTENTS = 8
"""Functions that begin alike and are remembered."""
MOST_BYTES = 1 << 26

RunSizes = list[tuple[int, int]]
"""(start, bytes) of a function's runs."""


def find(text: Text, settings: Settings, entry: int) -> Translation | None:
    """The cached translation of the function at ``entry``."""
    subject = _subject(text, settings, entry)
    for extent in _extents(_make_beginning_key(text, subject, entry)):
        runs = tuple((start, text.read(start, size)) for start, size in extent)
        if any(len(data) != size for (_, data), (_, size) in zip(runs, extent, strict=True)):
            continue
        if (kept := SHELF.read(_name(subject, runs))) is not None:
            try:
                return unpack_translation(kept, runs)
            except Malformed as error:
                tell_damaged(error.message)
    return None


def keep(text: Text, settings: Settings, entry: int, translation: Translation) -> None:
    """For :func:`find`."""
    subject = _subject(text, settings, entry)
    extent = [(start, len(data)) for start, data in translation.runs]
    if sum(size for _, size in extent) > MOST_BYTES:
        return
    key = _make_beginning_key(text, subject, entry)
    others = [one for one in _extents(key) if one != extent]
    SHELF.write(_name(subject, translation.runs), translation.pack())
    SHELF.write(key, json.dumps([extent, *others[: MOST_EXTENTS - 1]]).encode())


def _subject(text: Text, settings: Settings, entry: int) -> tuple[str, ...]:
    """All that a translation depends on beside code."""
    origins = "" if text.origins is None else text.origins.name
    return translator(), repr(settings), f"{sizes.BLOCK} {sizes.PART} {sizes.LARGE}", hex(entry), origins


def _make_beginning_key(text: Text, subject: tuple[str, ...], entry: int) -> str:
    return cache_key("beginning", *subject, text.read(entry, BEGINNING_BYTES))


def _name(subject: tuple[str, ...], runs: tuple[CodeRun, ...]) -> str:
    return cache_key("translation", *subject, *(part for start, data in runs for part in (hex(start), data)))


def _extents(key: str) -> list[RunSizes]:
    kept = SHELF.read(key)
    if kept is None:
        return []
    try:
        found = [[(start, size) for start, size in extent] for extent in json.loads(kept)]
        if not all(_is_extent(extent) for extent in found):
            raise Malformed("runs of code that are none")
        return found
    except (ValueError, TypeError, RecursionError, Malformed) as error:
        tell_damaged(f"not runs of code: {error}")
        return []


def _is_extent(extent: RunSizes) -> bool:
    numbers = [number for run in extent for number in run]
    return bool(extent) and all(type(number) is int and 0 <= number < 1 << 63 for number in numbers) and sum(
        size for _, size in extent) <= MOST_BYTES
