"""Types, variables and options: what authors declare."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest

from luthier_py.base.errors import HookError, Invalid
from luthier_py.rewrite.tool import (
    I32,
    U32,
    U64,
    Element,
    Lane,
    LaneType,
    Option,
    Pointer,
    Scalar,
    Tool,
    Variable,
    WaveVariable,
    bool_,
    f32,
    f64,
    i32,
    i64,
    lds,
    ptr,
    scratch,
    u32,
    u64,
)


def test_type_names_are_types_at_run_time() -> None:
    assert u32 is U32 and i32 is I32
    assert ptr[u64] == Pointer(U64) and Lane[u32] == LaneType(U32) and ptr[ptr[u32]] == Pointer(Pointer(U32))
    assert lds[u32] == lds[u32] != lds[f32] and lds[u32] != scratch[u32] and lds[u32] != ptr[u32]
    assert [ptr[u32].dwords, lds[u64].dwords, scratch[u64].dwords] == [2, 1, 1]
    assert [str(t) for t in (u32, ptr[f32], Lane[ptr[i64]], lds[u32], Lane[scratch[f64]])] == [
        "u32", "ptr[f32]", "Lane[ptr[i64]]", "lds[u32]", "Lane[scratch[f64]]"]


@pytest.mark.parametrize(
    ("type", "given", "want"),
    [
        (u32, -1, 2**32 - 1), (u32, 2**32 + 5, 5), (i32, 2**31, -(2**31)), (i64, -(2**63) - 1, 2**63 - 1),
        (u64, -1, 2**64 - 1), (u32, 2.9, 2), (i32, -2.9, -2), (u32, -7.0, 0), (i32, 1e30, 2**31 - 1),
        (u64, math.inf, 2**64 - 1), (i32, math.nan, 0),
        (f32, 0.1, struct.unpack("f", struct.pack("f", 0.1))[0]), (f64, 0.1, 0.1), (bool_, 3, True), (u32, True, 1),
    ],
)
def test_calling_a_type_converts(type: Any, given: Any, want: Any) -> None:
    assert type(given) == want and type(given).__class__ is want.__class__


@pytest.mark.parametrize("wrong", [bool_, str, 3, Lane[u32], lds[u32]])
@pytest.mark.parametrize("kind", [ptr, lds, scratch])
def test_pointers_point_to_numbers(kind: Any, wrong: Any) -> None:
    with pytest.raises(HookError, match=rf"test_types.py:\d+: {kind.__name__}\[.*\] is not a type; point to one of u8"):
        kind[wrong]


def test_lanes_hold_types() -> None:
    with pytest.raises(HookError, match=r"test_types.py:\d+: Lane\[.*\] is not a type"):
        Lane[str]


def test_pointers_are_made_on_the_device_only() -> None:
    with pytest.raises(HookError, match=r"ptr\[u32\]\(...\) is device code"):
        ptr[u32](4096)


class Declared(Tool):
    """A tool with one of everything.

    More text.
    """

    total = Variable(u64)
    bins = Variable(u32, 4)
    count = WaveVariable(u64)
    level = Option("wave", choices=("wave", "thread"), help="what to count", env="TEST_LEVEL")
    limit = Option(10)
    ratio = Option(0.5)
    loud = Option(False)
    title = Option("")


class Derived(Declared):
    name = "derived"
    more = Variable(f32)


def test_declarations_know_their_names() -> None:
    assert Declared.name == "Declared" and Declared.description() == "A tool with one of everything."
    assert [v.name for v in Declared.variables] == ["Declared.total", "Declared.bins"]
    assert [v.name for v in Declared.wave_variables] == ["Declared.count"]
    assert list(Declared.options) == ["level", "limit", "ratio", "loud", "title"]
    assert Derived.name == "derived" and [v.attribute for v in Derived.variables] == ["total", "bins", "more"]


def test_variables_decode_device_memory() -> None:
    assert Declared.total.decode(struct.pack("<Q", 7)) == 7
    assert Declared.bins.decode(struct.pack("<4I", 1, 2, 3, 4)) == (1, 2, 3, 4)
    assert Variable(f32).decode(struct.pack("<f", 1.5)) == 1.5
    assert (Declared.total.size_bytes, Declared.bins.size_bytes, Declared.bins.pointer) == (8, 16, Pointer(U32))


def test_elements() -> None:
    element = Declared.bins[3]
    assert element == Element(Declared.bins, 3) and element.offset_bytes == 12
    for index in (-1, 4):
        with pytest.raises(Invalid, match="has no element"):
            Declared.bins[index]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Variable(bool_), r"Variable\(bool_\): give one of u8"),
        (lambda: Variable(int), "give one of u8"),
        (lambda: Variable(u32, 0), "at least one element"),
        (lambda: WaveVariable(f64), r"WaveVariable\(f64\): give one of u32 i32 u64 i64 f32"),
        (lambda: WaveVariable(ptr[u32]), "give one of"),
        (lambda: Option(3, choices=(1, 2)), "choose 1 or 2"),
    ],
)
def test_wrong_declarations(make: Any, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        make()


def test_options_take_text_and_values(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = Declared(level="thread", limit="0x10", ratio="0.25", loud="yes", title="x")
    assert (tool.level, tool.limit, tool.ratio, tool.loud, tool.title) == ("thread", 16, 0.25, True, "x")
    tool = Declared(limit=3, ratio=1, loud=True)
    assert (tool.level, tool.limit, tool.ratio, tool.loud) == ("wave", 3, 1.0, True)
    monkeypatch.setenv("TEST_LEVEL", "thread")
    assert Declared().level == "thread" and Declared(level="wave").level == "wave"
    monkeypatch.setenv("TEST_LEVEL", "all")
    with pytest.raises(Invalid, match="option level=all: choose wave or thread"):
        Declared()
    assert isinstance(Declared.level, Option)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": "all"}, "option level=all: choose wave or thread"),
        ({"limit": "many"}, "option limit=many: give an integer"),
        ({"limit": 2.5}, "give an integer"),
        ({"limit": True}, "give an integer"),
        ({"ratio": "half"}, "option ratio=half: give a number"),
        ({"loud": "perhaps"}, "option loud=perhaps: give 0 or 1"),
        ({"loud": 2}, "give 0 or 1"),
        ({"loud": 1.0}, "give 0 or 1"),
        ({"size": 1}, "tool Declared has no option size; it has level, limit, ratio, loud, title, START_GRID_NUM"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        Declared(**options)


def test_scalars_say_what_they_hold() -> None:
    assert U32.holds(2**32 - 1) and not U32.holds(2**32) and not U32.holds(-1)
    assert I32.holds(-(2**31)) and not I32.holds(2**31)
    assert [t.dwords for t in (U32, U64, ptr[u32], Lane[u64])] == [1, 2, 2, 2]
    assert all(isinstance(t, Scalar) and t.align_bytes == t.size_bytes for t in (U32, U64))
