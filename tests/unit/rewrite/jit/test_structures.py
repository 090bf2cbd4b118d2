"""Structures in device code: read, made and written; on the emulator, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hook_files import load_text
from observing import LANES, launch

from luthier_py.base.errors import HookError
from luthier_py.isa import instruction_set, target, vgpr
from luthier_py.rewrite.jit.python.frontend import hook_ir
from luthier_py.rewrite.tool import (
    Hook,
    Hooks,
    Lane,
    Mutator,
    Tool,
    Variable,
    array,
    device,
    f32,
    f64,
    hook,
    i16,
    i64,
    ptr,
    u8,
    u32,
    u64,
)


class Point:
    x: f32
    y: f32


class Entry:
    kind: u8
    distance: i16
    place: Point
    wide: f64
    count: u32


@device
def middle(a: Lane[Point], b: Lane[Point]) -> Lane[Point]:
    return Point((a.x + b.x) / 2, (a.y + b.y) / 2)


@device
def apart(a: Lane[Point]) -> tuple[Lane[f32], Lane[Point]]:
    return a.x - a.y, Point(a.y, a.x)


@hook
def change(entries: ptr[Entry], points: ptr[Point], x: Lane[u32]) -> None:
    own = entries[x]
    entries[x].count += u32(own.kind) + 1
    entries[x].place.y = own.place.x * 2
    if x % 2:
        entries[x].distance = own.distance - i16(100)
        own = Entry(u8(7), i16(-3), own.place, f64(x) / 8, x)
    entries[x].wide = own.wide
    far, turned = apart(middle(own.place, points[x]))
    points[x] = turned if far < 3 else Point(far, 0.0)


def test_on_the_emulator() -> None:
    rows = np.zeros(LANES, [("kind", "u1"), ("distance", "i2"), ("place", [("x", "f4"), ("y", "f4")]), ("wide", "f8"),
                            ("count", "u4")])
    lane = np.arange(LANES)
    rows["kind"], rows["distance"], rows["place"]["x"], rows["place"]["y"] = lane * 3, lane - 20, lane / 4, lane
    rows["wide"], rows["count"] = lane * 1.5, lane + 1000
    begin = [(n / 2, -n / 2) for n in range(LANES)]

    class Changed(Tool):
        entries = Variable(Entry, LANES, initial=rows)
        points = Variable(Point, initial=begin)

        def instrument(self, m: Mutator) -> None:
            m.at_entry(m.kernels[0], change, self.entries, self.points, vgpr(0))

    found = launch(Changed(), LANES)
    entries, points = found[Changed.entries], found[Changed.points]
    assert isinstance(entries, np.ndarray) and isinstance(points, np.ndarray)
    odd = lane % 2 == 1
    assert (entries["kind"] == rows["kind"]).all() and (entries["count"] == rows["count"] + rows["kind"] + 1).all()
    assert (entries["distance"] == rows["distance"] - odd * 100).all()
    assert (entries["place"]["y"] == rows["place"]["x"] * 2).all()
    assert (entries["wide"] == np.where(odd, lane / 8, rows["wide"])).all()
    mid = (lane / 4 + lane / 2) / 2, (lane + -lane / 2) / 2
    far = mid[0] - mid[1]
    assert (points["x"] == np.where(far < 3, mid[1], far)).all()
    assert (points["y"] == np.where(far < 3, mid[0], 0)).all()


@hook
def in_a_local_array(points: ptr[Point], x: Lane[u32]) -> None:
    own = array(Point, 4)
    own[x % 4] = Point(f32(x), 1.0)
    own[1].y += own[x % 4].x
    points[x] = own[1]


def test_in_local_arrays() -> None:
    class Local(Tool):
        points = Variable(Point, LANES)

        def instrument(self, m: Mutator) -> None:
            m.at_entry(m.kernels[0], in_a_local_array, self.points, vgpr(0))

    rows = launch(Local(), LANES)[Local.points]
    lane = np.arange(LANES)
    assert isinstance(rows, np.ndarray)
    assert (rows["x"] == np.where(lane % 4 == 1, lane, 0)).all()
    assert (rows["y"] == np.where(lane % 4 == 1, 1 + lane, np.where(lane % 4, lane, lane))).all()


class Wide:
    a: u32
    b: u32
    c: u32
    d: u32


class Longs:
    a: u64
    b: i64


class Floats:
    place: Point
    size: Point


@hook
def wide(into: ptr[Wide], source: ptr[Wide], x: Lane[u32]) -> None:
    into[x] = source[x]


@hook
def longs(into: ptr[Longs], source: ptr[Longs], x: Lane[u32]) -> None:
    into[x] = source[x]


@hook
def floats(into: ptr[Floats], source: ptr[Floats], x: Lane[u32]) -> None:
    own = source[x]
    into[x] = Floats(own.size, own.place)


@pytest.mark.parametrize("one", [wide, longs, floats], ids=lambda one: one.name)
@pytest.mark.parametrize("name", ["gfx900", "gfx90a", "gfx1030", "gfx1200"])
def test_whole_structures_go_in_one_access(one: Hook, name: str, assembly: Callable[..., list[str]]) -> None:
    lines = assembly(one, name, 64 if name.startswith("gfx9") else 32)
    memory = [line.split()[0] for line in lines if "load_" in line or "store_" in line and "wait" not in line]
    memory = [each for each in memory if not each.startswith("s_wait")]
    kind = "b128" if name == "gfx1200" else "dwordx4"
    assert memory == [f"global_load_{kind}", f"global_store_{kind}"]


@hook
def one_member(p: ptr[Entry], x: Lane[u32]) -> None:
    p[x].distance = p[x].distance + i16(1)


def test_of_one_member_only_that_is_touched(assembly: Callable[..., list[str]]) -> None:
    memory = [line for line in assembly(one_member) if line.startswith("global_")]
    assert len(memory) == 2 and all("short" in line and "offset:2" in line for line in memory)


HEADER = """\
from luthier_py import asm
from luthier_py.intrinsics import atomic_add, popcount
from luthier_py.rewrite.tool import Lane, array, bool_, device, f32, hook, lds, ptr, u32, u64

class Point:
    x: u32
    y: f32

class Odd:
    x: u32
    text: str

class Other:
    x: u32
    y: u32

class Node:
    value: u32
    next: "ptr[Node]"

class Late(Point):
    z: u32

class Near:
    z: lds[u32]

class Inner:
    class Point:
        x: u32

@device
def first(p: ptr[Inner.Point]) -> u32:
    return p[0].x

@device
def made(x: u32) -> Point:
    return Point(x, 0.0)

@device(depth=3)
def again(s: Lane[Point], n: Lane[u32]) -> Lane[Point]:
    return again(s, n - 1) if n else s

@hook
def h(p: ptr[Point], q: Lane[u32], o: ptr[Other]) -> u32:
    """
REFUSED = [
    ("return p[0]", r"this is Point \(x: u32, y: f32\), not u32"),
    ("return p[0].z", r"Point \(x: u32, y: f32\) has no member z"),
    ("return q.x", "this is u32, which has no members"),
    ("return p.x", r"this is ptr\[Point\], which has no members"),
    ("return u32(p[0])", "Point does not become u32; take members"),
    ("return u32(p[0] == p[1])", "Point cannot be compared so; compare its members"),
    ("return (p[0] + p[1]).x", "is not allowed on Point; take its members"),
    ("return (-p[0]).x", "not allowed on Point"),
    ("return u32(not p[0])", "Point is no condition; compare its members"),
    ("return Point(1).x", "has 2 members, 1 given"),
    ("return Point(1.5, 2.5).x", "1.5 is not a u32"),
    ("return Point(q, 0.0).x", "the result differs between lanes"),
    ("a = made(3)\n    a.x = 4\n    return a.x", "`a` is a value, of which no part changes"),
    ("p[0].x.y = 4\n    return 3", "this is u32, which has no members"),
    ("p[0] = o[0]\n    return 3", r"this is Other \(x: u32, y: u32\), not Point"),
    ("p[0] = 3\n    return 3", r"3 is not a Point; make one as in Point\(x, y\)"),
    ("return Odd(1, 2).x", "struct Odd: text: str cannot be in memory"),
    ("a = p[0]\n    a = o[0]\n    return 3", "a is Point, since it was first assigned"),
    ("return first(p)", r"this is ptr\[Point\] of another kind: Point \(x: u32, y: f32\) is not Point \(x: u32\)"),
    ("print(p[0])\n    return 3", "Point does not become u64; take members"),
    ("a = P(1, 2)\n    return 3", "P cannot be called"),
    ("p[0] = Point(x=1, y=2)\n    return 3", "only plain positional arguments"),
    ("p[0] += 1\n    return 3", "1 is not a Point"),
    ("return p[p[0]].x", "an index must be an integer, not Point"),
    ("return 3 if p[0] else 4", "Point is no condition"),
    ("a = p[q]\n    b: Point = a\n    return 3", "b is declared Point, one for the wave"),
    ("return atomic_add(p, 3)", "atomics need a pointer to u32"),
    ("return popcount(p[0])", "an integer is needed here, not Point"),
    ("lds[Point](3)[0] = p[0]\n    return 3", "which hooks read only"),
    ("lds[Point](3)[0].x = 5\n    return 3", "which hooks read only"),
    ("asm('s_nop 0', p[0], result=u32)\n    return 3", "asm takes numbers, and this is Point"),
    ("return ptr[Node](u64(p))[0].value", "struct Node: it leads to itself"),
    ("return ptr[Late](u64(p))[0].z", "struct Late: it has the members of Point, too"),
    ("return ptr[Near](u64(p))[0].z", r"struct Near: z: lds\[u32\] cannot be in memory"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text for text, _ in REFUSED])
def test_refusals(tmp_path: Path, text: str, message: str) -> None:
    found = load_text(tmp_path, HEADER + text).h
    assert isinstance(found, Hook)
    constants = (None,) * len(found.signature.parameters)
    with pytest.raises(HookError, match=message) as error:
        hook_ir(found, constants, instruction_set(target("gfx90a")))
    assert ": h: " in error.value.message


def test_functions_that_call_themselves_take_members(tmp_path: Path) -> None:
    found = load_text(tmp_path, HEADER + "return again(made(3), 2).x").h
    with pytest.raises(HookError, match=r"py:\d+: again: s: Lane\[Point\]: a function that calls itself"):
        hook_ir(found, (None,) * len(found.signature.parameters), instruction_set(target("gfx90a")))


@pytest.mark.parametrize(("text", "message"), [
    ("@hook\ndef h(p: Point) -> None:\n    pass", r"p is Point \(x: u32, y: f32\): pass members, or a pointer"),
    ("@hook\ndef h(p: Lane[u32]) -> Point:\n    pass", "its result is Point"),
    ("@hook\ndef h(p: ptr[Odd]) -> None:\n    pass", "struct Odd: text: str cannot be in memory"),
    ("@device\ndef h(p: Odd) -> None:\n    pass", "struct Odd: text: str cannot be in memory"),
    ("@hook\ndef h(p: ptr[Node]) -> None:\n    pass", "struct Node: it leads to itself"),
    ("@hook\ndef h(p: lds[Late]) -> None:\n    pass", "struct Late: it has the members of Point, too"),
    ("@hook\ndef h(p: ptr[bool_]) -> None:\n    pass", "point to one of .* or a class with annotations"),
])  # fmt: skip
def test_declarations(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(HookError, match=message):
        load_text(tmp_path, HEADER[: HEADER.rindex("@hook")] + text)


# -- C++ -------------------------------------------------------------------------------------------

CPP = """
#include <luthier/hooks.h>
using namespace luthier;
struct Point { f32 x, y; };
struct Entry { u8 kind; i16 distance; Point place; f64 wide; u32 count; };
__device__ Entry seen[4] = {{1, -2, {3, 4}, 5, 6}};

LUTHIER_HOOK() void change(Entry *entries, lane<u32> x)
{
    entries[x].count += entries[x].kind;
    entries[x].place.y = x;
    if (x < 4) seen[x].wide += x;
}
LUTHIER_HOOK() lane<u32> near(lane<lds<Entry>> entry, scratch<Point> own)
{
    return u32(entry[0].count + entry[1].kind + own->x);
}
LUTHIER_DEVICE void clear(lane<Entry *> entry) { Entry *own = entry; own->wide = 0; }
"""


@pytest.fixture
def hooks(clang: str) -> Hooks:
    return Hooks.from_hip(CPP)


def test_the_same_structures_in_cpp(hooks: Hooks) -> None:
    clear = hooks.clear

    @hook
    def both(entries: ptr[Entry], x: Lane[u32]) -> None:
        if entries[x].count > 1000:
            clear(entries + x)

    class Both(Tool):
        entries = Variable(Entry, initial=[(n, -n, (n, n), n, 990 + n) for n in range(LANES)])

        def instrument(self, m: Mutator) -> None:
            m.at_entry(m.kernels[0], hooks.change, self.entries, vgpr(0))
            m.at_entry(m.kernels[0], both, self.entries, vgpr(0))

    found = launch(Both(), LANES)
    rows, lane = found[Both.entries], np.arange(LANES)
    assert isinstance(rows, np.ndarray)
    assert (rows["count"] == 990 + 2 * lane).all() and (rows["place"]["y"] == lane).all()
    assert (rows["wide"] == np.where(990 + 2 * lane > 1000, 0, lane)).all()
    seen = found[hooks.seen]
    assert isinstance(seen, np.ndarray)
    assert seen.tolist() == [(1, -2, (3, 4), 5, 6), (0, 0, (0, 0), 1, 0), (0, 0, (0, 0), 2, 0), (0, 0, (0, 0), 3, 0)]


def test_near_pointers_to_structures_in_cpp(hooks: Hooks, assembly: Callable[..., list[str]]) -> None:
    assert [str(each) for each in hooks.near.signature.parameters] == [
        "entry: Lane[lds[Entry]]", "own: scratch[Point]"]
    memory = [line.split()[0] for line in assembly(hooks.near, "gfx942") if line.startswith(("ds_", "scratch_"))]
    assert sorted(memory) == ["ds_read_b32", "ds_read_u8", "scratch_load_dword"]


@pytest.mark.parametrize(("text", "message"), [
    ("struct S { u32 a; char *text[2]; };", "struct S: text: .* is not a device type"),
    ("struct __attribute__((packed)) S { u8 a; u32 b; };", "struct S is packed, or aligned by itself"),
    ("struct alignas(16) S { u32 a; };", "struct S is packed, or aligned by itself"),
    ("struct S { u32 a : 3, b : 29; };", "struct S: a has a part of the bits of a number"),
    ("struct B { u32 b; }; struct S : B { u32 a; };", "struct S: give a structure with members, and without a base"),
    ("struct S { u32 a; S *next; };", "is not a device type"),
    ("struct S { u32 a[4]; };", "is not a device type"),
    ("struct S { bool a; };", "struct S: a: bool_ cannot be in memory"),
])  # fmt: skip
def test_what_cpp_structures_may_be(clang: str, text: str, message: str) -> None:
    made = Hooks.from_hip(f"#include <luthier/hooks.h>\nusing namespace luthier; {text}\n"
                          "LUTHIER_HOOK() void h(S *s) { *(volatile char *)s = char(sizeof(S)); }\n")
    with pytest.raises(HookError, match=message):
        _ = made.h
