"""What is not device Python is refused with file, line, what it is, and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hook_files import load_text

from luthier_py.base.errors import HookError
from luthier_py.isa import instruction_set, target
from luthier_py.rewrite.jit.python.frontend import hook_ir
from luthier_py.rewrite.tool import Hook

ISA = instruction_set(target("gfx90a"), 64)
HEADER = """\
import math
from luthier_py import Lane, array, bf16, bool_, device, f16, f32, f64, hook, i32, i64, lds, ptr, scratch, u32, u64
from luthier_py.intrinsics import atomic_add, lane_id, read_lane, popcount, as_bits, read_first_lane, atomic_cas

SIZE = 12
NAME = "twelve"

@device
def twice(x: u32) -> u32:
    return x + x

@device
def endless(x: u32) -> u32:
    return endless(x)

@device
def nothing(x: u32) -> None:
    pass

@device
def adopt(y: u32, z: Lane[u32]) -> u32:
    y = z
    return u32(1)

@hook
def other(x: u32) -> u32:
    return x

@hook
"""
FIRST = HEADER.count("\n") + 1  # line of the def


def compile_text(tmp_path: Path, text: str) -> None:
    hook = load_text(tmp_path, HEADER + text).h
    assert isinstance(hook, Hook)
    hook_ir(hook, (None,) * len(hook.signature.parameters), ISA)


U = "def h(x: u32, y: i32, z: f32, p: ptr[u32], q: Lane[u32]) -> u32:\n    "

N = "def h(near: Lane[lds[u32]], own: Lane[scratch[u32]], far: ptr[u32], w: lds[u32]) -> None:\n    "

REFUSED = [
    (N + "near[1] = 2", 1, r"lds\[u32\] is the application's memory, which hooks read only"),
    (N + "own[1] += 2", 1, r"scratch\[u32\] is the application's memory, which hooks read only"),
    (N + "atomic_add(near, 1)", 1, r"atomics are for global memory; lds\[u32\] can be read only"),
    (N + "x = scratch[u32](near)", 1, r"lds\[u32\] is an address in other memory than scratch\[u32\]"),
    (N + "x = ptr[u32](near)", 1, r"lds\[u32\] is an address in other memory than ptr\[u32\]"),
    (N + "x = lds[u32](far)", 1, r"ptr\[u32\] is an address in other memory than lds\[u32\]"),
    (N + "x = u64(near)", 1, r"a lds\[u32\] becomes an integer as u32\(pointer\), not u64"),
    (N + "far = near", 1, r"far is ptr\[u32\]"),
    (N + "far[0] = 1 if near else 2", 1, r"a pointer is no condition; compare u32\(pointer\) with 0"),
    (N + "x: u32 = own[0]", 1, "x is declared u32, one for the wave"),
    (U + "a = array(u32, x)\n    return x", 1, "the length of an array is a constant from 1 to 4096"),
    (U + "a = array(u32, 4)\n    return a[4]", 2, "a is an array of 4 u32; 4 is no index of it"),
    (U + "a = array(u32, 4)\n    return a", 2, r"a is an array of 4 u32; index it, or ask len\(a\)"),
    (U + "a = array(u32, 4)\n    a = array(u32, 5)\n    return x", 2, "it is an array of 4 u32 already"),
    (U + "a = array(u32, 4)\n    a = x\n    return x", 2, "a is an array of 4 u32"),
    (U + "a = array(u32, 4)\n    a[0] = q\n    b: u32 = a[1]\n    return b", 3, "b is declared u32, one for the wave"),
    (U + "if x:\n        a = array(u32, 4)\n    return a[0]", 3, "a may have no value here"),
    # text, line after the def, what the message says
    (U + "return x ** 2", 1, r"\*\* is not allowed in device code; allowed are \+ - \*"),
    (U + "return x @ x", 1, "@ is not allowed"),
    (U + "return x + y", 1, "u32 and i32 do not mix; convert one"),
    (U + "return x / 2", 1, "/ is for floats; use //"),
    (U + "return u32(z // 2)", 1, "// is not allowed on floats"),
    (U + "return u32(z % 2)", 1, "% is not allowed on floats"),
    (U + "return u32(z << 2)", 1, "<< is not allowed on f32"),
    (U + "return x << 32", 1, "u32 can be shifted by 0 to 31"),
    (U + "return x << z", 1, "the amount of a shift must be an integer"),
    (U + "return x // 0", 1, "// by zero"),
    (U + "return 1 // 0", 1, "zero"),
    (U + "return 1 << 5000", 1, "does not fit"),
    (U + "return ~z", 1, "~ is not allowed on floats"),
    (U + "return -(x < 3)", 1, "not allowed on bool_"),
    (U + "return (x < 3) + (x < 4)", 1, r"\+ is not allowed on bool_; compare first, or convert"),
    (U + "return x < 3", 1, "this is bool_, not u32; convert it"),
    (U + "return y", 1, "this is i32, not u32; convert it, as in u32"),
    (U + "return 2.5", 1, "2.5 is not a u32"),
    (U + "return True", 1, "True is not a u32"),
    (U + "return -1", 1, "-1 does not fit into u32"),
    (U + "return x + 5000000000", 1, "5000000000 does not fit into u32"),
    (U + "return x + u32(z * f32(1e39))", 1, r"1e\+39 does not fit into f32"),
    (U + "return x + u32(z * 1e39)", 1, r"1e\+39 does not fit into f32"),
    (U + "return x + u32(z * f32(1 << 1024))", 1, "an integer of 1025 bits does not fit into f32"),
    (U + "return x + u32(z * f32(f16(1 << 1024)))", 1, "an integer of 1025 bits does not fit into f16"),
    (U + "return x + u32(f64(z) * f64(1 << 1024))", 1, "an integer of 1025 bits does not fit into f64"),
    (U + "return x + u32(z * f32(f16(70000.0)))", 1, "70000.0 does not fit into f16"),
    (U + "return x + u32(z * f32(bf16(3.4e38 + 1e36)))", 1, r"does not fit into bf16"),
    (U + "return 'a'", 1, "'a' is not allowed in device code; only numbers are"),
    (U + "return NAME", 1, "NAME is str; only int, float and bool constants"),
    (U + "return unknown", 1, "unknown is unknown here; device code sees its parameters"),
    (U + "return math.gamma(z)", 1, r"math.gamma cannot be called in device code; mark functions .* with @device"),
    (U + "return other(x)", 1, "other cannot be called"),
    (U + "return len(x)", 1, "len cannot be called"),
    (U + "return print(x)", 1, "0 values are returned, but 1 are declared"),
    (U + "return len(p)", 1, "len cannot be called"),
    (U + "return popcnt(x)", 1, r"popcnt cannot .* unknown here; did you mean popcount\?; .* active_mask all_ "),
    (U + "return balot(x > 1)", 1, r"did you mean ballot\? Import it from luthier_py.intrinsics"),
    (U + "return ballot(x > 1)", 1, r"ballot cannot be called .*; import it from luthier_py.intrinsics"),
    (U + "return twise(x)", 1, r"did you mean twice\?"),
    (U + "return math.popcnt(x)", 1, r"did you mean popcount\?"),
    (U + "return utterly_different(x)", 1, "utterly_different cannot be called .* it is unknown here; allowed are"),
    (U + "return x(1)", 1, "x cannot be called in device code; allowed are"),
    (U + "return SIZ", 1, r"SIZ is unknown here; .*; did you mean SIZE\?"),
    (U + "total = x\n    return totl", 2, r"totl is unknown here; .*; did you mean total\?"),
    (U + "return twice(x, x)", 1, "twice takes 1 arguments, 2 given"),
    (U + "return twice(x=x)", 1, "only plain positional arguments"),
    (U + "return twice(*[x])", 1, "only plain positional arguments"),
    (U + "return twice(y)", 1, "this is i32, not u32"),
    (U + "return endless(x)", -16, "endless calls itself; say how deep"),
    (U + "return nothing(x)", 1, "0 values are returned, but 1 are declared"),
    (U + "x = nothing(x)\n    return x", 1, "1 names are assigned, but there are 0 values"),
    (U + "return nothing(x) + 1", 1, "one value is needed here; this gives none"),
    (U + "return u32(x, x)", 1, "u32 takes one argument"),
    (U + "return min(x)", 1, "min and max take two numbers or more"),
    (U + "return abs(p)", 1, r"abs is not allowed on ptr\[u32\]"),
    (U + "return abs(x < 1)", 1, "abs is not allowed on bool_"),
    (U + "return popcount(z)", 1, "an integer is needed here, not f32"),
    (U + "return popcount(x, x)", 1, "popcount takes 1 argument, 2 given"),
    (U + "return as_bits(x)", 1, "as_bits needs a float"),
    (U + "return atomic_add(x, 1)", 1, "atomics need a pointer to u32, i32, u64 or i64 first"),
    (U + "return atomic_add(p, y)", 1, "this is i32, not u32"),
    (U + "return x[0]", 1, r"`x` is no pointer; only ptr\[T\], lds\[T\], scratch\[T\] can be indexed"),
    (U + "return p[z]", 1, "an index must be an integer, not f32"),
    (U + "return p[0:1]", 1, "slices are not allowed"),
    (U + "return p[0, 1]", 1, "slices are not allowed"),
    (U + "return p", 1, r"this is ptr\[u32\], not u32"),
    (U + "return u32(p)", 1, r"a ptr\[u32\] becomes an integer as u64\(pointer\), not u32"),
    (U + "return p * 2", 1, r"\* is not allowed on pointers|not a ptr"),
    (U + "return p < p", 1, r"ptr\[u32\] cannot be compared so"),
    (U + "p[0] = y\n    return x", 1, "this is i32, not u32"),
    (U + "p.x = 1\n    return x", 1, "this is ptr.u32., which has no members; index it first"),
    (U + "return p.x", 1, "this is ptr.u32., which has no members; index it first"),
    (U + "return [x]", 1, r"`\[x\]` is not allowed in device code; allowed are numbers"),
    (U + "return {x: x}", 1, "is not allowed in device code"),
    (U + "return (lambda: x)()", 1, "cannot be called in device code"),
    (U + "return f'{x}'", 1, "is not allowed in device code"),
    (U + "return (a := x)", 1, "is not allowed in device code"),
    (U + "return x if p else y", 1, "a pointer is no condition"),
    (U + "return x if z else y", 1, "u32 and i32 do not mix"),
    (U + "return x is x", 1, "this comparison is not allowed in device code; allowed are =="),
    (U + "return x in p", 1, "this comparison is not allowed"),
    (U + "a = x\n    a = z\n    return a", 2, "a is u32, since it was first assigned: this is f32"),
    (U + "a: u64 = x\n    a: u32 = x\n    return x", 2, "a is u64 already; a local keeps its type"),
    (U + "a: u32 = x\n    a: Lane[u32] = q\n    return x", 2, "a is u32 already; a local keeps its type"),
    (U + "a: Lane[u32] = q\n    a: u32 = x\n    return x", 2, r"a is Lane\[u32\] already; a local keeps its type"),
    (U + "a = x\n    a: u32 = x\n    return x", 2, "a is u32 already; .* declared where it is first assigned"),
    (U + "a: u64\n    return x", 1, "a is declared without a value"),
    (U + "a: str = x\n    return x", 1, "`str` is not a device type"),
    (U + "a: ptr[bool_] = p\n    return x", 1, r"ptr\[bool_\] is not a type"),
    (U + "a, b = x\n    return x", 1, "2 names are assigned, but there are 1 values"),
    (U + "if x > 3:\n        a = x\n    return a", 3, "a may have no value here"),
    (U + "while x > 3:\n        a = x\n        x -= 1\n    return a", 4, "a may have no value here"),
    (U + "for i in range(x):\n        pass\n    return i", 3, "i may have no value here"),
    (U + "a += 1\n    return a", 1, "a may have no value here"),
    (U + "if x > 3:\n        return x", 0, "it may end without returning a value"),
    (U + "return", 1, "0 values are returned, but 1 are declared"),
    (U + "return x, x", 1, "2 values are returned, but 1 are declared"),
    (U + "return None", 1, "0 values are returned"),
    (U + "for i in p:\n        pass\n    return x", 1, r"for runs over range\(...\) only"),
    (U + "for i in range(0, x, 0):\n        pass\n    return x", 1, "the step of range must be a constant"),
    (U + "for i in range(0, x, x):\n        pass\n    return x", 1, "the step of range must be a constant"),
    (U + "for i in range():\n        pass\n    return x", 1, "range takes one to three integers"),
    (U + "for i in range(z):\n        pass\n    return x", 1, "0 is not a|range runs over integers"),
    (U + "for i in range(x):\n        pass\n    else:\n        pass\n    return x", 1, "else of a loop is not allowed"),
    (U + "while x:\n        x -= 1\n    else:\n        pass\n    return x", 1, "else of a loop is not allowed"),
    (U + "while True:\n        x += 1", 1, "this loop never ends; leave it with break or return"),
    (U + "with p:\n        pass\n    return x", 1, "`with` is not allowed in device code; allowed are assignments"),
    (U + "try:\n        pass\n    finally:\n        pass\n    return x", 1, "`try` is not allowed"),
    (U + "import os\n    return x", 1, "`import` is not allowed"),
    (U + "global SIZE\n    return x", 1, "`global` is not allowed"),
    (U + "def f():\n        pass\n    return x", 1, "`functiondef` is not allowed"),
    (U + "del x\n    return x", 1, "`delete` is not allowed"),
    (U + "x\n    return x", 1, "this statement has no effect"),
    (U + "raise ValueError", 1, "`raise` is not allowed"),
    # what differs between lanes
    (U + "return q", 1, r"the result differs between lanes, .* declare it Lane\[u32\], or .* read_first_lane"),
    (U + "return x + q", 1, "differs between lanes"),
    # what is declared one for the wave stays so
    (U + "a: u32 = q\n    return x", 1, r"a is declared u32, one for the wave, but what .* differs .*Lane\[u32\], or"),
    (U + "a: u32 = x\n    a = q\n    return x", 2, "a is declared u32, one for the wave"),
    (U + "a: u32 = x\n    a += q\n    return x", 2, "a is declared u32, one for the wave"),
    (U + "a: u32 = x\n    if q > 3:\n        a = x\n    return x", 3, "but only some of the lanes assign it here"),
    (U + "a: u32 = x\n    for a in range(q):\n        pass\n    return x", 2, "a is declared u32"),
    (U + "b = x\n    for i in range(9):\n        a: u32 = b\n        b = q\n    return x", 3, "a is declared u32"),
    (U + "a: ptr[u32] = p + q\n    return x", 1, r"a is declared ptr\[u32\], one for the wave"),
    (U + "a: u32 = x\n    a, b = q, x\n    return x", 2, "a is declared u32"),
    (U + "x = q\n    return 1", 1, "x is declared u32, one for the wave"),
    (U + "if q > 3:\n        x = u32(1)\n    return 1", 2, "x is declared u32, one for the wave"),
    (U + "return adopt(x, q)", -8, "y is declared u32, one for the wave"),
    (U + "return lane_id()", 1, "differs between lanes"),
    (U + "return atomic_add(p, 1)", 1, "differs between lanes"),
    (U + "return p[q]", 1, "differs between lanes"),
    (U + "return twice(q)", 1, "argument x of twice differs between lanes"),
    (U + "return read_lane(x, q)", 1, "argument 2 of read_lane must be the same in all lanes"),
    (U + "if q > 3:\n        return x\n    return x + 1", 2, "returned by some of the lanes only"),
    (U + "a = x\n    if q > 3:\n        a = x + 1\n    return a", 4, "differs between lanes"),
    (U + "a = x\n    while a < q:\n        a += 1\n    return a", 4, "differs between lanes"),
    (U + "a = x\n    while True:\n        if q == 3:\n            break\n        a += 1\n    return a", 6, "differs"),
    (U + "a = x\n    for i in range(q):\n        a += 1\n    return a", 4, "differs between lanes"),
    (U + "return x if q > 2 else x + 1", 1, "differs between lanes"),
    (U + "return u32(x > 2 and q > 2)", 1, "differs between lanes"),
    (U + "return u32(1 < x < q)", 1, "differs between lanes"),
    (U + "a = x\n    b = x\n    for i in range(9):\n        b = a\n        a = q\n    return b", 6, "differs"),
]


@pytest.mark.parametrize(
    ("text", "line", "message"), REFUSED, ids=[text[len(U) :].split("\n")[0] for text, *_ in REFUSED]
)
def test_refused(text: str, line: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(HookError, match=rf"^{tmp_path}/written_\d+\.py:{FIRST + line}: \w+: .*({message})"):
        compile_text(tmp_path, text)


ACCEPTED = [
    "if q > 3:\n        p[0] = x\n    return x",
    "if q > 3:\n        a = x * 2\n        p[q] = a\n    return x",
    "for i in range(9):\n        if q == 3:\n            continue\n        p[i] = x\n    return x",
    "a = x\n    if x > 3:\n        a = x + 1\n    return a",
    "a = x\n    while True:\n        a += 1\n        if a > 100:\n            break\n    return a",
    "return read_first_lane(q) + SIZE",
    "while True:\n        if x > 3:\n            return x\n        x += 1",
    "if x > 3:\n        a = x\n    else:\n        return x\n    return a",
    "\"\"\"A docstring.\"\"\"\n    pass\n    return x",
    "a: Lane[u32] = q\n    p[a] = u32(u64(p) >> 3)\n    (p + 3)[x] += 1\n    return (p - x)[0]",
    "r = ptr[u64](u64(p))\n    r[0] ^= 1\n    return x",
    "r = lds[u32](q)\n    s = lds[f32](r + 1) - 2\n    p[q] = u32(s) + u32(i32(r))\n    return x",
    "for i in range(4):\n        for j in range(i):\n            p[j] = u32(i)\n    return x",
]


@pytest.mark.parametrize("text", ACCEPTED, ids=lambda text: text.split("\n")[0])
def test_accepted(text: str, tmp_path: Path) -> None:
    compile_text(tmp_path, U + text)


def test_a_single_lane_cannot_differ(tmp_path: Path) -> None:
    text = '@hook(lanes="one")\ndef h(p: ptr[u32]) -> u32:\n    return atomic_add(p, 1)\n'
    hook_ir(load_text(tmp_path, HEADER[: HEADER.rindex("@hook")] + text).h, (None,), ISA)


def test_without_source(tmp_path: Path) -> None:
    names: dict[str, Hook] = {}
    exec("from luthier_py.rewrite.tool import hook, u32\n@hook\ndef h(x: u32) -> u32:\n    return x\n", names)
    with pytest.raises(HookError, match=r"<string>:2: h: its source cannot be read; device code must be a def"):
        hook_ir(names["h"], (None,), ISA)


def test_bool_parameters_need_constants(tmp_path: Path) -> None:
    hook = load_text(tmp_path, HEADER + "def h(x: u32, flag: bool_) -> u32:\n    return x if flag else x + 1\n").h
    hook_ir(hook, (None, True), ISA)
    with pytest.raises(HookError, match="flag is bool_ and needs a compile-time True or False"):
        hook_ir(hook, (None, None), ISA)


def test_too_many_parameters(tmp_path: Path) -> None:
    names = ", ".join(f"x{i}: u64" for i in range(9))
    hook = load_text(tmp_path, HEADER + f"def h({names}) -> None:\n    pass\n").h
    with pytest.raises(HookError, match="16 dwords at most in scalar registers, 18 given"):
        hook_ir(hook, (None,) * 9, ISA)


def test_constants_are_read_when_compiled(tmp_path: Path) -> None:
    module = load_text(tmp_path, HEADER + "def h(x: u32) -> u32:\n    return x + SIZE\n")
    before = hook_ir(module.h, (None,), ISA)
    module.SIZE = 13
    assert hook_ir(module.h, (None,), ISA) != before
