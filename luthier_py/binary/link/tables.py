"""String, symbol and hash tables of an ELF file, grown at their ends.

In: the old tables and what is to be added. Out: the new tables. Invariant: every old string keeps its offset
and every old symbol its index, as relocations and other tables name them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from luthier_py.base.errors import Malformed
from luthier_py.binary.loader.elf import SYMBOL

_BLOOM_SHIFT = 26  # lld's choice
_BLOOM_BITS_PER_SYMBOL = 12  # lld's choice


class StringTable:
    """A string table that only grows. Mutable."""

    def __init__(self, content: bytes) -> None:
        self._content = bytearray(content if content.endswith(b"\0") else content + b"\0")
        self._added: dict[str, int] = {}

    def add(self, name: str) -> int:
        """The offset of ``name``."""
        if name not in self._added:
            self._added[name] = len(self._content)
            self._content += name.encode() + b"\0"
        return self._added[name]

    def __bytes__(self) -> bytes:
        return bytes(self._content)


def symbol_names(symbols: bytes, strings: bytes) -> list[bytes]:
    """The name of each row of a symbol table; none where it is broken, and so not to be found."""
    return [strings[row[0] : max(strings.find(b"\0", row[0]), 0)] for row in SYMBOL.iter_unpack(symbols)]


def sysv_hash(name: bytes) -> int:
    """The hash function of SHT_HASH (System V ABI, "Hash Table")."""
    value = 0
    for byte in name:
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high & 0xFFFFFFFF
    return value


def gnu_hash(name: bytes) -> int:
    """The hash function of SHT_GNU_HASH."""
    value = 5381
    for byte in name:
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value


def build_hash(names: Sequence[bytes]) -> bytes:
    """SHT_HASH for all symbols of a table, the null symbol included: a bucket for each."""
    buckets, chains = [0] * len(names), [0] * len(names)
    for index, name in enumerate(names[1:], 1):
        bucket = sysv_hash(name) % len(names)
        chains[index], buckets[bucket] = buckets[bucket], index
    return _words([len(buckets), len(chains), *buckets, *chains])


def build_gnu_hash(names: Sequence[bytes], first: int) -> bytes:
    """SHT_GNU_HASH for the symbols from index ``first`` on.

    The format wants symbols sorted by bucket. With one bucket any order is sorted: old symbols keep their
    indices, and the bloom filter in front still turns away names that are not there.
    """
    hashes = [gnu_hash(name) for name in names[first:]]
    bloom = [0] * (1 << (len(hashes) * _BLOOM_BITS_PER_SYMBOL // 64).bit_length())
    for value in hashes:
        bloom[value // 64 % len(bloom)] |= 1 << value % 64 | 1 << (value >> _BLOOM_SHIFT) % 64
    chain = [value & ~1 for value in hashes]
    if chain:
        chain[-1] |= 1
    header = _words([1, first, len(bloom), _BLOOM_SHIFT])
    return header + struct.pack(f"<{len(bloom)}Q", *bloom) + _words([first if chain else 0, *chain])


def first_hashed(gnu_hash_table: bytes, symbol_count: int, name: str) -> int:
    """The symbol from which on an existing SHT_GNU_HASH table has them: undefined ones come first, and are not in
    it."""
    if len(gnu_hash_table) < 8:
        raise Malformed(f"{name}: the GNU hash table is truncated")
    first: int = struct.unpack_from("<I", gnu_hash_table, 4)[0]
    if not 1 <= first <= symbol_count:
        raise Malformed(f"{name}: the GNU hash table starts at symbol {first}, but there are {symbol_count}")
    return first


def _words(values: Iterable[int]) -> bytes:
    values = tuple(values)
    return struct.pack(f"<{len(values)}I", *values)
