"""Divergence of branches: what a trace of EXEC at every instruction of the same run says, and a count by hand."""

from __future__ import annotations

import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from compiled_samples import OPTIONS, CompiledSamples

from luthier_py import EXEC, Channel, Mutator, Several, Tool, channel, hook, load, sgpr, u32, u64, wave_in_launch
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Launch, run_instrumented, run_original
from luthier_py.features.run.specs import parse_argument
from luthier_py.intrinsics import push
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample as sample_called

TOOL = Path(__file__).resolve().parents[2] / "tools" / "branch_divergence"
WRITES = re.compile(r"s_\w+ exec(_lo)?,|s_\w+_(saveexec|wrexec)_|v_cmpx_")
SCC = re.compile(r"s_cbranch_scc([01]) (\d+)")
FEWER = (1 << 13) - 1  # lanes for which the condition in VCC holds, below
NUMBERS = "none", "some", "all", "before", "after"
PARTED = """
#define KEEP asm volatile("s_nop 0")
extern "C" __attribute__((global)) void k(unsigned *out, unsigned n) {
    unsigned x = __builtin_amdgcn_workitem_id_x(), sum = 0;
    if (x < n) { KEEP; sum = out[x]; } else { KEEP; sum = out[2 * x]; }
    for (unsigned i = 0; i < (x & 3); i++) { KEEP; sum += out[i]; }
    out[x] = sum;
    asm volatile("v_cmp_gt_u32 vcc, %1, %0\\n s_cbranch_vccz 1\\n s_nop 0" :: "v"(x), "s"(n + 3) : "vcc");
}
"""


class Executed:
    wave: u32
    pc: u32
    exec: u64


class Trace(Tool):
    """EXEC at every instruction, in each wave's order."""

    executed = Channel(Executed)

    @hook(lanes="one")
    def note(out: channel[Executed], wave: u32, pc: u32, exec: u64, lanes: u64) -> None:
        push(out, wave, pc, exec & lanes)

    def __init__(self) -> None:
        super().__init__()
        self.waves: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)

    def instrument(self, m: Mutator) -> dict[int, str]:
        lanes, isa = (1 << m.program.isa.wave_size) - 1, m.program.isa
        for function in m.functions():
            for instr in m.instrs(function):
                m.before(instr, self.note, self.executed, wave_in_launch(), instr.pc, sgpr(EXEC, 2), lanes)
        return {instr.pc: isa.text(instr.inst) for function in m.functions() for instr in function.instrs}

    def received(self, channel, launch, records) -> None:
        for record in records:
            self.waves[int(record["wave"])].append((int(record["pc"]), int(record["exec"])))

    def report(self, launch):
        return launch.notes

    def text(self, launch, report) -> str:
        return ""


def parted(waves, texts: dict[int, str], condition: dict[int, str]) -> dict[int, Counter[str]]:
    """By pc what the tool has to say, from masks alone. ``condition``: of each pc, as the tool has it."""
    found: defaultdict[int, Counter[str]] = defaultdict(Counter)
    ends = {pc: pc + 4 + 4 * ((int(match[2]) + 0x8000 & 0xFFFF) - 0x8000) for pc, text in texts.items()
            if (match := SCC.match(text))}
    for trace in waves.values():
        before = 0  # EXEC, before it was written last
        for (pc, mask), (to, behind) in zip(trace, [*trace[1:], (0, 0)], strict=True):
            written = bool(WRITES.match(texts[pc]))
            if pc in condition:
                taking, left = {"": (mask | behind, behind), "exec": (before | mask, mask),
                                "scc": (mask, mask if to == ends.get(pc) else 0),
                                "vcc": (mask, mask & FEWER)}[condition[pc]]
                way = "none" if left == 0 else "all" if left == taking else "some"
                found[pc].update({way: 1, "before": taking.bit_count(), "after": left.bit_count()})
            before = mask if written else before
    return found


def run(code: bytes, launch: Launch) -> dict[str, Any]:
    """The tool's report, as it is with a trace of the same run; outputs stay, and all instructions are those that the
    emulator counts itself."""
    device = EmulatorDevice(load(code).target)
    original = run_original(device, code, launch)
    profile, trace = device.profile, Trace()
    tool = Several(load_tool(f"{TOOL}/"), trace)
    ran = run_instrumented(device, instrument(code, tool), tool, launch)
    assert {n: data.tobytes() for n, data in ran.outputs.items()} == {
        n: data.tobytes() for n, data in original.outputs.items()}
    report, texts = ran.report["branch_divergence"], ran.report["Trace"]
    total = report["total"]
    assert (total["instructions"], total["lanes"]) == (profile.total, profile.total_lanes)
    rows = {row["pc"]: Counter({name: row[name] for name in NUMBERS if row[name]}) for row in report["branches"]}
    known = parted(trace.waves, texts, {row["pc"]: row["condition"] for row in report["branches"]})
    assert rows == {pc: known.get(pc, Counter()) for pc in rows}
    branches = {pc for pc, text in texts.items() if text.startswith("s_cbranch_")}
    assert branches == {row["pc"] for row in report["branches"] if row["condition"]} and not report["left_out"]
    assert total["divergent"] == sum(row["some"] for row in report["branches"])
    return report


@pytest.mark.parametrize("name", ["bitonic_sort", "function_pointers"])
def test_it_is_what_masks_say(name: str) -> None:
    found = sample_called(name)
    run(found.path.read_bytes(), launch_of(found))


@pytest.mark.parametrize(("target", "wave_size", "level"), [
    ("gfx1201", 32, 2), *(pytest.param(*other, marks=pytest.mark.slow) for other in (
        ("gfx942", 64, 2), ("gfx1030", 32, 2), ("gfx1100", 32, 2), ("gfx1100", 64, 2), ("gfx90a", 64, 0)))])
def test_on_other_targets(target: str, wave_size: int, level: int, require_tool, tmp_path: Path) -> None:
    found = sample_called("bitonic_sort")
    compiled = CompiledSamples(require_tool("clang-22"), tmp_path).code(found.name, target, wave_size, level)
    assert run(compiled, launch_of(found))["wave_size"] == wave_size


def test_an_else_and_a_loop_by_hand(require_tool: Callable[[str], str], tmp_path: Path) -> None:
    """Of 64 lanes 10 take the `if`, 54 the `else`; 48 come into the loop, of which 32, 16 and 0 go round again;
    for 13 the condition in VCC holds."""
    (tmp_path / "parted.hip").write_text(PARTED)
    command = [require_tool("clang-22"), *OPTIONS, "-O2", "--offload-arch=gfx90a", "parted.hip", "-o", "parted.co"]
    subprocess.run(command, cwd=tmp_path, check=True)
    launch = Launch("k", (1, 1, 1), (64, 1, 1), (parse_argument("inout:u32[128]=arange"), parse_argument("u32=10")))
    report = run((tmp_path / "parted.co").read_bytes(), launch)
    rows = [(row["executions"], row["divergent"], row["before"], row["after"]) for row in report["branches"]]
    assert sorted(rows) == [(1, 1, 64, 10), (1, 1, 64, 13), (1, 1, 64, 48), (1, 1, 64, 54), (3, 2, 96, 48)]
    both = load_tool(f"{TOOL}/").combined([report, report])
    assert both["total"] == {**{name: 2 * number for name, number in report["total"].items()},
                             "activity": report["total"]["activity"]}


@pytest.mark.parametrize(("name", "options"), [
    ("vector_add", {}), ("saxpy", {"INSTRUMENT": "branch"}), ("saxpy", {"INSTRUMENT": "store"})])
def test_nothing_to_count_is_nothing_counted(name: str, options: dict[str, str]) -> None:
    """Of a kernel without branches, or where none is chosen with what belongs to it."""
    one = sample_called(name)
    tool = load_tool(f"{TOOL}/", options)
    ran = run_instrumented(EmulatorDevice(load(one.path.read_bytes()).target),
                           instrument(one.path.read_bytes(), tool), tool, launch_of(one))
    assert ran.report["total"]["divergent"] == 0 and ran.text
