"""Scripts: what the language means, lane by lane, beside Python; what it refuses, and where; tables that are full."""

from __future__ import annotations

import json
import math
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiled_samples import OPTIONS, CompiledSamples
from recorded_scripts import found, low_of, total

from luthier_py.base.errors import Invalid, Misread
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.waves.profile import LaunchProfile
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Launch, run_instrumented, run_original
from luthier_py.features.run.specs import parse_argument
from luthier_py.program.ir import Instr, lift
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool.chosen.filters import parse_filter
from luthier_py.samples import FOLDER, sample
from luthier_py.tools.script import Script

LANES = range(64)
WAVES = 32  # of vector_add
ASKED = {  # what functions of all lanes give there
    "distinct(lane // 8)": 8, "most(lane % 5)": 13, "lanes(lane % 3 == 0)": 22, "first(lane + 7)": 7,
    "distinct(lane) if lane < 3 else lanes(lane > 62)": None,
}
EXPRESSIONS = [
    "lane", "lane // 3", "-lane % 7", "(lane - 20) // 4", "(lane - 20) % 4", "lane << 3 ^ 21", "lane * lane - 5 & 60",
    "~lane >> 2", "where(lane > 10, lane, -lane)", "min(lane, 9) * max(lane, 3, 5)", "int(lane / 4 * 10)",
    "int(-lane / 4)", "popcount(lane)", "abs(lane - 32)", "lane > 5 and not lane % 2 == 0", "lane < 3 or lane > 60",
    "2 < lane <= 9", "7 if lane < 4 else lane", "int(float(lane) * 1.5 - 0.25)", "isnan(lane / 0.0)",
    "isinf((lane - 3) / 0.0)", "lane // 0 + lane % 0", "9223372036854775807 + lane", "item - item // 64 * 64",
    *ASKED,
]  # fmt: skip


def run(text: str, name: str = "vector_add", **options: Any) -> Any:
    code, tool = sample(name).path.read_bytes(), Script(text, **options)
    device = EmulatorDevice(load(code, name).target)
    return run_instrumented(device, instrument(code, tool), tool, launch_of(sample(name)))


def by_python(text: str, lane: int) -> int:
    """What it means; the language's own functions beside Python's."""
    if text in ASKED:
        return ASKED[text] if ASKED[text] is not None else 64 if lane < 3 else 1
    if "/ 0.0" in text:  # where Python raises
        return int(lane == 0 if "isnan" in text else lane != 3)
    if "// 0" in text:
        return lane
    around = {"lane": lane, "item": lane, "popcount": lambda x: x.bit_count(), "where": lambda c, a, b: a if c else b}
    found = int(eval(text, around))
    return found - (found + (1 << 63) >> 64 << 64)


def test_expressions_mean_what_python_means() -> None:
    report = run("\n".join(f"entry: sum({text}, by=lane)" for text in EXPRESSIONS)).report
    for text, table in zip(EXPRESSIONS, report["tables"], strict=True):
        wanted = {lane: by_python(text, lane) for lane in LANES}
        wrap = {lane: n * WAVES - (n * WAVES + (1 << 63) >> 64 << 64) for lane, n in wanted.items()}
        assert found(table) == wrap, text


def test_tables_of_numbers_below_zero_of_floats_and_of_none() -> None:
    report = run("""
        entry:
            x = (lane - 20) / 8
            odd = (lane - 20) / 0.0
            hist(lane * lane - 100)
            hist(x); hist(odd)
            quantize(lane - 5, 7); quantize(x, 0.5)
            min(lane - 9); max(lane - 90); min(x); max(x); max(odd)
            odd = lane % 2
            odd = odd + 0
            where_from = kernel
            avg(lane, by=(odd, where_from))
        entry if lane > 60:
            if active == 64: count(by=(lane, group.x), where=lane != 62)
            else: count()
    """).report
    tables = [found(table) for table in report["tables"]]
    floats = [(lane - 20) / 8 for lane in LANES]

    def powers(numbers: Any) -> dict[Any, int]:
        return {low: WAVES * n for low, n in Counter(map(low_of, numbers)).items()}

    below = Counter(-((-n).bit_length()) for n in (lane * lane - 100 for lane in LANES) if n < 0)
    assert tables[0][()] == powers(n for n in (lane * lane - 100 for lane in LANES) if n >= 0) | {
        1 - (1 << -bits): n * WAVES for bits, n in below.items()}
    assert tables[1][()] == powers(floats)
    assert [(row["low"], row["high"], row["count"]) for row in report["tables"][2]["rows"]] == [
        (None, -(2.0**128), 20 * WAVES), (2.0**128, None, 43 * WAVES), (None, None, WAVES)]
    assert [(row["low"], row["count"]) for row in report["tables"][3]["rows"]] == [
        (None, 5 * WAVES), *((7 * n, (7 if n < 8 else 3) * WAVES) for n in range(9))]
    assert report["tables"][4]["rows"][0] == {"low": None, "high": 0.0, "count": 20 * WAVES}
    assert sum(row["count"] for row in report["tables"][4]["rows"]) == 64 * WAVES
    assert tables[5:9] == [{(): -9}, {(): -27}, {(): -2.5}, {(): 43 / 8}]
    assert report["tables"][9]["rows"] == [{"max": math.inf, "count": 63 * WAVES, "nan": WAVES}]
    assert tables[10] == {(0, "vector_add"): 31.0, (1, "vector_add"): 32.0}
    assert tables[11] == {(lane, group): 4 for lane in (61, 63) for group in range(8)} and tables[12] == {}


def test_keys_without_room_are_lost_and_told() -> None:
    ran = run('on("global"): count(by=item, keys=64)\non("global"): count(by=(lane, item * 4294967296))')
    table, wide = ran.report["tables"]
    assert 64 <= len(table["rows"]) <= 128 and table["lost"] + sum(row["count"] for row in table["rows"]) == 3 * 2048
    assert wide["lost"] == 3 * 2047  # all items but the first are too large for one of two keys
    assert f"{table['lost']} more are lost: there was no room for their keys; keys=128 has more" in ran.text


def test_tables_of_several_launches_become_one() -> None:
    tool = Script('on("*_f32*"): min(f32(dst), by=opcode); avg(active); hist(f32(src1)); top(2, lane)')
    code = sample("vector_add").path.read_bytes()
    device, made = EmulatorDevice(load(code, "vector_add").target), instrument(code, tool)
    reports = [run_instrumented(device, made, tool, launch_of(sample("vector_add"))).report for _ in range(2)]
    once, joined = reports[0]["tables"], tool.combined(reports)["tables"]
    assert [row["min"] for row in joined[0]["rows"]] == [row["min"] for row in once[0]["rows"]]
    for before, after in zip(once, joined, strict=True):
        assert [2 * row["count"] for row in before["rows"]] == [row["count"] for row in after["rows"]] != []
    assert joined[1]["rows"][0]["avg"] == 64


REFUSED = {
    'on("global_load_*"): hist(segmnts(addr, 64), by=line)': (
        27, "segmnts is no function here; did you mean segments?"),
    'on("memory") if activ < 2: count()': (17, "activ is no value here; did you mean active?"),
    'onn("memory"): count()': (1, "onn is no probe here; did you mean on?"),
    'on(global): count()': (4, 'global is a word of filters, and a filter is a text: on("global")'),
    'global: count()': (1, 'a filter is a text: on("global")'),
    'atomic: count()': (1, 'a filter is a text: on("atomic")'),
    'on(load): count()': (4, 'a filter is a text: on("load")'),
    'on("memry"): count()': (4, "memry is unknown; did you mean memory?"),
    'on("memory"): cuont()': (15, "cuont is no action here; did you mean count?"),
    'on("memory"): count(bye=line)': (21, "bye is no argument of count here; did you mean by?"),
    'entry: sum(addr)': (12, "addr is not there at entry; it is at on, before, after"),
    'before("load"): trace(dst)': (17, "dst is there after the instruction only"),
    'on("memory"): sum(opcode)': (19, "opcode is a text"),
    'on("memory") count()': (1, "a probe ends with a colon"),
    'on("memory"): count(': (20, "this is left open"),
    'on("memory"): hist(addr +)': (26, "this is no Python: "),
    'on("memory"): hist(segments(addr, 63))': (35, "segments takes an address and their size in bytes"),
    'on("memory"): count(where=lanes(active > 1))': (33, "lanes is about what lanes differ in"),
    'on("memory"): printf("%d %d", lane)': (22, "these values cannot be printed so: not enough arguments"),
    'entry:\n    count()\n    x = [1]': (9, "this is no expression of scripts"),
    'on("memory"): count()\non("load"): count(by=1 +)': (25, "this is no Python: "),
    'entry:\n    count()\n  count()': (1, "this line is indented as no line before it"),
    'entry: count()\nentry: """abc': (1, "this is left open"),
    'entry:\n    count()\n    a = b = lane': (5, "here should be what to do: count, top,"),
    'on("memory"): count(by=lane, keys=4.0)': (35, "this is how many keys have room, and must be a whole number"),
    'on("memory"): count(by=lane, keys=12)': (35, "give a power of two"),
    'on("memory"): top(2.5, lane)': (19, "this is how many, and must be a whole number above 0 and below 2^63"),
    'on("memory"): top(0, lane)': (19, "this is how many"), 'on("memory"): top(True, lane)': (19, "this is how many"),
    'on("memory"): quantize(lane, 1e999)': (30, "this is the step of its buckets, and must be a number above 0"),
    'on("memory"): quantize(lane, 18446744073709551616)': (30, "this is the step of its buckets"),
    'entry: hist(segments(lane, 64))': (22, "segments are what an instruction accesses; there is none at entry"),
    'on("memory"): sum(i32(lane))': (23, "i32 reads the bits of an operand, as in i32(src0) or i32(dst)"),
    'on("memory"): sum(u64(dword(data, 0)))': (23, "u64 has two dwords, and this is one"),
    'on("memory"): sum(dword(lane, 1))': (25, "dword takes an operand and a number, as in dword(data, 1)"),
    'on("memory"): sum(op[lane])': (19, "op takes a number or a name"),
    'on("memory"): sum(lane[0])': (19, "only operands have numbers"),
    'exit: sum(src0)': (11, "only instructions have operands: on, before, after; not exit"),
    'on("memory"): sum(lane % 1.5)': (26, "1.5 is a float, and must be an integer here"),
    'on("memory"): sum(lane ** 2)': (19, "this operator is not there"),
    'on("memory"): count(where=lane in 3)': (27, "this comparison is not there"),
    'on("memory"): sum(popcount)': (19, "popcount is a function; write popcount(...)"),
    'on("memory"): sum(popcount(lane, 1))': (19, "popcount takes one argument, 2 given"),
    'on("memory"): sum(popcount(x=lane))': (19, "popcount takes one argument, 1 given"),
    'on("memory"): sum(min(lane, *lane))': (19, "min takes 2 arguments or more, 2 given"),
    'on("memory"): sum(True, 1)': (15, "sum takes 1 value, as in sum(x); 2 given"),
    'on("memory"): sum(9223372036854775808)': (19, "this does not fit into an integer"),
    'on("memory"): sum(1e999)': (19, "only finite numbers can be worked with"),
    'entry: __import__("os").system("true")': (8, '__import__("os").system is no action here'),
    "": (1, "it is empty"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_wrong_is_shown_with_a_caret(text: str) -> None:
    column, message = REFUSED[text]
    with pytest.raises(Misread if text else Invalid) as error:
        Script(text) if text else Script("\n")
    first, *shown = error.value.message.split("\n")
    line = text.count("\n") + 1
    assert first.startswith(f"script, line {line}, column {column}: ") and message.replace('"', "") in first.replace(
        '"', "").replace("'", "")
    assert shown[-1] == " " * (column + 3) + "^" and shown[0][4:] == text.split("\n")[line - 1]


@pytest.mark.parametrize(("text", "where"), [
    ("global_load_*", "opcode = global_load_*"), ("s_nop", "opcode = s_nop"), ("vector_memory", "vector_memory"),
    ("vector_memory & load", "vector_memory & load"), ("opcode = v_*", "opcode = v_*"), ("width >= 8", "width >= 8"),
])
def test_an_opcode_alone_is_a_filter(text: str, where: str) -> None:
    [probe] = Script(f'on("{text}"): count()').script.probes
    assert probe.where == where


def test_what_an_instruction_has_not_is_told() -> None:
    ran = run('on("vector_alu"): count(where=f64(src0) > 1)\non("load"): trace(dst)', "saxpy", LUTHIER_RECORDS="")
    reasons = {row["why"] for row in ran.report["left_out"]}
    assert "the operand has 1 dword, and 2 are wanted" in reasons
    assert "count(where=f64(src0) > 1) is not done at v_" in ran.text


def test_records_have_columns_by_name(tmp_path: Path) -> None:
    file = tmp_path / "records.ndjson"
    run('on("store") if lane < 2: trace(lane, group.x, f32(data), opcode)', LUTHIER_RECORDS=str(file))
    rows = list(map(json.loads, file.read_text().splitlines()))
    assert len(rows) == 2 * WAVES and {row["lane"] for row in rows} == {0, 1}
    assert sorted({row["v1"] for row in rows}) == list(range(8)) and {type(row["v2"]) for row in rows} == {float}


# -- wide and narrow operands --------------------------------------------------------------------------

WIDTHS = """
#include "device.h"
typedef __attribute__((ext_vector_type(4))) float f4;
KERNEL void __launch_bounds__(64)
widths(const double *x, double *y, const f4 *z, f4 *w, const _Float16 *h, _Float16 *g) {
  u32 i = global_x();
  y[i] = (1.0 + x[i]) * 0.5;
  w[i] = z[i] * 2.0f;
  g[i] = h[i] + (_Float16)1.0f;
}
"""
WIDE = ["in:f64[64]=arange", "out:f64[64]", "in:f32[256]=arange", "out:f32[256]", "in:f16[64]=arange", "out:f16[64]"]


def of_widths(target: str, folder: Path, clang: str) -> bytes:
    (folder / "widths.hip").write_text(WIDTHS)
    subprocess.run([clang, *OPTIONS, "-O2", f"--offload-arch={target}", "-I", FOLDER, folder / "widths.hip", "-o",
                    folder / "widths.co"], check=True)
    return (folder / "widths.co").read_bytes()


@pytest.mark.parametrize("target", ["gfx90a", "gfx1201"])
def test_operands_of_other_widths(target: str, tmp_path: Path, require_tool: Callable[[str], str]) -> None:
    tool = Script("""
        on("v_add_f64*"): max(max(f64(src0), f64(src1))); min(min(f64(src0), f64(src1))); max(f64(dst))
        on("global_store*"):
            max(f32(dword(data, 3))); sum(i32(dword(data, 2)) < 0)
            max(f64(data))
        on("v_add_f16*"): hist(f16(src0)); max(f16(dst)); sum(u32(dst) & 1)
        on("load & global"): hist(segments(addr, 16), by=bytes)
    """)
    code = of_widths(target, tmp_path, require_tool("clang++-22"))
    device, made = EmulatorDevice(load(code, "widths").target), instrument(code, tool)
    launch = Launch("widths", (1, 1, 1), (64, 1, 1), tuple(map(parse_argument, WIDE)))
    report = run_instrumented(device, made, tool, launch).report
    *numbers, halves, half, odd, segments = map(found, report["tables"])
    assert numbers == [{(): 63.0}, {(): 0.0}, {(): 64.0}, {(): 510.0}, {(): 0}, {(): 32.0}]
    assert halves == {(): {1.0: 64}} and half == {(): 64.0} and odd == {(): sum(
        int(np.float16(n + 1).view(np.uint16)) & 1 for n in LANES)}
    waves = 64 // (32 if target == "gfx1201" else 64)
    assert segments == {8: {32 // waves: waves}, 16: {64 // waves: waves}, 2: {8 // waves: waves}}


def hard_to_add(count: int) -> Any:
    """Doubles of every size, the least among them, of which most cancel: any order of additions rounds otherwise."""
    numbers = np.random.default_rng(7).integers(0, 1 << 64, count, np.uint64).view(np.float64)
    numbers[~np.isfinite(numbers) | (np.abs(numbers) > 1e300)] = 5e-324
    numbers[count // 2 :] = -numbers[: count // 2]
    numbers[::7] = 0.1
    return numbers


@pytest.mark.parametrize("target", ["gfx90a", "gfx1201"])
def test_sums_of_floats_are_exact(target: str, tmp_path: Path, require_tool: Callable[[str], str]) -> None:
    code = of_widths(target, tmp_path, require_tool("clang++-22"))
    device = EmulatorDevice(load(code, "widths").target)
    tool = Script("""
        on("load & global"):
            sum(f64(dst)); avg(f64(dst)); min(f64(dst)); max(f64(dst)); sum(f32(dword(dst, 1)), where=bytes == 16)
            sum(f64(dst), by=item % 3); sum(f16(dst), where=bytes == 2); min(f16(dst), where=bytes == 2)
    """)
    made, singles, halves = instrument(code, tool), hard_to_add(128).view(np.float32), np.arange(64).astype(np.float16)
    singles[~np.isfinite(singles)] = 1e-45

    def launched(numbers: Any) -> list[Any]:
        specs = map(parse_argument, WIDE)
        given = {0: numbers, 2: singles, 4: halves / np.float16(3)}
        launch = Launch("widths", (1, 1, 1), (64, 1, 1), tuple(
            replace(spec, data=given[number]) if number in given else spec for number, spec in enumerate(specs)))
        return [table["rows"] for table in run_instrumented(device, made, tool, launch).report["tables"]]

    numbers = hard_to_add(64)
    wanted = math.fsum(numbers)
    (exact,), (mean,), (least,), (most,), (single,), thirds, (half,), (smallest,) = launched(numbers)
    assert exact == {"sum": wanted, "count": 64} and wanted != sum(numbers)
    assert mean == {"avg": wanted / 64, **exact} and (least["min"], most["max"]) == (numbers.min(), numbers.max())
    assert single["sum"] == math.fsum(singles[1::4].astype(np.float64))
    assert {row["item % 3"]: row["sum"] for row in thirds} == {n: math.fsum(numbers[n::3]) for n in range(3)}
    assert half["sum"] == math.fsum(halves / np.float16(3)) and smallest["min"] == 0.0
    for odd in ([math.inf], [-math.inf, math.nan], [math.inf, -math.inf], [1.7e308] * 2):
        (row,) = launched(np.array([*odd, *numbers[len(odd):]]))[0]
        with np.errstate(over="ignore", invalid="ignore"):
            is_odd = np.isnan(odd)
            np.testing.assert_equal(row["sum"], sum(np.array(odd)[~is_odd]))
        assert (row["count"], row.get("nan", 0)) == (64 - is_odd.sum(), is_odd.sum())


# -- other targets -------------------------------------------------------------------------------------

LINES: dict[str, Callable[[LaunchProfile, Callable[[str], list[Instr]]], dict[Any, int]]] = {
    "block: sum(instructions)": lambda p, chosen: {(): p.total},
    'on("*"): sum(active, by=opcode)': lambda p, chosen: dict(p.lane_opcodes()),
    'on("*") if active > 0: count(by=opcode)': lambda p, chosen: dict(p.active_opcodes()),
    'on("vector_alu"): count(by=opcode, where=lane >= 0)': lambda p, chosen: total(
        (name, p.lanes.get(instr.pc, 0)) for instr in chosen("vector_alu") for name in instr.op.mnemonics),
    'on("lds | global"): count(by=pc, where=addr >= 0)': lambda p, chosen: total(
        (f"0x{instr.pc:x}", p.lanes.get(instr.pc, 0) * len(instr.memory.offsets))
        for instr in chosen("lds & memory | global")),
    "exit: sum(group_size.x * group_size.y)": lambda p, chosen: {},
}
"""What the emulator counts itself, whatever the target."""


def check(name: str, code: bytes) -> None:
    obj = load(code, name)
    device, tool = EmulatorDevice(obj.target), Script("\n".join(LINES))
    original = run_original(device, code, launch_of(sample(name)))
    profile = device.profile
    ran = run_instrumented(device, instrument(code, tool), tool, launch_of(sample(name)))
    for number, data in ran.outputs.items():
        assert data.tobytes() == original.outputs[number].tobytes()
    program = lift(obj, [name])

    def chosen(where: str) -> list[Instr]:
        passes, told = parse_filter(where).of(program), {row["pc"] for row in ran.report["left_out"]}
        return [i for f in program.functions for i in f.instrs if passes(i) and i.pc not in told]

    for (line, oracle), table in zip(LINES.items(), ran.report["tables"], strict=True):
        wanted = oracle(profile, chosen)
        if line.startswith("exit"):
            wanted = {(): profile.waves * math.prod(sample(name).block)}
        assert {key: n for key, n in found(table).items() if n} == {
            key: n for key, n in wanted.items() if n} != {}, (name, line)


def test_on_waves_of_32_lanes(tmp_path: Path, require_tool: Callable[[str], str]) -> None:
    check("reduce", CompiledSamples(require_tool("clang++-22"), tmp_path).code("reduce", "gfx1201", 32))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx90a 64", "gfx942 64", "gfx1030 32", "gfx1030 64", "gfx1100 32", "gfx1100 64",
                                    "gfx1201 32", "gfx1201 64"])
@pytest.mark.parametrize("name", ["histogram", "reduce_strided", "matmul", "bitonic_sort", "device_call"])
def test_on_every_target(name: str, target: str, tmp_path: Path, require_tool: Callable[[str], str]) -> None:
    processor, wave_size = target.split()
    code = CompiledSamples(require_tool("clang++-22"), tmp_path).code(name, processor, int(wave_size))
    check(name, code)


LONG = """
extern "C" __attribute__((global)) void k(unsigned *out, unsigned n) {
    unsigned x = out[0];
    for (unsigned i = 0; i < n; i++) x = x * 3 + i;
    out[0] = x; }
"""


def test_time_that_went_by_is_not_below_zero_where_the_clock_begins_again(
    tmp_path: Path, require_tool: Callable[[str], str]
) -> None:
    """RDNA 3's has 20 bits, of which each wave takes most."""
    (tmp_path / "k.hip").write_text(LONG)
    subprocess.run([require_tool("clang-22"), *OPTIONS, "-O1", "--offload-arch=gfx1100", "k.hip", "-o", "k.co"],
                   cwd=tmp_path, check=True)
    code, tool = (tmp_path / "k.co").read_bytes(), Script("exit: min(elapsed); max(elapsed); min(clock - elapsed)")
    launch = Launch("k", (16, 1, 1), (32, 1, 1), tuple(map(parse_argument, ("inout:u32[1]=zeros", "u32=100000"))))
    device = EmulatorDevice(load(code).target)
    ran = run_instrumented(device, instrument(code, tool), tool, launch)
    (least,), (most,), (begun,) = (found(table).values() for table in ran.report["tables"])
    assert 100000 < least <= most < 1 << 20 and begun < 0  # it began again while a wave ran
