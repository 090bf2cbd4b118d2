"""Structures outside of device code: layouts, initial values, tables, what launches left, and reports."""

from __future__ import annotations

import numpy as np
import pytest

from luthier_py.base.errors import Invalid
from luthier_py.rewrite.tool import LaunchVariable, LookupTable, Variable, as_data, bf16, f32, f64, i16, ptr, u8, u16
from luthier_py.rewrite.tool.hooks.types import Struct, device_type
from luthier_py.rewrite.tool.variables import numpy_type


class Point:
    x: f32
    y: f32


class Entry:
    kind: u8
    place: Point
    wide: f64
    distance: i16


class Narrow:
    a: u8
    b: u16
    c: u8


class Leads:
    to: ptr[Entry]
    last: Narrow


class Short:
    x: bf16


def test_layouts_are_those_of_numpy() -> None:
    point = np.dtype([("x", "f4"), ("y", "f4")], align=True)
    entry = np.dtype([("kind", "u1"), ("place", point), ("wide", "f8"), ("distance", "i2")],
                     align=True)
    narrow = np.dtype([("a", "u1"), ("b", "u2"), ("c", "u1")], align=True)
    leads = np.dtype([("to", "u8"), ("last", narrow)], align=True)
    for given, dtype in ((Point, point), (Entry, entry), (Narrow, narrow), (Leads, leads)):
        type = device_type(given)
        assert isinstance(type, Struct) and type.size_bytes == dtype.itemsize and type.align_bytes == dtype.alignment
        assert [each.offset_bytes for each in type.members] == [dtype.fields[name][1] for name in dtype.names]
        assert numpy_type(type).itemsize == dtype.itemsize and numpy_type(type).names == dtype.names


def test_initial_values() -> None:
    point = Variable(Point, initial=(1.5, 2))
    assert point.length is None and point.size_bytes == 8
    assert point.initial is not None and tuple(point.decode(point.initial)) == (1.5, 2)
    several = Variable(Entry, initial=[(1, (3, 4), 5, -2)] * 3)
    assert several.length == 3 and several.size_bytes == 96
    assert several.initial is not None and several.decode(several.initial)[2]["place"]["y"] == 4
    assert Variable(Leads, initial=(1 << 40, (1, 2, 3))).initial == (
        (1 << 40).to_bytes(8, "little") + bytes([1, 0, 2, 0, 3, 0, 0, 0]))
    assert Variable(Point, 4).initial is None


def test_what_is_between_members_of_an_array_is_not_taken() -> None:
    """So equal numbers are equal bytes."""
    kind = numpy_type(Variable(Narrow).type)
    found = []
    for filler in (b"\0", b"\xff"):
        rows = np.frombuffer(filler * 12, kind).copy()
        rows["a"], rows["b"], rows["c"] = [1, 4], [2, 5], [3, 6]
        found.append(Variable(Narrow, initial=rows).initial)
    assert found[0] == found[1] == bytes([1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0])


@pytest.mark.parametrize(("type", "initial", "message"), [
    (Point, [[1, 2]], "give a tuple for each Point"), (Point, [(1, 2, 3)], "give a tuple for each Point"),
    (Point, 7, "give a tuple for each"), (Point, [7], "give a tuple"), (Point, np.zeros(3), "has not the members of"),
    (Point, np.zeros(3, [("y", "f4"), ("x", "f4")]), "has not the members of"),
    (Entry, np.zeros(1, [("kind", "u1"), ("place", [("y", "f4"), ("x", "f4")]), ("wide", "f8"),
                         ("distance", "i2")]), "has not the members of"),
    (Entry, (300, (0, 0), 0, 0), "cannot hold 300"), (Entry, (1.5, (0, 0), 0, 0), "cannot hold 1.5"),
    (Entry, (True, (0, 0), 0, 0), "cannot hold True"), (Point, [], "at least one element"),
    (Short, None, "NumPy has no bf16"), (int, None, "give one of .*, or a class with annotations"),
])  # fmt: skip
def test_what_variables_cannot_be(type: type, initial: object, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        Variable(type, initial=initial)


def test_an_initial_value_of_another_length() -> None:
    with pytest.raises(Invalid, match="its initial value has 2"):
        Variable(Point, 3, initial=[(1, 2), (3, 4)])


def test_tables_and_variables_as_large_as_a_launch() -> None:
    table = LookupTable(Narrow, [(1, 2, 3), (4, 5, 6)])
    assert table.length == 2 and table.data == bytes([1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0])
    assert table.name != LookupTable(u16, np.frombuffer(table.data, "u2")).name
    sized = LaunchVariable(Point, "workgroup", 3)
    assert sized.bytes_of((2, 1, 1), (64, 1, 1), 64) == 48
    rows = sized.decode(np.arange(12, dtype="f4").tobytes())
    assert rows.shape == (2, 3) and rows[1, 2]["y"] == 11
    with pytest.raises(Invalid, match="NumPy has no bf16"):
        LaunchVariable(Short, "wave")
    with pytest.raises(Invalid, match="LaunchVariable.*give one of"):
        LaunchVariable(int, "wave")


def test_reports_have_the_names_of_members() -> None:
    several = Variable(Entry, initial=[(1, (3, 4), 5, -2), (7, (9, float("nan")), 8, 0)])
    assert several.initial is not None
    rows = several.decode(several.initial)
    first = {"kind": 1, "place": {"x": 3.0, "y": 4.0}, "wide": 5.0, "distance": -2}
    assert as_data({"rows": rows})["rows"][0] == as_data(rows[0]) == first
    assert as_data(rows)[1]["place"] == {"x": 9.0, "y": "NaN"}
