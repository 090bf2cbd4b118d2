"""Compressed offload bundles: what clang --offload-compress writes.

In: bytes in which a compressed bundle may begin. Out: the bundle that it holds, and where it ends. Layout (LLVM,
OffloadBundler.cpp): ``CCOB``, u16 version, u16 method, from version 2 on the size of all, the bundle's size (both u32,
from version 3 on u64), and the first half of the bundle's MD5. Invariant: never more memory than a file of that size
can ask for.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from enum import IntEnum
from mmap import mmap

from luthier_py.base.errors import Malformed, Unsupported
from luthier_py.base.records import dataclass
from luthier_py.binary.loader.limits import LIMIT, compute_unpacked_limit

MAGIC = b"CCOB"
_HEADS = {1: struct.Struct("<4sHHIQ"), 2: struct.Struct("<4sHHIIQ"), 3: struct.Struct("<4sHHQQQ")}
_STARTS = {0: b"\x78", 1: b"\x28\xb5\x2f\xfd"}  # what each method's data begin with


class Method(IntEnum):
    """How a bundle is compressed: ``method`` of its head (LLVM, compression::Format)."""

    ZLIB = 0
    ZSTD = 1


@dataclass(frozen=True, slots=True)
class Head:
    """The header before the compressed data."""

    at: int
    data_at: int
    end: int
    next_at: int  # where the next bundle may begin: version 1 does not say where it ends itself
    size: int     # of the bundle
    method: int
    digest: int


def head_at(data: bytes | mmap, at: int) -> Head | None:
    """The head of the compressed bundle at ``at``; None where these bytes only look like one at first."""
    version = int.from_bytes(data[at + 4 : at + 6], "little")
    layout = _HEADS.get(version)
    if layout is None or at + layout.size > len(data):
        return None
    _, _, method, *sizes, digest = layout.unpack_from(data, at)
    start = at + layout.size
    end = at + sizes[0] if version > 1 else len(data)
    if method not in _STARTS or not data[start : start + 4].startswith(_STARTS[method]):
        return None
    return Head(at, start, end, end if version > 1 else start, sizes[-1], method, digest)


@dataclass(slots=True)
class Budget:
    """Mutable: what the bundles of one file have unpacked to so far."""

    file_bytes: int
    packed: int = 0
    unpacked: int = 0

    def take(self, head: Head, what: str) -> None:
        """Malformed if the file would unpack to too much with this bundle."""
        packed = head.end - head.data_at
        self.packed = min(self.packed + packed, self.file_bytes)  # a head of version 1 has no size
        limit = compute_unpacked_limit(self.packed)
        if self.unpacked + head.size > limit:
            raise Malformed(f"{what}: {packed} bytes claim to hold {head.size}, but what is compressed in this file "
                            f"may unpack to {limit} bytes, {self.unpacked} of them used; {LIMIT} raises the limit")
        self.unpacked += head.size


def decompress(data: bytes | mmap, head: Head, budget: Budget, name: str) -> bytes:
    """The bundle; Malformed for anything but what the compiler wrote."""
    what = f"{name}: compressed offload bundle at 0x{head.at:x}"
    if not head.data_at < head.end <= len(data):
        raise Malformed(f"{what}: it ends at 0x{head.end:x}, outside the file, which is truncated or corrupt")
    budget.take(head, what)
    packed = data[head.data_at : head.end]
    try:
        bundle = _unzip(packed, head.size + 1) if head.method == Method.ZLIB else unzstd(packed, head.size + 1)
    except (zlib.error, ValueError) as error:
        raise Malformed(f"{what}: {error}; the file is corrupt") from None
    if len(bundle) != head.size or int.from_bytes(hashlib.md5(bundle).digest()[:8], "little") != head.digest:
        raise Malformed(f"{what}: its content is damaged; the file is corrupt")
    return bundle


def _unzip(packed: bytes, most: int) -> bytes:
    return zlib.decompressobj().decompress(packed, most)


def unzstd(packed: bytes, most: int) -> bytes:
    """Unpack at most so many bytes; ValueError for what is none."""
    import zstandard  # few files are compressed so, and a program's start is not to wait for it

    try:
        with zstandard.ZstdDecompressor().stream_reader(packed) as reader:
            return reader.read(most)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None


def unknown(name: str) -> Unsupported:
    """The error, to be raised, for a file that begins with CCOB, but with no head that `head_at` can read."""
    return Unsupported(f"{name}: a compressed offload bundle, but not of versions 1 to 3 with zlib or zstd")
