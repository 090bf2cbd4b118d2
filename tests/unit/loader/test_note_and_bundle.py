"""Notes go back to the same bytes; bundles give up their members."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier_py.errors import Malformed, Unsupported
from luthier_py.loader import load, unbundle
from luthier_py.loader.codeobject import find_metadata
from luthier_py.loader.note import Note, pack_metadata, read_notes, unpack_metadata
from luthier_py.samples import SAMPLES, Sample


def test_compilers_notes_are_written_as_they_were(sample: Sample) -> None:
    obj = load(sample.path.read_bytes())
    found = find_metadata(obj.elf)
    assert found is not None
    segment, notes = found
    assert b"".join(note.pack() for note in notes) == obj.data[segment.offset : segment.offset + segment.file_size]
    assert pack_metadata(obj.metadata) == notes[0].content


@given(st.lists(st.tuples(st.binary(max_size=9), st.integers(0, 99), st.binary(max_size=40)), max_size=4))
def test_notes_round_trip(rows: list[tuple[bytes, int, bytes]]) -> None:
    packed = b"".join(Note(0, *row).pack() for row in rows)
    assert [(note.owner, note.type, note.content) for note in read_notes(packed, "notes")] == rows


@given(st.binary(max_size=60))
def test_any_bytes_are_metadata_or_malformed(content: bytes) -> None:
    try:
        assert isinstance(unpack_metadata(content, "note"), dict)
    except Malformed as error:
        assert str(error).startswith("note: ")


def test_deep_metadata_is_refused_not_recursed() -> None:
    with pytest.raises(Malformed):
        unpack_metadata(b"\x81\x01" + b"\x91" * 100_000 + b"\x01", "note")


def bundle(*members: tuple[str, bytes]) -> bytes:
    head = 24 + 8 + sum(24 + len(triple) for triple, _ in members)
    table, contents, at = b"", b"", -(-head // 4096) * 4096
    for triple, data in members:
        table += struct.pack("<3Q", at, len(data), len(triple)) + triple.encode()
        contents += data
        at += len(data)
    start = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(members)) + table
    return start + bytes(-len(start) % 4096) + contents


def names(data: bytes) -> Iterator[tuple[str, int]]:
    return ((member.triple, len(member.data)) for member in unbundle(data))


def test_members_come_in_order_and_only_device_code() -> None:
    first, second = (SAMPLES[i].path.read_bytes() for i in (0, 1))
    one = bundle(("host-x86_64-unknown-linux--", b""), ("hipv4-amdgcn-amd-amdhsa--gfx90a", first))
    two = bundle(("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+", second))
    host = b"\x7fELF" + bytes(5000) + one + bytes(77) + two
    members = list(unbundle(host))
    assert [member.triple for member in members] == [
        "hipv4-amdgcn-amd-amdhsa--gfx90a", "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+",
    ]
    assert [member.data for member in members] == [first, second]
    assert list(names(first)) == []


def test_bad_bundles() -> None:
    whole = bundle(("hipv4-amdgcn-amd-amdhsa--gfx90a", SAMPLES[0].path.read_bytes()))
    with pytest.raises(Malformed, match="ends outside the file"):
        list(unbundle(whole[:-1]))
    with pytest.raises(Malformed, match="truncated"):
        list(unbundle(whole[:40]))
    with pytest.raises(Malformed, match=r"k: offload bundle at 0x0: its table .*truncated"):
        list(unbundle(b"__CLANG_OFFLOAD_BUNDLE__\xff\xff\xff\xff\xff\xff\xff\xff", "k"))
    with pytest.raises(Unsupported, match="compressed"):
        list(unbundle(b"CCOB" + bytes(20)))
