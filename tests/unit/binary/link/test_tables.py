"""Tables that only grow, and hash tables in which a reader that knows only the format finds every name."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier_py.base.errors import Malformed
from luthier_py.binary.link.tables import StringTable, build_gnu_hash, build_hash, first_hashed, gnu_hash, sysv_hash

NAMES = st.lists(st.binary(min_size=1, max_size=12).filter(lambda name: 0 not in name), unique=True, max_size=60)


def test_hash_functions_on_known_values() -> None:
    """From the System V ABI supplement's and the GNU hash documentation's examples."""
    known = {b"": (0, 0x1505), b"printf": (0x077905A6, 0x156B2BB8), b"exit": (0x0006CF04, 0x7C967E3F),
             b"syscall": (0x0B09985C, 0xBAC212A0)}
    for name, hashes in known.items():
        assert (sysv_hash(name), gnu_hash(name)) == hashes
    assert sysv_hash(b"\xff" * 9) < 1 << 28


def find_sysv(table: bytes, names: list[bytes], wanted: bytes) -> int:
    words = struct.unpack(f"<{len(table) // 4}I", table)
    bucket_count, chain_count = words[:2]
    assert chain_count == len(names) and len(words) == 2 + bucket_count + chain_count
    index = words[2 + sysv_hash(wanted) % bucket_count]
    while index and names[index] != wanted:
        index = words[2 + bucket_count + index]
    return index


def find_gnu(table: bytes, names: list[bytes], wanted: bytes) -> int:
    value = gnu_hash(wanted)
    bucket_count, first, bloom_count, shift = struct.unpack_from("<4I", table)
    assert bloom_count & (bloom_count - 1) == 0
    bloom = struct.unpack_from(f"<{bloom_count}Q", table, 16)[value // 64 % bloom_count]
    if not bloom >> value % 64 & bloom >> (value >> shift) % 64 & 1:
        return 0
    words = struct.unpack(f"<{(len(table) - 16 - 8 * bloom_count) // 4}I", table[16 + 8 * bloom_count :])
    index = words[value % bucket_count]
    while index:
        link = words[bucket_count + index - first]
        if link | 1 == value | 1 and names[index] == wanted:
            return index
        index = 0 if link & 1 else index + 1
    return 0


@given(NAMES, st.integers(0, 60), st.binary(max_size=5))
def test_every_name_is_found_and_no_other(names: list[bytes], undefined: int, other: bytes) -> None:
    names = [b"", *names]
    first = min(1 + undefined, len(names))
    sysv, gnu = build_hash(names), build_gnu_hash(names, first)
    for index, name in enumerate(names):
        assert find_sysv(sysv, names, name) == index
        assert find_gnu(gnu, names, name) == (index if index >= first else 0)
    if other not in names:
        assert find_sysv(sysv, names, other) == find_gnu(gnu, names, other) == 0


@given(st.binary(max_size=20), st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)))
def test_strings_keep_their_offsets(old: bytes, names: list[str]) -> None:
    table = StringTable(old)
    offsets = {name: table.add(name) for name in names}
    content = bytes(table)
    assert content.startswith(old) and content.endswith(b"\0")
    for name, offset in offsets.items():
        assert content[offset:].startswith(name.encode() + b"\0")
        assert table.add(name) == offset and bytes(table) == content


def test_broken_hash_tables_are_refused() -> None:
    with pytest.raises(Malformed, match="k: the GNU hash table is truncated"):
        first_hashed(bytes(7), 3, "k")
    for first in (0, 4, 1 << 31):
        with pytest.raises(Malformed, match=f"starts at symbol {first}, but there are 3"):
            first_hashed(struct.pack("<2I", 1, first), 3, "k")
