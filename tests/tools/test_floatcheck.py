"""What floats come out special: by source line what NumPy finds in operands and results, on five targets."""

from __future__ import annotations

import subprocess
from collections import Counter, defaultdict
from itertools import product

import numpy as np
import pytest
from compiled_samples import OPTIONS

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Launch, run_instrumented, run_original
from luthier_py.features.run.specs import BufferSpec, Direction
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import SAMPLES
from luthier_py.tools.floatcheck import STEP

BEGIN = """
#pragma clang fp contract(off)
typedef _Float16 half2 __attribute__((ext_vector_type(2)));
typedef float f32x4 __attribute__((ext_vector_type(4)));
extern "C" __attribute__((global)) void k(const TYPE *x, const TYPE *y, const TYPE *z, TYPE *out) {
    unsigned i = __builtin_amdgcn_workitem_id_x();
    TYPE a = x[i], b = y[i], c = z[i];
"""
OPERATIONS = {
    "a + b": ("ab", ((0,), (1,)), False), "b - c": ("bc", ((0,), (1,)), False), "a * b": ("ab", None, False),
    "FMA(a, b, c)": ("abc", ((0, 1), (2,)), False), "a / b": ("ba", None, True),
}
"""Of C: which operands, which of them are multiplied in each term of a sum, and whether there is a pole (at the first
operand's 0)."""
BY_LINE = "gfx942"  # elsewhere one instruction may do two lines' work (packed, dual): there all lines count together
TARGETS = [("gfx90a", 64), ("gfx942", 64), ("gfx1030", 32), ("gfx1030", 64), ("gfx1100", 32), ("gfx1201", 32)]
TYPES = {"float": np.float32, "double": np.float64, "half2": np.float16}
QUICK = {("gfx942", "float"), ("gfx942", "half2"), ("gfx1201", "double")}
CASES = [pytest.param(target, wave_size, name, marks=() if (target, name) in QUICK else pytest.mark.slow)
         for target, wave_size in TARGETS for name in TYPES]
LANES, LOST = 64, {np.float16: 5, np.float32: 11, np.float64: 26}


def compiled(clang, folder, target, wave_size, text):
    (folder / "k.hip").write_text(text)
    size = ["-mwavefrontsize64"] * (wave_size == 64 and target.startswith("gfx1"))
    size += ["-fno-slp-vectorize"] * (target == BY_LINE)
    subprocess.run([clang, *OPTIONS, "-O2", "-gline-tables-only", f"--offload-arch={target}", *size, "k.hip", "-o",
                    "k.co"], cwd=folder, check=True)
    return (folder / "k.co").read_bytes()


def operands(dtype):
    """Special numbers with each other, and such as nearly cancel."""
    info = np.finfo(dtype)
    usual = [0, 1, -1.5, info.max, info.tiny, info.smallest_subnormal, np.inf, np.nan]
    a, b = (np.array(each, dtype) for each in zip(*product(usual, usual), strict=True))
    c = np.roll(np.tile(np.array([1 + 2 * info.eps, -1, 1.5, -0.0, info.tiny * 1.25, 3, -np.inf, 7], dtype), 8), 3)
    with np.errstate(over="ignore"):
        c[::9] = np.where(np.isfinite(b[::9]), b[::9] * dtype(1 + 4 * info.eps), c[::9])
    return a, b, c


def packed(values):
    """Two in each lane: the other one is the next lane's."""
    return np.stack([values, np.roll(values, -1)], 1) if values.dtype == np.float16 else values


def exponent(x):
    return int(np.frexp(x)[1]) - 1 if x else -10**6


def kind(result, given, terms, pole):
    """As the README says it."""
    tiny = np.finfo(result.dtype).tiny
    denormal = any(0 < abs(x) < tiny for x in given)
    if np.isnan(result):
        return "nan_passed" if any(map(np.isnan, given)) else "nan"
    if np.isinf(result):
        made = "division_by_zero" if pole and given[0] == 0 else "infinity"
        return "infinity_passed" if any(map(np.isinf, given)) else made
    if 0 < abs(result) < tiny:
        return "denormal_passed" if denormal else "denormal"
    if terms is None or not result or denormal:
        return None
    drop = max(sum(exponent(given[each]) for each in term) for term in terms) - exponent(result)
    return "cancellation" if drop >= LOST[type(result)] else None


def launch(contents, out):
    given = [BufferSpec("", Direction.IN, each) for each in contents]
    return Launch("k", (1, 1, 1), (LANES, 1, 1), (*given, BufferSpec("", Direction.OUT, out)))


def ran(code, asked):
    """Outputs are those without the tool."""
    device, tool = EmulatorDevice(load(code).target), load_tool("floatcheck")
    plain = run_original(device, code, asked).outputs
    after = run_instrumented(device, instrument(code, tool), tool, asked)
    assert all(plain[number].tobytes() == data.tobytes() for number, data in after.outputs.items())
    return after


@pytest.mark.parametrize(("target", "wave_size", "name"), CASES)
def test_kinds_by_line_are_numpys(target, wave_size, name, require_tool, tmp_path):
    once = {text: each for text, each in OPERATIONS.items() if name != "half2" or text != "a / b"}
    lines = [f"out[{64 * number} + i] = {text};" for number, text in enumerate(once)]
    text = f"{BEGIN}{chr(10).join(lines)}\n}}".replace("TYPE", name).replace("FMA", "__builtin_elementwise_fma")
    contents = [packed(each) for each in operands(TYPES[name])]
    out = np.zeros((LANES * len(once), 2) if name == "half2" else LANES * len(once), TYPES[name])
    after = ran(compiled(require_tool("clang-22"), tmp_path, target, wave_size, text), launch(contents, out))
    found = defaultdict(Counter)
    for row in after.report["instructions"]:
        number = int(row["line"].rpartition(":")[2]) - text[: text.index("out[0")].count("\n") - 1
        found[number] += Counter(row["counts"])
    results = after.outputs[3].reshape(len(once), LANES, -1)
    values = {letter: each.reshape(LANES, -1) for letter, each in zip("abc", contents, strict=True)}
    expected = {}
    for number, (letters, terms, pole) in enumerate(once.values()):
        each = (kind(results[number][place], [values[letter][place] for letter in letters], terms, pole)
                for place in np.ndindex(results[number].shape))
        expected[number] = Counter(one for one in each if one)
    assert {row["why"] for row in after.report["left_out"]} <= {STEP} and all(expected.values())
    assert sum(found.values(), Counter()) == sum(expected.values(), Counter())
    assert target != BY_LINE or found == expected


def test_matrices_and_other_lanes(require_tool, tmp_path):
    """Whose operands cannot be looked at."""
    text = f"""{BEGIN}
    f32x4 sum = {{c, c, c, c}};
    sum = __builtin_amdgcn_mfma_f32_4x4x1f32(a, b, sum, 0, 0, 0);
    for (int n = 0; n < 4; n++)
        out[64 * n + i] = sum[n];
    float next = __builtin_bit_cast(float, __builtin_amdgcn_update_dpp(0, __builtin_bit_cast(int, a), 0xb1, 15, 15, 1));
    out[256 + i] = next + c;
    }}""".replace("TYPE", "float")
    after = ran(compiled(require_tool("clang-22"), tmp_path, "gfx90a", 64, text),
                launch(operands(np.float32), np.zeros(320, np.float32)))
    counts = {"mfma" in row["instruction"]: row["counts"] for row in after.report["instructions"]}
    for matrix, part in ((True, after.outputs[3][:256]), (False, after.outputs[3][256:])):
        tiny = (0 < abs(part)) & (abs(part) < np.finfo(np.float32).tiny)
        expected = {"nan": np.isnan(part), "infinity": np.isinf(part), "denormal": tiny}
        assert counts[matrix] == {f"{name}_of_unknown": each.sum() for name, each in expected.items() if each.any()}


LOSING = f"""{BEGIN}
    typedef _Float16 half4 __attribute__((ext_vector_type(4)));
    typedef short short4 __attribute__((ext_vector_type(4)));
    f32x4 sum = {{0, 0, 0, 0}};
    half4 halves = {{a[0], a[1], b[0], b[1]}};
    sum = __builtin_amdgcn_mfma_f32_16x16x16f16(halves, (half4){{1, 1, 1, 1}}, sum, 0, 0, 0);
    short4 bits = __builtin_bit_cast(short4, halves), ones = {{0x3f80, 0x3f80, 0x3f80, 0x3f80}};
    sum = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(bits, ones, sum, 0, 0, 0);
    out[i][0] = __builtin_amdgcn_fdot2(a, c, sum[0] + sum[1] + sum[2] + sum[3], false);
}}""".replace("TYPE", "half2")


@pytest.mark.parametrize("target", ["gfx90a", "gfx942"])
def test_denormals_that_a_gpu_loses(target, require_tool, tmp_path):
    """Halves with an exponent of zero, as f16, and the same bits as bf16; on MI300 none is lost."""
    contents = [packed(each) for each in operands(np.float16)]
    code = compiled(require_tool("clang-22"), tmp_path, target, 64, LOSING)
    tool, after = load_tool("floatcheck"), ran(code, launch(contents, np.zeros((64, 2), np.float16)))
    found = {row["instruction"].split()[0]: row["counts"]["denormal_lost"] for row in after.report["instructions"]
             if "denormal_lost" in row["counts"]}
    if target == "gfx942":
        assert not found
        return
    a, b, c = (each.view(np.uint16) for each in contents)

    def lost(mantissa, *dwords):
        exponent = 0x7FFF >> mantissa << mantissa
        return sum(((each & exponent == 0) & (each & 0x7FFF != 0)).any(1).sum() for each in dwords)

    assert list(found.values()) == [lost(10, a, b), lost(7, a, b), lost(10, a, c)] and all(found.values())
    assert tool.findings(after.report) >= 3
    first = next(row["first"]["denormal_lost"]["result"] for row in after.report["instructions"])
    assert 0 < abs(first) < np.finfo(np.float16).tiny


SLOW = [pytest.param(one, id=one.name, marks=() if one.name in ("nbody", "mandelbrot") else pytest.mark.slow)
        for one in SAMPLES]


@pytest.mark.parametrize("one", SLOW)
def test_samples_make_nothing_special(one):
    after = ran(one.path.read_bytes(), launch_of(one))
    if after.report is None:  # it has no floats
        return
    assert {row["why"] for row in after.report["left_out"]} <= {STEP} and {*after.report["totals"]} <= {"cancellation"}
    if one.name == "nbody":
        assert after.report["totals"] == load_tool("floatcheck").combined([after.report])["totals"]
