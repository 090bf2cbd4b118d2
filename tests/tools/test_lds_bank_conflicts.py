"""Bank conflicts: equal to hand calculations, to what GPUs measured, to NumPy's count over traced addresses for every
sample, and harmless.
"""

from __future__ import annotations

import csv
import json
import re
import subprocess
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from compiled_samples import OPTIONS

from luthier_py import EXEC, Lane, LaunchResult, Mutator, Tool, Variable, hook, ptr, sgpr, u32, u64
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Done, run_instrumented, run_original
from luthier_py.features.run.launched import save_report
from luthier_py.features.run.specs import BufferSpec, parse_argument
from luthier_py.intrinsics import atomic_add, is_first_lane, lane_id, read_first_lane
from luthier_py.isa.timing.lds_banks import CDNA4, BankModel, Way
from luthier_py.program.ir import lift
from luthier_py.report import plots
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import FOLDER, sample

ACCESSES = 12000  # that a trace has room for
WORDS = 68       # of a traced access: site, EXEC, addresses
HALVES = [range(32), range(32, 64)]
QUARTERS = [range(start, start + 16) for start in (0, 16, 32, 48)]
EIGHTHS = [range(start, start + 8) for start in range(0, 64, 8)]
CROSSED = [[*range(a, a + 4), *range(b, b + 4)] for a, b in (
    (0, 20), (4, 16), (8, 28), (12, 24), (32, 52), (36, 48), (40, 60), (44, 56))]  # fmt: skip


class Trace(Tool):
    """Writes down the lanes' addresses at every access."""

    used = Variable(u32)
    trace = Variable(u32, ACCESSES * WORDS)

    @hook
    def record(used: ptr[u32], trace: ptr[u32], site: u32, active: u64, address: Lane[u32]) -> None:
        mine = u32(0)
        if is_first_lane():
            mine = atomic_add(used, u32(1))
        at = read_first_lane(mine) * 68
        trace[at] = site
        trace[at + 1] = u32(active)
        trace[at + 2] = u32(active >> 32)
        trace[at + 4 + lane_id()] = address

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            for instr in function.instrs:
                if instr.inst.op.base.startswith("DS_"):
                    m.before(instr, self.record, self.used, self.trace, instr.pc, sgpr(EXEC, 2), instr.inst["addr"])

    def report(self, launch: LaunchResult) -> list[tuple[int, dict[int, int]]]:
        """For each access its instruction, and the address of each active lane."""
        used = launch[self.used]
        assert used <= ACCESSES
        rows = np.array(launch[self.trace], dtype=np.uint32)[: used * WORDS].reshape(used, WORDS)
        return [
            (int(row[0]), {lane: int(row[4 + lane]) for lane in range(64) if row[1 + lane // 32] >> (lane % 32) & 1})
            for row in rows
        ]

    def text(self, launch: LaunchResult, report: object) -> str:
        return ""


def shape(text: str) -> tuple[list, int, list[int], bool]:
    """Groups, words of a lane, offsets in bytes, and whether lanes share words, from an instruction's text."""
    name, fields = text.split()[0], dict(f.split(":") for f in text.replace(",", "").split() if f.startswith("offset"))
    width = int(name.rpartition("_")[2][1:])
    words, reads = max(width // 32, 1), "_read" in name
    groups = {1: HALVES, 2: QUARTERS, 3: CROSSED if reads else EIGHTHS, 4: CROSSED if reads else EIGHTHS}[words]
    if "2" in name.split("_")[1]:
        stride = words * (256 if "st64" in name else 4)
        return groups, words, [int(fields.get(f, 0)) * stride for f in ("offset0", "offset1")], True
    return groups, words, [int(fields.get("offset", 0))], reads or "_write" in name


def counted(text: str, addresses: dict[int, int], model: BankModel | None = None) -> tuple[int, int, int]:
    """Cycles, those without conflicts, and the most of one group, by NumPy as the model says: a group without an active
    lane takes a cycle, too."""
    groups, words, offsets, shared = shape(text)
    found, count = [], 32
    if model is not None:
        service = model.service(Way.READ if "_read" in text else Way.WRITE, words)
        groups, count = service.groups(64), service.banks
    for offset in offsets:
        for group in groups:
            first = np.array([addresses[lane] + offset for lane in group if lane in addresses], dtype=np.int64) // 4
            wanted = (first[:, None] + np.arange(words)).ravel()
            given = np.unique(wanted) if shared else wanted
            found.append(max(1, int(np.bincount(given % count, minlength=1).max())))
    return sum(found), len(found), max(found)


def run(sample, tool, launch=None):
    code = sample.path.read_bytes()
    device = EmulatorDevice(load(code, sample.name).target)
    return run_instrumented(device, instrument(code, tool), tool, launch or launch_of(sample))


def expected(sample, launch=None, model=None):
    """What the tool should report, by instruction, from a trace."""
    program = lift(load(sample.path.read_bytes()))
    texts = {i.pc: program.isa.text(i.inst) for f in program.functions for i in f.instrs}
    sums: dict[int, list[int]] = {pc: [0, 0, 0, 0] for pc, text in texts.items() if text.startswith("ds_")}
    if sums:
        for pc, addresses in run(sample, Trace(), launch).report:
            if addresses:
                cycles, free, most = counted(texts[pc], addresses, model)
                so_far = sums[pc]
                sums[pc] = [so_far[0] + 1, so_far[1] + cycles, so_far[2] + free, max(so_far[3], most)]
    return sums


def reported(ran):
    names = ("accesses", "cycles", "conflict_free_cycles", "worst_way")
    return {row["pc"]: [row[name] for name in names] for row in ran.report["instructions"]} if ran.report else {}


def test_counts_are_those_of_the_addresses_and_outputs_stay(sample):
    ran, code = run(sample, load_tool("lds_bank_conflicts")), sample.path.read_bytes()
    original = run_original(EmulatorDevice(load(code).target), code, launch_of(sample))
    assert {n: data.tobytes() for n, data in ran.outputs.items()} == {
        n: data.tobytes() for n, data in original.outputs.items()}  # fmt: skip
    assert reported(ran) == expected(sample)


@pytest.mark.parametrize("model", [None, CDNA4], ids=["gfx90a", "other banks"])
def test_every_shape_at_random_addresses(model, monkeypatch):
    """Aligned or not, near or far, or in a row; with lanes that take no part and lanes that share words."""
    if model is not None:
        for module in ("shapes", "results"):
            monkeypatch.setattr(f"luthier_py.tools.lds_bank_conflicts.{module}.bank_model", lambda target: model)
    one, rng = sample("lds_widths"), np.random.default_rng(1)
    kinds = [(unit, most) for unit in (1, 4, 8, 16, 132, 256) for most in (4, 64, 20000 // unit)]
    rows = [(start, step) for start in (0, 6, 16) for step in (0, 1, 4, 8, 12, 16, 32, 64, 128, 132, 256)]
    lanes = np.arange(64, dtype=np.uint32)
    addresses = np.concatenate(
        [unit * rng.integers(0, most, 128, dtype=np.uint32) for unit, most in kinds]
        + [start + step * (63 - lanes if back else lanes) for start, step in rows for back in (False, True)]
    )
    groups = addresses.size // 64
    texts = ("u32=1", f"in:u32[{addresses.size}]=zeros", f"out:u32[{addresses.size}]")
    arguments = tuple(map(parse_argument, texts))
    assert isinstance(arguments[1], BufferSpec)
    arguments = (arguments[0], replace(arguments[1], data=addresses), arguments[2])
    launch = replace(launch_of(one), grid=(groups, 1, 1), arguments=arguments)
    assert reported(run(one, load_tool("lds_bank_conflicts"), launch)) == expected(one, launch, model)


@pytest.mark.parametrize(("name", "x", "y"), [("reduce", 100, 1), ("matmul", 10, 7), ("transpose", 20, 5)])
def test_waves_that_are_not_full_and_rows_that_are_not_waves(name, x, y):
    launch = replace(launch_of(sample(name)), block=(x, y, 1))
    assert reported(run(sample(name), load_tool("lds_bank_conflicts"), launch)) == expected(sample(name), launch)


def by_instruction(name):
    report = run(sample(name), load_tool("lds_bank_conflicts", {"order": "pc"})).report
    return [tuple(row[key] for key in ("accesses", "conflict_free_cycles", "cycles")) for row in report["instructions"]]


def test_transpose_by_hand():
    """4 groups x 4 waves x 4 rounds: rows are written in a cycle for each half wave, columns read in 32."""
    waves = 4 * 4 * 4
    assert by_instruction("transpose") == [(waves, 2 * waves, 2 * waves), (waves, 2 * waves, 2 * 32 * waves)]
    assert by_instruction("transpose_padded") == [(waves, 2 * waves, 2 * waves)] * 2


def test_reduction_by_hand():
    """In 8 groups, for each level: waves that take part, and cycles: lanes of a half wave, at a distance of 2 * step
    words, meet in one bank step * 2 at a time, as long as there are so many; a half without work takes one."""
    levels = [(2, 4 * 2), (1, 2 * 4), (1, 8 + 1), (1, 8 + 1), (1, 8 + 1), (1, 4 + 1), (1, 2 + 1), (1, 1 + 1)]
    waves, cycles = (8 * sum(numbers) for numbers in zip(*levels, strict=True))
    halves = 2 * waves
    tree, first, last = (waves, halves, cycles), (8 * 4, 8 * 8, 8 * 8), (8, 2 * 8, 2 * 8)
    assert by_instruction("reduce_strided") == [first, tree, tree, tree, last]
    assert by_instruction("reduce_padded") == [first, *[(waves, halves, halves)] * 3, last]


@pytest.mark.parametrize("lanes", [1, 2, 3, 20])
def test_one_bank_as_a_gpu_measured_it(lanes):
    """MI250, by ROCm Compute Profiler's LDS examples: so many lanes of a wave take a cycle more than they are."""
    one = sample("lds_widths")
    arguments = tuple(map(parse_argument, ("u32=128", "in:u32[64]=arange", "out:u32[64]")))
    launch = replace(launch_of(one), grid=(1, 1, 1), block=(lanes, 1, 1), arguments=arguments)
    rows = run(one, load_tool("lds_bank_conflicts"), launch).report["instructions"]
    (row,) = (row for row in rows if row["instruction"].startswith("ds_read_b32"))
    assert (row["cycles"], row["conflict_cycles"]) == (lanes + 1, lanes - 1)


SUM = """
#include "device.h"
typedef float f4 __attribute__((ext_vector_type(4)));
KERNEL void k(const float *in, float *out) {
  __shared__ f4 parts[4];
  u32 t = thread_x();
  ((float *)parts)[t] = in[t];
  sync_threads();
  if (t == 0) {
    f4 sum = parts[0] + parts[1] + parts[2] + parts[3];
    *out = sum.x + sum.y + sum.z + sum.w;
  }
}
"""


@pytest.mark.parametrize(("name", "cycles"), [("gfx950", 18), ("gfx1100", 17), ("gfx1200", 17)])
def test_waves_of_few_lanes_as_gpus_measured_them(name, cycles, require_tool):
    """Counters of MI350X, RX 7900 XTX and RX 9060 XT, as tinygrad keeps them: sixteen lanes store a word, one reads
    four times 128 bits."""
    command = [require_tool("clang-22"), *OPTIONS, "-O2", f"--offload-arch={name}", f"-I{FOLDER}", "-", "-o", "-"]
    code = subprocess.run(command, input=SUM.encode(), check=True, capture_output=True).stdout
    arguments = tuple(map(parse_argument, ("in:f32[16]=ones", "out:f32[1]")))
    tool, launch = load_tool("lds_bank_conflicts"), replace(launch_of(sample("reduce")), kernel="k", grid=(1, 1, 1),
                                                            block=(16, 1, 1), arguments=arguments)
    ran = run_instrumented(EmulatorDevice(load(code).target), instrument(code, tool), tool, launch)
    rows = sorted(row["instruction"].split()[0][3:] for row in ran.report["instructions"])
    assert rows == ["read_b128"] * 4 + ["write_b32"] or rows == ["load_b128"] * 4 + ["store_b32"]
    assert ran.report["total"] == {
        "accesses": 5, "cycles": cycles, "conflict_free_cycles": cycles, "conflict_cycles": 0}  # fmt: skip


@pytest.fixture(scope="module")
def report_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    tool = load_tool("lds_bank_conflicts", {"LUTHIER_SOURCES": str(FOLDER), "LUTHIER_REPORT": str(folder)})
    ran = run(sample("transpose"), tool)
    paths = save_report(Done(FOLDER, ran, None, tool, None))
    return {path.suffix: path.read_bytes() for path in paths}, ran


def test_the_report_as_data(report_files):
    files, ran = report_files
    assert json.loads(files[".json"]) == ran.report and files[".txt"].decode() == ran.text + "\n"
    rows = list(csv.DictReader(StringIO(files[".csv"].decode())))
    cycles = [(row["source"], row["cycles"]) for row in rows]
    assert cycles == [("transpose.hip:11", "4096"), ("transpose.hip:8", "128")]
    assert "32-way  0x1710  ds_read_b32 v4, v5   transpose.hip:11" in ran.text
    assert ran.report["total"] == {
        "accesses": 128, "cycles": 4224, "conflict_free_cycles": 256, "conflict_cycles": 3968}  # fmt: skip


def test_the_page_shows_code_and_source(report_files):
    files, _ = report_files
    page = files[".html"].decode()
    assert files[".png"].startswith(b"\x89PNG")
    for text in ("s_barrier", "out[(column + k) * n + row + tx] = tile[tx][k];", "32-way", "#pc1710", 'id="pc1710"'):
        assert text in page
    assert page.count("<script") == 1 and page.count("<h1>") == 1 and page.count(">LDS cycles of the worst") == 0
    left, right = re.findall(r'<section class="pane".*?</section>', page, re.DOTALL)
    assert 'data-line="transpose.hip:11"' in left and 'data-line="transpose.hip:11"' in right
    names = set(re.findall(r'id="(pc\w+)"', right))
    targets = re.findall(r'<td class="code">s_c?branch\w* <a href="#(pc\w+)">0x(\w+)</a>', right)
    assert targets and all(name in names and name == f"pc{address}" for name, address in targets)


def test_line_tables_cannot_name_any_file():
    code = sample("transpose").path.read_bytes()
    evil = code.replace(b"transpose.hip", b"/etc/hostname")
    assert evil != code
    tool = load_tool("lds_bank_conflicts", {"LUTHIER_SOURCES": str(FOLDER), "worst": 0})
    made, launch = instrument(evil, tool), launch_of(sample("transpose"))
    ran = run_instrumented(EmulatorDevice(made.obj.target), made, tool, launch)
    page = tool.files(ran.result, ran.report)["lds_bank_conflicts.html"].decode()
    assert "Source /etc/hostname is not shown: not below" in page and "<h2>Source" not in page


def test_without_matplotlib_the_page_says_so(monkeypatch):
    monkeypatch.setattr("luthier_py.report.plots.available", lambda: False)
    tool = load_tool("lds_bank_conflicts")
    ran = run(sample("reduce_padded"), tool)
    files = tool.files(ran.result, ran.report)
    assert "lds_bank_conflicts.png" not in files and b"luthier-py[plot]" in files["lds_bank_conflicts.html"]


def test_a_kernel_without_lds_is_left_alone():
    assert run(sample("saxpy"), load_tool("lds_bank_conflicts")).cloned is None


def test_who_wants_no_plot_is_told_nothing_of_matplotlib():
    if not plots.available():
        pytest.skip("matplotlib is not installed")
    tool = load_tool("lds_bank_conflicts", {"worst": 0})
    ran = run(sample("reduce_padded"), tool)
    files = tool.files(ran.result, ran.report)
    assert "lds_bank_conflicts.png" not in files and b"luthier-py[plot]" not in files["lds_bank_conflicts.html"]
