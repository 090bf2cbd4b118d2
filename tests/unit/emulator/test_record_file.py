"""Recorded launches as files: what is written is read again, and what is no such file is one error, whatever it is."""

from __future__ import annotations

import hashlib
import random
import struct
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import pytest
import zstandard

from luthier_py.base.errors import Malformed, Unsupported
from luthier_py.binary.loader import limits
from luthier_py.binary.loader.limits import LIMIT, RATIO
from luthier_py.emulator.devices import record_file
from luthier_py.emulator.devices.record_file import (
    MAGIC,
    VERSION,
    pack_record,
    read_record,
    unpack_record,
    write_record,
)
from luthier_py.emulator.devices.recorded_launch import RecordedLaunch, RecordedPage
from luthier_py.emulator.memory.device_memory import Allocation
from luthier_py.emulator.memory.touched import PAGE_BYTES
from luthier_py.samples import FOLDER

HEAD = struct.Struct("<4sI32s")
BASE = 0x200000000000
ZERO = bytes(PAGE_BYTES)


def page(number: int, *contents: int) -> RecordedPage:
    before, after = (bytes([each]) * PAGE_BYTES for each in contents)
    return RecordedPage(BASE + number * PAGE_BYTES, before, after)


LAUNCH = RecordedLaunch(
    "gfx90a", b"\x7fELF and more", BASE, "kernel", (2, 1, 1), (64, 2, 1), 128, bytes(range(48)), 1234,
    (Allocation(BASE + 0x10000, 0x3000, "buffer"), Allocation(BASE + 0x20000, 12, "other", False, True, 4)),
    (page(0, 0, 0), page(0x10, 0, 3), page(0x11, 7, 7), page(0x12, 7, 0), page(0x20, 1, 2)),
)  # fmt: skip


def signed(facts: Any, version: int = VERSION) -> bytes:
    """Whatever is in it, with the right checksum."""
    packed = zstandard.compress(msgpack.packb(facts) if not isinstance(facts, bytes) else facts)
    return HEAD.pack(MAGIC, version, hashlib.sha256(packed).digest()) + packed


def facts(**changed: Any) -> dict[str, Any]:
    return {**facts_of(LAUNCH), **changed}


def facts_of(launch: RecordedLaunch) -> dict[str, Any]:
    plain = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(pack_record(launch)[HEAD.size :]).read()
    return dict(msgpack.unpackb(plain))


def test_it_comes_back_and_is_small(tmp_path: Path) -> None:
    size = write_record(tmp_path / "launch.lrec", LAUNCH)
    assert read_record(tmp_path / "launch.lrec") == LAUNCH == unpack_record(signed(facts()), "it")
    assert [path.stat().st_size for path in tmp_path.iterdir()] == [size] and size < 700


def test_files_of_a_version_have_its_fields_whatever_allocations_have_here() -> None:
    """A file that is kept can be read, and brings no address at which native code looks for a heap."""
    kept = read_record(FOLDER / "gemm_4bit.lrec")
    assert (kept.kernel[:15], len(kept.pages), kept.instructions) == ("_Z14gemm_4bit_s", 10, 14800)
    of_heap = replace(LAUNCH, allocations=tuple(replace(each, heap=0x5000) for each in LAUNCH.allocations))
    assert pack_record(of_heap) == pack_record(LAUNCH)


def test_pages_of_zeros_and_equal_ones_cost_next_to_nothing() -> None:
    noise = random.Random(1).randbytes(PAGE_BYTES)
    numbers = range(0x100, 0x500)
    many = tuple(RecordedPage(BASE + number * PAGE_BYTES, noise if number % 2 else ZERO, ZERO) for number in numbers)
    one = RecordedLaunch(**{**{name: getattr(LAUNCH, name) for name in LAUNCH.__slots__},
                            "allocations": (Allocation(BASE + 0x100000, 0x400000, "buffer"),), "pages": many})
    data = pack_record(one)
    assert len(data) < 2.5 * PAGE_BYTES and unpack_record(data, "it") == one


def test_a_small_file_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it claims to hold: not what it unpacks to is taken, but what a file of that size may."""
    monkeypatch.setenv("LUTHIER_MAX_CODE_MB", "1")
    bomb = signed({"contents": bytes(32 << 20)})
    tracemalloc.start()
    with pytest.raises(Malformed, match=f"unpacks to more than 1 MiB; {LIMIT} raises the limit"):
        unpack_record(bomb, "it")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(bomb) < 1 << 13 and peak < 8 << 20


def test_a_record_of_much_that_is_regular_is_large_enough_to_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (limits, record_file):
        monkeypatch.setattr(module, "SMALL_BYTES", 1 << 16)
    numbers = range(0x100, 0x500)
    same = tuple(page(number, 3, 5) for number in numbers)
    one = replace(LAUNCH, allocations=(Allocation(BASE + 0x100000, 0x400000, "buffer"),), pages=same)
    data = pack_record(one)
    assert unpack_record(data, "it") == one and len(data) < 2 * len(same) * 2 * PAGE_BYTES // RATIO
    with pytest.raises(Malformed, match="unpacks to more than"):
        unpack_record(signed(facts_of(one)), "it")


@pytest.mark.parametrize("cut", [0, 3, 39, 40, 41, -1])
def test_a_truncated_file_is_one_error(cut: int) -> None:
    data = pack_record(LAUNCH)
    with pytest.raises(Malformed, match=r"^some\.lrec: it is .*; record the launch again \(luthier record\)$"):
        unpack_record(data[:cut], "some.lrec")


VERSION_BYTES = range(4, 8)


def test_each_damaged_byte_is_found() -> None:
    data = pack_record(LAUNCH)
    for place in range(len(data)):
        with pytest.raises(Unsupported if place in VERSION_BYTES else Malformed):  # a newer version, or no record
            unpack_record(data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :], "it")


ALLOCATION = {"address": BASE + 0x10000, "size": 8, "name": "b", "writable": True, "fine": False, "spare": 0}
HOSTILE: dict[str, Any] = {
    "no map": [1, 2], "no msgpack": b"\xc1", "a page without bytes": facts(contents=b""), "nested": b"\x91" * 5000,
    "more pages than kinds": facts(kinds=b"\0"), "a kind of page": facts(kinds=b"\4\0\0\0\0", contents=b""),
    "pages in no order": facts(pages=[5, 4, 3, 2, 1]), "page 0": facts(pages=[0, 1, 2, 3, 4]),
    "pages far away": facts(pages=[1, 2, 3, 4, 1 << 34]), "a negative page": facts(pages=[-5, 1, 2, 3, 4]),
    "a field more": facts(more=1), "a number for a name": facts(kernel=7), "a truth for a number": facts(base=True),
    "no grid": facts(grid=[1, 1]), "an empty grid": facts(grid=[0, 1, 1]), "a base of no page": facts(base=BASE + 1),
    "a large block": facts(block=[1, 1, 1 << 32]), "a base in the kernel": facts(base=1 << 63),
    "negative LDS": facts(lds_bytes=-1), "allocations that meet": facts(allocations=[ALLOCATION, ALLOCATION]),
    "an allocation of the kernel's": facts(allocations=[{**ALLOCATION, "address": -(1 << 47)}]),
    "a large allocation": facts(allocations=[{**ALLOCATION, "size": 1 << 46}]),
    "a negative allocation": facts(allocations=[{**ALLOCATION, "size": -8}]),
    "no allocation": facts(allocations=[7]), "a heap": facts(allocations=[{**ALLOCATION, "heap": 1 << 46}]),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_whatever_is_signed_is_checked(what: str) -> None:
    with pytest.raises(Malformed, match="^it: .*; record the launch again"):
        unpack_record(signed(HOSTILE[what]), "it")


def test_other_versions_say_so() -> None:
    with pytest.raises(Unsupported, match="^it: it is of version 2, and this Luthier-py reads 1; take a newer one$"):
        unpack_record(signed(facts(), version=2), "it")
    with pytest.raises(Malformed, match="^it: the version makes no sense"):
        unpack_record(signed(facts(), version=0), "it")
    with pytest.raises(Malformed, match="it is no recorded launch"):
        unpack_record(b"\x7fELF" + bytes(100), "it")


def test_a_file_that_is_kept_is_read() -> None:
    """Of the first version that was given out: what has been added since has a value for it."""
    kept = read_record(Path(__file__).parents[2] / "data" / "gemm_4bit.lrec")
    assert kept.target == "gfx90a" and [each.size for each in kept.allocations] == [160, 2560, 1024, 20480, 160]
    assert not any(each.heap for each in kept.allocations)


def test_random_changes_of_signed_records_are_errors_or_records() -> None:
    """Nothing else comes out."""
    rng, plain = random.Random(7), msgpack.packb(facts())
    for _ in range(400):
        changed = bytearray(plain)
        for _ in range(rng.randint(1, 4)):
            changed[rng.randrange(1200 if rng.random() < 0.9 else len(changed))] = rng.randrange(256)
        try:
            assert isinstance(unpack_record(signed(bytes(changed)), "it"), RecordedLaunch)
        except Malformed:
            continue
