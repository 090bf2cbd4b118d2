"""Work of kernels: by hand calculation on every target, by the emulator's counts and lanes, and of chosen regions."""

from __future__ import annotations

import csv
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from compiled_samples import OPTIONS, CompiledSamples

from luthier_py.base.errors import Invalid
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice, LaunchOptions
from luthier_py.emulator.options.clock_kind import ClockKind
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Launch, run_instrumented, run_original
from luthier_py.features.run.specs import parse_argument
from luthier_py.program.ir import lift
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.rewrite.tool.chosen.filters import parse_filter
from luthier_py.samples import FOLDER, SAMPLES, Sample, sample

N = 1000  # work-items, of whose last wave a part is not active
BY_HAND: dict[str, tuple[str, str, str, dict[str, int]]] = {
    "vector_add": ("4,1,1", "256,1,1", "in:f32[1024]=random:1 in:f32[1024]=random:2 out:f32[1024]",
                   {"f32": 1024, "loaded": 8 * 1024, "stored": 4 * 1024}),
    "saxpy": ("4,1,1", "256,1,1", f"u32={N} f32=0.7 in:f32[{N}]=random:1 inout:f32[{N}]=random:2",
              {"f32": 2 * N, "loaded": 8 * N, "stored": 4 * N}),
    # each of a's and b's elements is loaded by 32 / 16 work-groups
    "matmul": ("2,2,1", "16,16,1", "u32=32 in:f32[32,32]=random:1 in:f32[32,32]=random:2 out:f32[32,32]",
               {"f32": 2 * 32**3, "loaded": 4 * 32 * 32 * 2 * (32 // 16), "stored": 4 * 32 * 32}),
    # 3 differences, 3 products and 3 sums, a root and a reciprocal, 3 products for the pull, 3 fused ones
    "nbody": ("1,1,1", "64,1,1", "u32=50 f32=0.01 in:f32[50,4]=random:1 out:f32[50,4]",
              {"f32": 20 * 50 * 50, "loaded": 16 * 50, "stored": 16 * 50}),
    "transpose": ("2,2,1", "32,8,1", "u32=64 in:u32[64,64]=random:1 out:u32[64,64]",
                  {"loaded": 4 * 64 * 64, "stored": 4 * 64 * 64}),
}


def launch_by_hand(name: str) -> Launch:
    grid, block, arguments, _ = BY_HAND[name]
    sizes = [tuple(map(int, each.split(","))) for each in (grid, block)]
    return Launch(name, sizes[0], sizes[1], tuple(map(parse_argument, arguments.split())))


def run(code: bytes, launch: Launch, device: EmulatorDevice | None = None, **options: Any) -> tuple[dict, Any, Any]:
    """Report, tool and the emulator's profile of the original; the outputs are the same with the tool and without."""
    device = device or EmulatorDevice(load(code).target)
    outputs, profile = run_original(device, code, launch).outputs, device.profile
    tool = load_tool("roofline", options)
    ran = run_instrumented(device, instrument(code, tool), tool, launch)
    assert {number: data.tobytes() for number, data in ran.outputs.items()} == {
        number: data.tobytes() for number, data in outputs.items()}
    return ran.report, tool, profile


def numbers(row: dict) -> dict[str, int]:
    found = {**row["flops_by_type"], "loaded": row["bytes_loaded"], "stored": row["bytes_stored"],
             "atomic": row["bytes_atomic"]}
    return {name: count for name, count in found.items() if count}


@pytest.mark.parametrize("name", BY_HAND)
def test_by_hand(name: str) -> None:
    report, _, _ = run(sample(name).path.read_bytes(), launch_by_hand(name))
    total, wanted = report["total"], BY_HAND[name][-1]
    assert numbers(total) == wanted and report["left_out"] == []
    flops = wanted.get("f32", 0)
    assert total["intensity"] == flops / (wanted["loaded"] + wanted["stored"])
    for level in ("functions", "lines"):
        shares = sum((Counter(numbers(row)) for row in report[level]), Counter())
        assert shares == wanted


@pytest.fixture(scope="module")
def compiled(require_tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> CompiledSamples:
    return CompiledSamples(require_tool("clang-22"), tmp_path_factory.mktemp("roofline"))


EACH = [("gfx942", 64, "nbody"), ("gfx1030", 64, "saxpy"), ("gfx1100", 32, "nbody"), ("gfx1201", 32, "matmul"),
        ("gfx1201", 64, "transpose")]


def check_by_hand(compiled: CompiledSamples, target: str, wave_size: int, name: str, level: int = 2) -> None:
    report, _, _ = run(compiled.code(name, target, wave_size, level), launch_by_hand(name))
    assert numbers(report["total"]) == BY_HAND[name][-1]


@pytest.mark.parametrize(("target", "wave_size", "name"), EACH)
def test_by_hand_on_targets(compiled: CompiledSamples, target: str, wave_size: int, name: str) -> None:
    check_by_hand(compiled, target, wave_size, name)


@pytest.mark.slow
@pytest.mark.parametrize("level", [1, 2, 3])
@pytest.mark.parametrize("name", BY_HAND)
@pytest.mark.parametrize(("target", "wave_size"), [
    ("gfx90a", 64), ("gfx942", 64), ("gfx1030", 32), ("gfx1030", 64), ("gfx1100", 32), ("gfx1100", 64),
    ("gfx1201", 32), ("gfx1201", 64)])
def test_by_hand_everywhere(compiled: CompiledSamples, target: str, wave_size: int, name: str, level: int) -> None:
    check_by_hand(compiled, target, wave_size, name, level)


def moved(mnemonic: str) -> tuple[str, int] | None:
    """By the words of the ISA's names: what kind of memory, and bytes of a lane."""
    if found := re.match(r"global_(load|store)_(?:(u|s)?(byte|short)|dword(?:x(\d))?)", mnemonic):
        size = {"byte": 1, "short": 2}.get(found[3]) or 4 * int(found[4] or 1)
        return {"load": "bytes_loaded", "store": "bytes_stored"}[found[1]], size
    if re.match(r"global_atomic_\w+", mnemonic):
        return "bytes_atomic", 4
    if found := re.match(r"ds_(?:read|write|add|or)(2|2st64)?_(?:rtn_)?[bu](\d+)", mnemonic):
        return "lds_bytes", int(found[2]) // 8 * (2 if found[1] else 1)
    if found := re.match(r"buffer_(?:load|store)_dword(?:x(\d))?", mnemonic):  # of samples only for private memory
        return "unsure_bytes", 4 * int(found[1] or 1)
    return None


def check_by_the_emulator(one: Sample) -> None:
    code = one.path.read_bytes()
    report, _, profile = run(code, launch_of(one))
    program = lift(load(code))
    wanted: Counter[str] = Counter(instructions=profile.total)
    for instr in (instr for function in program.functions for instr in function.instrs):
        if what := moved(instr.op.mnemonic):
            wanted[what[0]] += profile.lanes.get(instr.pc, 0) * what[1]
    assert {name: report["total"][name] for name in wanted} == wanted
    assert sum(row["instructions"] for row in report["lines"]) == profile.total
    unsure = [row["executions"] for row in report["left_out"] if row["instruction"].startswith("buffer_")]
    assert bool(unsure) == bool(wanted["unsure_bytes"])


@pytest.mark.parametrize("name", ["bitonic_sort", "histogram", "device_call", "lds_widths"])
def test_by_the_emulator(name: str) -> None:
    check_by_the_emulator(sample(name))


@pytest.mark.slow
@pytest.mark.parametrize("one", SAMPLES, ids=lambda one: one.name)
def test_every_sample_by_the_emulator(one: Sample) -> None:
    check_by_the_emulator(one)


MATRICES = """
typedef _Float16 half4 __attribute__((ext_vector_type(4)));
typedef _Float16 half16 __attribute__((ext_vector_type(16)));
typedef float float4 __attribute__((ext_vector_type(4)));
typedef float float8 __attribute__((ext_vector_type(8)));
extern "C" __attribute__((global)) void k(float *out, int times) {
#if __gfx1100__
  half16 a = (_Float16)__builtin_amdgcn_workitem_id_x();
  float8 sum = 0;
  for (int i = 0; i < times; ++i)
    sum = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, a, sum);
#else
  half4 a = (_Float16)__builtin_amdgcn_workitem_id_x();
  float4 sum = 0;
  for (int i = 0; i < times; ++i)
    sum = __builtin_amdgcn_mfma_f32_16x16x16f16(a, a, sum, 0, 0, 0);
#endif
  out[__builtin_amdgcn_workgroup_id_x() * 128 + __builtin_amdgcn_workitem_id_x()] = sum[0];
}
"""


@pytest.mark.parametrize(("target", "wave_size"), [("gfx90a", 64), ("gfx942", 64), ("gfx1100", 32)])
def test_matrices(target: str, wave_size: int, require_tool: Callable[[str], str], tmp_path: Path) -> None:
    """Each wave multiplies 16 x 16 by 16 x 16 matrices, five times."""
    source, out = tmp_path / "k.hip", tmp_path / "k.co"
    source.write_text(MATRICES)
    subprocess.run([require_tool("clang-22"), *OPTIONS, "-O2", f"--offload-arch={target}", source, "-o", out],
                   check=True)
    launch = Launch("k", (2, 1, 1), (128, 1, 1), tuple(map(parse_argument, ["out:f32[256]", "i32=5"])))
    total = run(out.read_bytes(), launch)[0]["total"]
    waves = 2 * 128 // wave_size
    assert total["flops_by_type"] == {"matrix f16": waves * 5 * 2 * 16**3}
    assert total["bytes_stored"] == 4 * 256


def test_regions(compiled: CompiledSamples) -> None:
    """A region's row is what the tool reports of it alone, and the instructions are those that the emulator ran."""
    code, launch = compiled.code("matmul", "gfx90a", 64, 3, "-g"), launch_by_hand("matmul")
    texts = ["lines = matmul.hip:13-14", "inlined = sync_threads", "loop = matmul.hip:9 & !global"]
    report, _, profile = run(code, launch, regions=" ; ".join(texts))
    program = lift(load(code))
    assert [row["name"] for row in report["regions"]] == texts
    for row in report["regions"]:
        chosen = parse_filter(row["name"]).of(program)
        ran = sum(profile.counts.get(i.pc, 0) for f in program.functions for i in f.instrs if chosen(i))
        alone = run(code, launch, INSTRUMENT=row["name"])[0]
        assert {**alone["total"], "name": row["name"]} == row and row["instructions"] == ran > 0
    inner, barriers, loop = report["regions"]
    assert (inner["flops"], inner["lds_bytes"]) == (2 * 32**3, 2 * 4 * 32**3) and barriers["flops"] == 0
    [around] = report["loops"]
    assert re.search(r"matmul\.hip:9-1[5-6]$", around["source"]) and around["bytes_loaded"] == 16384
    assert around["instructions"] > loop["instructions"] > inner["instructions"]
    assert {row["name"] for row in report["functions"]} == {"matmul", "sync_threads()", "thread_x()"}
    with pytest.raises(Invalid, match="character 1, at 'linse = k.hip:1': linse is unknown; did you mean line"):
        load_tool("roofline", {"regions": "loop; linse = k.hip:1"})


def test_cycles_and_sums_of_launches() -> None:
    code, launch = sample("saxpy").path.read_bytes(), launch_by_hand("saxpy")
    device = EmulatorDevice(load(code).target, options=LaunchOptions(clock=ClockKind.MODEL))
    report, tool, _ = run(code, launch, device, cycles=True)
    assert device.profile is not None and device.profile.cycles is not None
    assert 0 < report["cycles"] <= device.profile.cycles.total
    twice = tool.combined([report, report])
    assert numbers(twice["total"]) == {name: 2 * count for name, count in BY_HAND["saxpy"][-1].items()}
    assert (twice["launches"], twice["cycles"]) == (2, 2 * report["cycles"])
    assert twice["total"]["intensity"] == report["total"]["intensity"]
    assert len(twice["lines"]) == len(report["lines"]) and twice["loops"] == report["loops"] == []


def test_no_cycles_by_a_clock_that_says_nothing_of_waves_beside_each_other(compiled: CompiledSamples) -> None:
    code, launch, tool = compiled.code("saxpy", "gfx1100", 32), launch_by_hand("saxpy"), load_tool("roofline", {
        "cycles": True})
    ran = run_instrumented(EmulatorDevice(load(code).target), instrument(code, tool), tool, launch)
    assert ran.report["cycles"] is None and tool.combined([ran.report] * 2)["cycles"] is None
    assert "cycles are not known: the clock has 20 bits" in ran.text


def test_files(compiled: CompiledSamples) -> None:
    """The page has the source with what each line did, the table all rows, and the plot is one."""
    code, launch = compiled.code("matmul", "gfx90a", 64, 3, "-g"), launch_by_hand("matmul")
    tool = load_tool("roofline", {"regions": "lines = matmul.hip:13-14", "LUTHIER_SOURCES": str(FOLDER)})
    ran = run_instrumented(EmulatorDevice(load(code).target), instrument(code, tool), tool, launch)
    files = tool.files(ran.result, ran.report)
    page, table = files["roofline.html"].decode(), list(csv.DictReader(StringIO(files["roofline.csv"].decode())))
    assert "sum += tile_a[ty][j] * tile_b[j][tx];" in page and "in between: lines 9-12" in page
    assert "cycle model&#39;s for CDNA 2" in page and "is not shown" not in page
    assert files["roofline.png"].startswith(b"\x89PNG")
    total, region, *_ = table
    assert (total["level"], region["level"], region["name"]) == ("total", "region", "lines = matmul.hip:13-14")
    assert int(total["flops_f32"]) == int(region["flops"]) == 2 * 32**3
    assert sum(int(row["instructions"]) for row in table if row["level"] == "line") == int(total["instructions"])
