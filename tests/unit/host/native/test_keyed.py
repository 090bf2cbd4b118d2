"""Tables of rows by address (native/keyed.c) hold what a dictionary does, whatever is added and removed."""

from __future__ import annotations

import ctypes
import random

import pytest

from luthier_py.base.c_libraries import link_library
from luthier_py.host.native.build import HERE, compile_sources

STRIDES = 1, 8, 16, 4096  # of addresses, which memory has in multiples


class Row(ctypes.Structure):
    _fields_ = [("key", ctypes.c_uint64), ("value", ctypes.c_uint32)]


class Table(ctypes.Structure):
    _fields_ = [("rows", ctypes.c_void_p), ("row_bytes", ctypes.c_size_t), ("count", ctypes.c_size_t),
                ("room", ctypes.c_size_t)]


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory, require_tool) -> ctypes.CDLL:
    require_tool("cc")
    folder = tmp_path_factory.mktemp("keyed")
    link_library(folder / "keyed.so", compile_sources(folder, [HERE / "keyed.c"], "-fvisibility=default"))
    library = ctypes.CDLL(str(folder / "keyed.so"))
    for name in ("find", "add", "next"):
        function = getattr(library, f"keyed_{name}")
        function.restype = ctypes.POINTER(Row)
        function.argtypes = ctypes.c_void_p, ctypes.c_void_p
    library.keyed_remove.argtypes = ctypes.c_void_p, ctypes.c_void_p
    return library


def rows_of(native: ctypes.CDLL, table: int) -> dict[int, int]:
    found: dict[int, int] = {}
    row = native.keyed_next(table, None)
    while row:
        assert row[0].key not in found
        found[row[0].key] = row[0].value
        row = native.keyed_next(table, ctypes.cast(row, ctypes.c_void_p))
    return found


@pytest.mark.parametrize("stride", STRIDES)
def test_a_table_is_a_dictionary(stride: int, native: ctypes.CDLL) -> None:
    dice, table, expected = random.Random(stride), Table(row_bytes=ctypes.sizeof(Row)), dict[int, int]()
    at = ctypes.addressof(table)
    assert not native.keyed_find(at, 16) and not native.keyed_add(at, None)
    for number in range(1, 4000):
        key = stride * dice.randrange(1, 1200)
        row = native.keyed_find(at, key)
        assert bool(row) == (key in expected) and (not row or row[0].value == expected[key])
        if row and dice.random() < 0.6:
            native.keyed_remove(at, ctypes.cast(row, ctypes.c_void_p))
            del expected[key]
        else:
            row = native.keyed_add(at, key)
            assert (row[0].key, row[0].value) == (key, expected.get(key, 0)), "a new row is zero"
            row[0].value = expected[key] = number
        assert table.count == len(expected)
    assert rows_of(native, at) == expected
