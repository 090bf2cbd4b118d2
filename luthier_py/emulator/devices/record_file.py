"""Recorded launches as files.

In: a RecordedLaunch, or bytes that claim to be one. Out: the other. Invariant: what is read is checked before it is
used, from any writer: its checksum, each number, that pages lie in allocations. Layout: MAGIC, the version, SHA-256 of
the rest; the rest is a zstd frame of a msgpack map. Of a page's bytes those are there that are not all zero, and those
after the launch where it changed them; a page's two stand beside each other, where zstd finds what they share. A file
is as large as the limit of binary/loader/limits requires: where its content is so regular that it would be smaller, a
skippable frame of zeros follows (RFC 8878, 3.1.2), so that a small file never takes much memory.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import msgpack
import zstandard

from luthier_py.base.errors import Malformed, Unsupported, require_version
from luthier_py.base.storage import read_regular, write_file
from luthier_py.binary.loader.limits import LIMIT, RATIO, SMALL_BYTES, compute_unpacked_limit
from luthier_py.emulator.devices.recorded_launch import RecordedLaunch, RecordedPage
from luthier_py.emulator.memory.device_memory import Allocation
from luthier_py.emulator.memory.touched import PAGE_BYTES

MAGIC, VERSION = b"LREC", 1
MOST_BYTES = 1 << 31
"""Of a record, unpacked."""
MOST_SPAN = 1 << 39
"""From the first address to the last."""
_LOWEST, _HIGHEST = 1 << 16, 1 << 47
_HEAD = struct.Struct("<4sI32s")
_ZERO = bytes(PAGE_BYTES)
_HELD, _CHANGED = 1, 2  # of a page: bytes before the launch that are not all 0, others after it
_WINDOW_LOG = 27
_PIECE_BYTES = 1 << 20
_SKIPPABLE, _SKIPPABLE_MAGIC = struct.Struct("<2I"), 0x184D2A50
_LEVEL, _LEVEL_OF_LARGE, _LARGE = 19, 9, 1 << 24  # bytes from which on the better level takes too long
_KINDS = {"target": str, "code": bytes, "base": int, "kernel": str, "grid": list, "block": list, "lds_bytes": int,
          "kernarg": bytes, "instructions": int, "allocations": list, "pages": list, "kinds": bytes, "contents": bytes}
_ALLOCATION = {"address": int, "size": int, "name": str, "writable": bool, "fine": bool, "spare": int}
"""Fields that the version has. Whose heap an allocation may be of is none: a record need not hold that heap's own."""


class _Wrong(Exception):
    """What is wrong with a file, in words."""


def write_record(path: Path, launch: RecordedLaunch) -> int:
    """Returns the file's size; OSError leaves what was there."""
    data = pack_record(launch)
    write_file(path, data)
    return len(data)


def read_record(path: Path) -> RecordedLaunch:
    """Malformed, Unsupported or OSError says what is wrong."""
    return unpack_record(read_regular(path, MOST_BYTES), str(path))


def pack_record(launch: RecordedLaunch) -> bytes:
    """The launch as bytes of a file, for :func:`unpack_record`; Unsupported beyond MOST_BYTES before compression."""
    kinds, contents = _pack_pages(launch.pages)
    facts = {
        **{name: getattr(launch, name) for name in _KINDS if hasattr(launch, name)},
        "allocations": [{name: getattr(each, name) for name in _ALLOCATION} for each in launch.allocations],
        "pages": [page.address // PAGE_BYTES for page in launch.pages], "kinds": kinds, "contents": contents,
    }  # fmt: skip
    plain = cast(bytes, msgpack.packb(facts))
    if len(plain) > MOST_BYTES:
        raise Unsupported(f"launch of {launch.kernel}: it touched more than a record holds, {MOST_BYTES >> 20} MiB")
    level = _LEVEL if len(plain) < _LARGE else _LEVEL_OF_LARGE
    parameters = zstandard.ZstdCompressionParameters.from_level(level, enable_ldm=True, window_log=_WINDOW_LOG)
    packed = zstandard.ZstdCompressor(compression_params=parameters).compress(plain)
    if len(plain) > max(SMALL_BYTES, RATIO * len(packed)):
        filling = bytes(len(plain) // RATIO + 1 - len(packed))
        packed += _SKIPPABLE.pack(_SKIPPABLE_MAGIC, len(filling)) + filling
    return _HEAD.pack(MAGIC, VERSION, hashlib.sha256(packed).digest()) + packed


def unpack_record(data: bytes, name: str) -> RecordedLaunch:
    """``name``: for errors."""
    try:
        return _parse_launch(_facts(data, name))
    except _Wrong as error:
        raise Malformed(f"{name}: {error}; record the launch again (luthier record)") from None


def _pack_pages(pages: tuple[RecordedPage, ...]) -> tuple[bytes, bytes]:
    kinds, contents = bytearray(), []
    for page in pages:
        kind = (page.before != _ZERO) * _HELD | (page.after != page.before) * _CHANGED
        kinds.append(kind)
        contents += [page.before] * bool(kind & _HELD) + [page.after] * bool(kind & _CHANGED)
    return bytes(kinds), b"".join(contents)


def _facts(data: bytes, name: str) -> dict[str, Any]:
    """The map of a file, each value of its type."""
    if len(data) < _HEAD.size or data[: len(MAGIC)] != MAGIC:
        raise _Wrong("it is no recorded launch")
    _, version, digest = _HEAD.unpack_from(data)
    require_version(name, version, VERSION)
    _need(version == VERSION, "the version")
    packed = data[_HEAD.size :]
    if hashlib.sha256(packed).digest() != digest:
        raise _Wrong("it is damaged or not complete: its checksum is another one")
    try:
        with zstandard.ZstdDecompressor(max_window_size=1 << _WINDOW_LOG).stream_reader(packed) as reader:
            facts = msgpack.unpackb(_decompress(reader, min(MOST_BYTES, compute_unpacked_limit(len(packed)))))
    except (zstandard.ZstdError, ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise _Wrong(f"it is broken inside: {str(error) or type(error).__name__}") from None
    return _check_types(facts, _KINDS, "it")


def _decompress(reader: zstandard.ZstdDecompressionReader, most_bytes: int) -> bytes:
    """In pieces, so that what is too large takes no more memory than it may."""
    plain = bytearray()
    while piece := reader.read(_PIECE_BYTES):
        plain += piece
        if len(plain) > most_bytes:
            raise _Wrong(f"it unpacks to more than {most_bytes >> 20} MiB; {LIMIT} raises the limit")
    return bytes(plain)


def _check_types(facts: Any, kinds: dict[str, type], what: str) -> dict[str, Any]:
    if not isinstance(facts, dict) or set(facts) != set(kinds):
        raise _Wrong(f"{what} has other fields than {', '.join(kinds)}")
    for name, kind in kinds.items():
        if type(facts[name]) is not kind:
            raise _Wrong(f"{name} of {what} is no {kind.__name__}")
    return facts


def _parse_launch(facts: dict[str, Any]) -> RecordedLaunch:
    grid, block = (_dim(facts[name], name) for name in ("grid", "block"))
    allocations = tuple(Allocation(**_check_types(row, _ALLOCATION, "an allocation")) for row in facts["allocations"])
    pages = tuple(_pages(facts["pages"], facts["kinds"], facts["contents"]))
    base = facts["base"]
    _need(_LOWEST <= base < _HIGHEST and base % PAGE_BYTES == 0, "the code object's address")
    for each in allocations:
        room = each.size >= 0 and 0 <= each.spare < MOST_SPAN and _LOWEST <= each.address
        _need(room and each.usable_end <= _HIGHEST, "the place of an allocation")
    ends = [(each.address, each.end) for each in allocations]
    _need(all(before[1] <= after[0] for before, after in pairwise(ends)), "the order of allocations")
    first, last = min([base, *(start for start, _ in ends)]), max([base, *(end for _, end in ends)])
    _need(last - first <= MOST_SPAN, "the distance between addresses")
    _need(all(first - PAGE_BYTES < page.address < first + MOST_SPAN for page in pages), "the place of a page")
    _need(facts["lds_bytes"] in range(1 << 32) and facts["instructions"] >= 0, "a number")
    named = {name: facts[name] for name in ("target", "code", "base", "kernel", "lds_bytes", "kernarg", "instructions")}
    return RecordedLaunch(**named, grid=grid, block=block, allocations=allocations, pages=pages)


def _need(good: bool, what: str) -> None:
    if not good:
        raise _Wrong(f"{what} makes no sense")


def _dim(numbers: list[Any], name: str) -> tuple[int, int, int]:
    good = len(numbers) == 3 and all(type(each) is int and 0 < each < 1 << 32 for each in numbers)
    _need(good, f"its {name}")
    x, y, z = numbers
    return x, y, z


def _pages(numbers: list[Any], kinds: bytes, contents: bytes) -> Iterator[RecordedPage]:
    _need(len(numbers) == len(kinds) and all(type(each) is int and 0 < each < _HIGHEST for each in numbers), "a page")
    _need(all(kind < 4 for kind in kinds), "a kind of page")
    _need(all(before < after for before, after in pairwise(numbers)), "the order of pages")
    _need(len(contents) == PAGE_BYTES * sum((kind & _HELD) + (kind >> 1 & 1) for kind in kinds), "the size of pages")
    place = 0
    for number, kind in zip(numbers, kinds, strict=True):
        before = _ZERO
        if kind & _HELD:
            before, place = contents[place : place + PAGE_BYTES], place + PAGE_BYTES
        after = before
        if kind & _CHANGED:
            after, place = contents[place : place + PAGE_BYTES], place + PAGE_BYTES
        yield RecordedPage(number * PAGE_BYTES, before, after)
