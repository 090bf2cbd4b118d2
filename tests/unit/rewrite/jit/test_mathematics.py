"""Functions of math in device code: executed by the emulator, against Python's own, lane by lane."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from each_target import EACH_TARGET
from hook_files import load_text
from observing import LANES, observe

from luthier_py.base.errors import HookError, Unsupported
from luthier_py.isa import Target, instruction_set, target
from luthier_py.rewrite.clang import Search
from luthier_py.rewrite.jit import PayloadKey, compile_keys
from luthier_py.rewrite.jit.python.frontend import hook_ir
from luthier_py.rewrite.jit.python.mathematics import NAMES
from luthier_py.rewrite.tool import F16, F32, F64, Hooks, Lane, Scalar, f32, f64, hook, ptr, u32

EXACT = {"sqrt": math.sqrt, "fabs": math.fabs, "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc}
# Errors that ROCm's documents allow (OpenCL C, "Relative error as ULPs"), in units of the last place.
ULPS = 5
CLOSE = {
    "exp": (-20.0, 20.0), "expm1": (-3.0, 3.0), "log": (0.01, 900.0), "log2": (0.01, 900.0), "log10": (0.01, 900.0),
    "log1p": (-0.9, 30.0), "sin": (-300.0, 300.0), "cos": (-300.0, 300.0), "tan": (-1.5, 1.5), "asin": (-1.0, 1.0),
    "acos": (-1.0, 1.0), "atan": (-30.0, 30.0), "sinh": (-5.0, 5.0), "cosh": (-5.0, 5.0), "tanh": (-3.0, 3.0),
    "asinh": (-9.0, 9.0), "acosh": (1.0, 9.0), "atanh": (-0.99, 0.99), "erf": (-2.0, 2.0),
}  # fmt: skip
TWO = {"pow": (0.1, 9.0), "atan2": (-9.0, 9.0), "hypot": (-9.0, 9.0), "fmod": (-99.0, 99.0)}
HOOK = """
import math
from luthier_py.intrinsics import as_bits
from luthier_py.rewrite.tool import Lane, f16, f32, f64, hook, ptr, u16, u32, u64

@hook
def h(out: ptr[u32], x: Lane[u32]) -> None:
    a = {type}({low}) + {type}(x) * {type}({step})
    b = {type}({high}) - {type}(x) * {type}({step})
    bits = u64(as_bits({call}))
    out[2 * x] = u32(bits)
    out[2 * x + 1] = u32(bits >> 32)
"""


def in_turn(names: Iterable[str]) -> list[Any]:
    """Each function with one type, and marked slow with the other."""
    return [pytest.param(name, type, marks=() if place % 2 == turn else pytest.mark.slow, id=f"{name}-{type}")
            for place, name in enumerate(names) for turn, type in enumerate((F32, F64))]


@pytest.fixture
def library() -> None:
    try:
        Search().library()
    except Unsupported as error:
        pytest.skip(str(error))


def computed(folder: Path, type: Scalar, call: str, low: float, high: float) -> list[tuple[float, float, float]]:
    """What each lane was given, and what it found."""
    step = type((high - low) / (LANES - 1))
    made = load_text(folder, HOOK.format(type=type, low=repr(low), high=repr(high), step=repr(step), call=call)).h
    data = struct.pack(f"<{2 * LANES}I", *observe([made], LANES, 2 * LANES))
    found = [type.unpack(data[8 * x :][: type.size_bytes]) for x in range(LANES)]
    return [(type(type(low) + type(x * step)), type(type(high) - type(x * step)), found[x]) for x in range(LANES)]


def ulp(type: Scalar, value: float) -> float:
    """The distance of neighbours at a value."""
    digits = {F16: 11, F32: 24, F64: 53}[type]
    return math.ldexp(1.0, max(math.frexp(value)[1] - digits, {F16: -24, F32: -149, F64: -1074}[type]))


@pytest.mark.parametrize("type", [F16, F32, F64], ids=str)
@pytest.mark.parametrize("name", EXACT)
def test_what_is_rounded_correctly(tmp_path: Path, name: str, type: Scalar) -> None:
    low = 0.0 if name == "sqrt" else -20.25
    for a, _, found in computed(tmp_path, type, f"math.{name}(a)", low, 90.5):
        assert found == type(EXACT[name](a)), a


@pytest.mark.parametrize(("name", "type"), in_turn(CLOSE))
def test_functions_of_the_library(library: None, tmp_path: Path, name: str, type: Scalar) -> None:
    low, high = CLOSE[name]
    for a, _, found in computed(tmp_path, type, f"math.{name}(a)", low, high):
        want = getattr(math, name)(min(a, 1.0) if name in ("asin", "acos") else a)
        assert abs(found - want) <= ULPS * ulp(type, want), (a, found, want)


@pytest.mark.parametrize(("name", "type"), in_turn(TWO))
def test_functions_of_two_numbers(library: None, tmp_path: Path, name: str, type: Scalar) -> None:
    low, high = TWO[name]
    for a, b, found in computed(tmp_path, type, f"math.{name}(a, b)", low, high):
        want = getattr(math, name)(a, b)
        assert abs(found - want) <= 16 * ulp(type, want), (a, b, found, want)


def test_short_floats_of_the_library(library: None, tmp_path: Path) -> None:
    for a, _, found in computed(tmp_path, F16, "math.exp(a)", -4.0, 4.0):
        assert abs(found - math.exp(a)) <= 2 * ulp(F16, math.exp(a))


@hook
def tests(out: ptr[u32], x: Lane[u32]) -> None:
    zero = f32(x) - f32(x)
    infinite, nothing = 1 / zero, zero / zero
    out[x] = u32(math.isnan(nothing)) + 2 * u32(math.isinf(-infinite)) + 4 * u32(math.isfinite(f64(x)))
    out[x] = out[x] + 8 * u32(math.isnan(infinite)) + 16 * u32(math.isinf(nothing)) + 32 * u32(math.isfinite(-infinite))
    out[x] = out[x] + 64 * u32(math.isfinite(nothing)) + 128 * u32(math.copysign(f32(x) + 1, -2) < 0)
    out[x] = out[x] + 256 * u32(math.sqrt(16.0) * math.pi > 12.56)


def test_tests_and_literals() -> None:
    assert set(observe([tests], LANES, LANES)) == {7 + 128 + 256}


@pytest.mark.parametrize("row", EACH_TARGET)
def test_every_target_has_them(library: None, row: Target) -> None:
    @hook
    def several(out: ptr[f32], x: Lane[f32], y: Lane[f64]) -> None:
        out[0] = math.sin(x) + f32(math.pow(y, 1.5)) + math.exp(x)

    key = PayloadKey(several, (None, None, None))
    assert compile_keys({key: None}, instruction_set(row, row.wave_sizes[0]))[key].instrs


REFUSED = [
    ("math.sin(x)", "math.sin needs f16, f32 or f64, not u32; convert it"),
    ("math.sin(bf16(x))", "not bf16"),
    ("math.pow(f32(x))", "math.pow takes 2 numbers, 1 given"),
    ("math.sqrt(-1.0)", "math.sqrt: math domain error"),
    ("np.sqrt(x)", r"np.sqrt cannot be called in device code; did you mean math.sqrt\?"),
    ("np.arctan2(x, x)", r"did you mean math.atan2\?"), ("np.float_power(x, x)", "mark functions"),
    ("math.factorial(x)", "math.factorial cannot be called in device code.* math.sqrt"),
]  # fmt: skip


@pytest.mark.parametrize("call, words", REFUSED)
def test_refusals(tmp_path: Path, call: str, words: str) -> None:
    imports = "import math\nimport numpy as np\nfrom luthier_py.rewrite.tool import *\n"
    text = f"{imports}@hook\ndef h(x: u32) -> f32:\n    return f32({call})\n"
    with pytest.raises(HookError, match=f":6: h: .*{words}|{words}"):
        hook_ir(load_text(tmp_path, text).h, (None,), instruction_set(target("gfx90a"), 64))


@pytest.mark.usefixtures("own_cache")
def test_without_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*given: object) -> Path:
        raise Unsupported("no device library: install it")

    monkeypatch.setattr(Search, "library", nowhere)
    key = PayloadKey(load_text(tmp_path, "import math\nfrom luthier_py import *\n@hook\ndef h(x: f32) -> f32:\n"
                                         "    return math.sin(x)\n").h, (None,))  # fmt: skip
    with pytest.raises(Unsupported, match="no device library"):
        compile_keys({key: None}, instruction_set(target("gfx90a"), 64))


def test_the_library_from_cpp(
    library: None, require_tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LUTHIER_CLANG", require_tool("clang++-22"))
    hooks = Hooks.from_hip("""#include <luthier/hooks.h>
        using namespace luthier;
        LUTHIER_HOOK() void h(u32 *bits, lane<u32> x) {
            f32 *out = (f32 *)bits;
            out[x] = sqrt(f32(x)) + f32(pow(f64(x), 1.5)) + sin(f32(x));
        }
        """)
    found = struct.unpack(f"<{LANES}f", struct.pack(f"<{LANES}I", *observe([hooks.h], LANES, LANES)))
    for x in range(LANES):
        assert found[x] == pytest.approx(math.sqrt(x) + x**1.5 + math.sin(x), rel=1e-6)


def test_all_are_tried() -> None:
    untried = set(NAMES) - EXACT.keys() - CLOSE.keys() - TWO.keys()
    assert untried <= {"isnan", "isinf", "isfinite", "copysign", "fma", "exp2", "cbrt", "erfc"}


def test_fma(tmp_path: Path) -> None:
    for a, b, found in computed(tmp_path, F32, "math.fma(a, b, a)", 0.1, 9.0):
        assert found == f32(float(Fraction(a) * Fraction(b) + Fraction(a)))
