"""What faster code is worth: against variants of kernels that somebody really made faster, and delays against costs."""

from __future__ import annotations

import gc
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from compiled_samples import OPTIONS, CompiledSamples
from kept_launches import kept

from luthier_py.base.errors import Invalid, LuthierError
from luthier_py.binary.loader import load
from luthier_py.emulator.devices.record_file import read_record, write_record
from luthier_py.features.causal.campaign import CausalCampaign, parse_speedups, run_causal
from luthier_py.features.causal.report import causal_summary, causal_text, slope
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Launch
from luthier_py.features.run.specs import parse_argument
from luthier_py.features.settings.run_settings import run_settings
from luthier_py.isa.timing.costs import cost_of
from luthier_py.program.ir import lift
from luthier_py.report.plain import Json
from luthier_py.samples import FOLDER, sample

PAGE = Path(__file__).resolve().parents[2] / "docs" / "causal.md"
DIVISION = """
KERNEL void __launch_bounds__(256) division(u32 turns, const float *in, float *out) {
  u32 i = global_x();
  float x = in[i], sum = 0;
  ROLLED for (u32 turn = 1; turn <= turns; ++turn) {
    float ratio = DIVIDE(x, turn);
    sum += ratio;
    sum = sum * 0.5f + x;
  }
  out[i] = sum;
}
"""
STRIDED = """
KERNEL void __launch_bounds__(256) strided(u32 stride, const float *in, float *out) {
  const float *own = in + global_x() * stride;
  float sum = 0;
  _Pragma("unroll") for (u32 turn = 0; turn < 16; ++turn)
    sum += own[turn * 64];
  out[global_x()] = sum;
}
"""
CHAIN = """
KERNEL void __launch_bounds__(256) chain(u32 turns, u32 steps, const u32 *next, float *out) {
  __shared__ u32 found;
  u32 t = thread_x();
  float x = t;
  if (__builtin_amdgcn_readfirstlane(t) < 64) {
    u32 at = group_x();
    ROLLED for (u32 step = 0; step < steps; ++step)
      at = __builtin_amdgcn_readfirstlane(next[at + (t >> 6)]);
    found = at;
  } else {
    ROLLED for (u32 turn = 0; turn < turns; ++turn)
      x = ROOT(x * x + 1.5f) * 0.25f;
  }
  sync_threads();
  out[global_x()] = x + found;
}
"""


def compiled(clang: str, folder: Path, source: str, **macros: str) -> Path:
    path = folder / f"{len([*folder.iterdir()])}.hip"
    path.write_text('#include "device.h"' + source)
    subprocess.run([clang, *OPTIONS, "-O2", "-g", f"-I{FOLDER}", "--offload-arch=gfx90a",
                    *(f"-D{name}={text}" for name, text in macros.items()), path, "-o", path.with_suffix(".co")],
                   check=True, capture_output=True)
    return path.with_suffix(".co")


def launched(code: Path, kernel: str, grid: int, arguments: Sequence[str]) -> Path:
    launch = Launch(kernel, (grid, 1, 1), (256, 1, 1), tuple(map(parse_argument, arguments)))
    return kept(code, launch, code.with_suffix(".lrec"))


def campaign(path: Path, *speedups: int, **more: object) -> Json:
    gc.collect()
    (facts,) = run_causal([path], CausalCampaign(speedups, **more), path.parent / "out", run_settings("emulator"),
                          lambda: None)
    return facts


def line(source: str, text: str) -> str:
    """A filter: the line that has a text."""
    (number,) = (number for number, line in enumerate(source.splitlines(), start=1) if text in line)
    return f"lines = *.hip:{number}"


def row(facts: Json, name: str) -> Json:
    (found,) = (row for row in facts["candidates"] if row["name"] == name)
    return found


def held(path: Path, facts: Json, test: str) -> int:
    """Cycles for which the instructions that a filter chooses hold their SIMD, once each."""
    program = lift(load(read_record(path).code))
    costs = {instr.pc: cost_of(program.obj.target, instr.inst, 64) for f in program.functions for instr in f.instrs}
    chosen = row(facts, test)["pcs"]
    return sum(costs[pc].held for pc in chosen if costs[pc].pipe is not None)


def saved(slow: Json, fast: Json) -> float:
    return 1 - fast["cycles"] / slow["cycles"]


def check_page(about: str, predicted: float, really: float) -> None:
    """docs/causal.md says so."""
    (cells,) = (line.split(" | ") for line in PAGE.read_text("utf-8").splitlines() if line.startswith(f"| {about}"))
    assert cells[1:] == [f"{100 * predicted:.0f} %", f"{100 * really:.0f} % |"]


@pytest.fixture
def clang(require_tool: Callable[[str], str]) -> str:
    return require_tool("clang-22")


def test_a_division_that_becomes_a_multiplication(clang: str, tmp_path: Path) -> None:
    """As much as the curve says where the line costs what the other one does. Where the loop goes round, for which most
    cycles are issued behind the division, nothing can be saved: other waves compute meanwhile."""
    arguments = "u32=32", "in:f32[16384]=random:1", "out:f32[16384]"
    slow, quick = (launched(compiled(clang, tmp_path, DIVISION, **{"DIVIDE(x,y)": text}), "division", 64, arguments)
                   for text in ("(x/y)", "(x*__builtin_amdgcn_rcpf(y))"))
    division, loop = line(DIVISION, "DIVIDE(x, turn)"), line(DIVISION, "turn <= turns")
    known, fast = (campaign(path, 50, tests=(division,)) for path in (slow, quick))
    faster = round(100 * (1 - held(quick, fast, division) / held(slow, known, division)))
    facts = campaign(slow, faster, tests=(division, loop))
    assert 60 < faster < 75 and saved(facts, fast) > 0.5
    predicted = row(facts, division)["curve"][0]["gain"]
    assert predicted == pytest.approx(saved(facts, fast), abs=0.01)
    check_page(f"a division becomes a multiplication by a reciprocal: the line costs {faster} % less", predicted,
               saved(facts, fast))
    assert row(facts, loop)["share"] > 0.3 and row(facts, loop)["curve"][0]["gain"] < 0.01


def test_loads_that_become_coalesced(clang: str, tmp_path: Path) -> None:
    """Words that lie beside each other, and not 128 bytes apart: 4 cycles of memory for each load, and not 64."""
    code = compiled(clang, tmp_path, STRIDED)
    apart, beside = (campaign(launched(code, "strided", 128, (f"u32={stride}", "in:f32[1049600]=ones",
                                                              "out:f32[32768]")), 94, tests=("global & load",))
                     for stride in (32, 1))
    predicted = row(apart, "global & load")["curve"][0]["gain"]
    assert predicted == pytest.approx(saved(apart, beside), abs=0.01) and saved(apart, beside) > 0.9
    check_page("words that lanes load lie beside each other", predicted, saved(apart, beside))


def test_a_hot_line_that_nobody_waits_for(clang: str, tmp_path: Path) -> None:
    """Three of four waves compute, but all wait for the one that follows a chain of addresses."""
    arguments = "u32=40", "u32=20", "in:u32[64]=arange", "out:f32[4096]"
    codes = [compiled(clang, tmp_path, CHAIN, **{"ROOT(x)": text}) for text in ("__builtin_amdgcn_sqrtf(x)", "(x)")]
    slow, quick = (launched(code, "chain", 16, arguments) for code in codes)
    hot, waited = line(CHAIN, "ROOT(x * x"), line(CHAIN, "next[at")
    facts, fast = (campaign(path, 50, tests=(hot, waited)) for path in (slow, quick))
    for found in (facts, campaign(slow, 50, tests=(hot, waited), method="delays")):
        assert row(found, hot)["share"] > 5 * row(found, waited)["share"]
        assert row(found, hot)["curve"][0]["gain"] == pytest.approx(0, abs=0.002)
        assert row(found, waited)["curve"][0]["gain"] > 0.4
    assert saved(facts, fast) == pytest.approx(0, abs=0.002), "really faster, it saves nothing either"
    check_page("the hottest line", row(facts, hot)["curve"][0]["gain"], saved(facts, fast))


@pytest.mark.parametrize(("name", "test", "speedup"), [
    ("mandelbrot", "vector_alu", 75), pytest.param("bitonic_sort", "lds", 50, marks=pytest.mark.slow),
    ("reduce", "barrier | lds", 75), pytest.param("nbody", "transcendental", 50, marks=pytest.mark.slow)])
def test_delays_take_what_costs_say(name: str, test: str, speedup: int, tmp_path: Path) -> None:
    """In kernels whose time is no memory's."""
    found = sample(name)
    path = kept(found.path, launch_of(found), tmp_path / "kept.lrec")
    model, delayed = (campaign(path, speedup, tests=(test,), method=method) for method in ("model", "delays"))
    cycles, others = (row(facts, test)["curve"][0]["cycles"] for facts in (model, delayed))
    assert others == pytest.approx(cycles, rel=0.007) and cycles < 0.99 * model["cycles"]
    assert row(delayed, "nothing (control)")["slope"] == pytest.approx(0, abs=0.015)


@pytest.mark.parametrize(("target", "size"), [
    pytest.param("gfx942", 64, marks=pytest.mark.slow), pytest.param("gfx1030", 32, marks=pytest.mark.slow),
    ("gfx1100", 32), pytest.param("gfx1201", 32, marks=pytest.mark.slow)])
def test_delays_on_other_targets(target: str, size: int, clang: str, tmp_path: Path) -> None:
    path = CompiledSamples(clang, tmp_path).path("mandelbrot", target, size)
    path = kept(path, launch_of(sample("mandelbrot")), tmp_path / "kept.lrec")
    model, delayed = (campaign(path, 50, tests=("float",), method=method) for method in ("model", "delays"))
    cycles, others = (row(facts, "float")["curve"][0]["cycles"] for facts in (model, delayed))
    assert others == pytest.approx(cycles, rel=0.02) and cycles < 0.98 * model["cycles"]


def test_a_kernel_of_a_library(tmp_path: Path) -> None:
    """Of bitsandbytes, with blocks that wait for loads on many ways; its memory is held to the record's."""
    path = tmp_path / "gemm.lrec"
    path.write_bytes((FOLDER / "gemm_4bit.lrec").read_bytes())
    model, delayed = (campaign(path, 50, kind="block", most=2, method=method) for method in ("model", "delays"))
    control = row(delayed, "nothing (control)")
    assert abs(control["slope"]) < 0.05 and len(delayed["candidates"]) == 3
    for each in model["candidates"]:
        assert row(delayed, each["name"])["slope"] - control["slope"] == pytest.approx(each["slope"], abs=0.02)


def test_the_same_each_time_and_by_each_kind(tmp_path: Path) -> None:
    """What contains all that runs is worth all that it is faster by."""
    found = sample("transpose")
    path = kept(found.path, launch_of(found), tmp_path / "kept.lrec")
    facts = campaign(path, 25, 100, kind="function")
    (whole,) = facts["candidates"]
    assert whole["name"] == "transpose" and whole["share"] == 1 and whole["slope"] == 1
    assert [point["gain"] for point in whole["curve"]] == [0.25, 1]
    assert campaign(path, 25, 100, kind="function") == facts
    blocks, loops = (campaign(path, 50, kind=kind, most=2) for kind in ("block", "loop"))
    assert len(blocks["candidates"]) == len(loops["candidates"]) == 2 and blocks["left_out"] and not loops["left_out"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "kept.csv", "kept.html", "kept.json", "kept.txt"]


def test_files_of_one_name_in_two_folders(tmp_path: Path) -> None:
    found, paths = sample("transpose"), [tmp_path / name / "kept.lrec" for name in ("before", "after")]
    for path in paths:
        path.parent.mkdir()
        kept(found.path, launch_of(found), path)
    both = run_causal(paths, CausalCampaign((50,), most=1), tmp_path / "out", run_settings("emulator"), lambda: None)
    assert len({name for facts in both for name in facts["files"]}) == len([*(tmp_path / "out").iterdir()]) == 8
    assert [facts["file"] for facts in both] == [*map(str, paths)]


def test_another_memory_is_an_error(tmp_path: Path) -> None:
    found = sample("transpose")
    path = kept(found.path, launch_of(found), tmp_path / "kept.lrec")
    record = read_record(path)
    pages = [replace(page, after=bytes(len(page.after))) if page.before != page.after else page
             for page in record.pages]
    write_record(path, replace(record, pages=tuple(pages)))
    with pytest.raises(LuthierError, match="memory is not what was recorded"):
        campaign(path, 50)


def test_slopes_by_hand() -> None:
    """Of (0.5, 0.2) and (1, 0.3): (0.1 + 0.3) / 1.25; and the steepest stands first."""
    assert slope([(0.5, 0.2), (1.0, 0.3)]) == pytest.approx(0.32)
    rows = [{"name": name, "line": line, "share": 0.1, "curve": [{"speedup": 50, "cycles": cycles}]}
            for name, line, cycles in (("/a/b/k.hip:7", "/a/b/k.hip:7", 99), ("block 0x10", "/a/b/c/d.h:2", 60))]
    facts = causal_summary({"file": "f", "kernel": "k", "target": "gfx90a", "method": "model", "cycles": 100.0,
                            "candidates": rows, "left_out": ["block 0x20"]})
    assert causal_text(facts).splitlines()[1:] == [
        "slope    50%  issued  if this were faster",
        "0.800  40.0%   10.0%  block 0x10 [c/d.h:2]",
        "0.020   1.0%   10.0%  k.hip:7",
        "not tried: block 0x20"]
    apart = {**facts, "candidates": [{**row, "line": line} for row, line in zip(
        facts["candidates"], ("/a/d.h:2", "/b/k.hip:7"), strict=True)]}
    assert "block 0x10 [/a/d.h:2]" in causal_text(apart)
    bare = {**facts, "candidates": [{**facts["candidates"][0], "name": "no line", "line": None}], "left_out": []}
    assert causal_text(bare).endswith("compile with -g, or give --by block")


def test_a_kernel_without_what_is_tried_is_named(tmp_path: Path) -> None:
    found = sample("saxpy")
    path = kept(found.path, launch_of(found), tmp_path / "kept.lrec")
    with pytest.raises(Invalid, match="kernel saxpy executes no loop; give another --by"):
        campaign(path, 50, kind="loop")


def test_what_makes_no_sense_is_named(tmp_path: Path) -> None:
    for text in ("", "0", "101", "half"):
        with pytest.raises(Invalid, match="percents from 1 to 100"):
            parse_speedups(text)
    for given, why in (({"kind": "file"}, "--by file: give line, block"), ({"method": "x"}, "--method x: give model")):
        with pytest.raises(Invalid, match=why):
            CausalCampaign((50,), **given)
    for device, given, why in (("hip", {"method": "model"}, "only the emulator"),
                               ("emulator", {"method": "delays", "speedups": (100,)}, "at most 95")):
        with pytest.raises(Invalid, match=why):
            run_causal([tmp_path / "no.lrec"], CausalCampaign(**{"speedups": (50,), **given}), tmp_path,
                       run_settings(device), lambda: None)
