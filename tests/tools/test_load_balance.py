"""Times of waves against the emulator's clocks, counts against its counters, and a report of known numbers by hand."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from compiled_samples import CompiledSamples

from luthier_py import LaunchResult
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice, LaunchOptions
from luthier_py.emulator.options.clock_kind import ClockKind
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Launch, Ran, run_instrumented, run_original
from luthier_py.features.run.specs import parse_argument
from luthier_py.isa import target
from luthier_py.isa.model.compute_units import compute_unit_bits
from luthier_py.rewrite.pipeline import Instrumented, instrument, plan
from luthier_py.rewrite.tool import Tool, load_tool
from luthier_py.rewrite.tool.variables import numpy_type
from luthier_py.samples import sample as sample_called

TOOL = Path(__file__).resolve().parents[2] / "tools" / "load_balance"


def run(code: bytes, launch: Launch, tool: Tool, clock: ClockKind) -> tuple[Ran, Instrumented, EmulatorDevice]:
    device = EmulatorDevice(load(code).target, options=LaunchOptions(clock=clock))
    made = instrument(code, tool)
    return run_instrumented(device, made, tool, launch), made, device


def rows(ran: Ran, tool: Tool) -> np.ndarray:
    return ran.result[type(tool).waves]


def check_counts(code: bytes, launch: Launch) -> Ran:
    """Of each wave and thread together they are the emulator's, and outputs stay."""
    bare = EmulatorDevice(load(code).target)
    original, profile = run_original(bare, code, launch), bare.profile
    ran, _, _ = run(code, launch, load_tool(f"{TOOL}/", {"counting": "threads"}), ClockKind.INSTRUCTIONS)
    assert {n: data.tobytes() for n, data in ran.outputs.items()} == {
        n: data.tobytes() for n, data in original.outputs.items()}
    counted = ran.report["instructions"]
    assert (counted["total"], counted["total_threads"]) == (profile.total, profile.total_lanes)
    for of, total in (("wave", profile.total), ("thread", profile.total_lanes)):
        assert counted[of]["mean"] * counted[of]["count"] == pytest.approx(total)
    return ran


@pytest.mark.parametrize("name", ["mandelbrot", "function_pointers"])
def test_counts_are_the_emulators(name: str) -> None:
    found = sample_called(name)
    launch = launch_of(found)
    ran = check_counts(found.path.read_bytes(), launch)
    assert ran.report["instructions"]["thread"]["count"] == np.prod(launch.grid) * np.prod(launch.block)
    per_cycle = ran.report["instructions"]["per_cycle"]
    assert per_cycle["total"] == ran.report["instructions"]["total"] / ran.report["cycles"]


def test_cycles_are_instructions_between_two_looks_at_the_clock() -> None:
    """Each wave of `vector_add` runs the same; by the emulator's count of each instruction of the clone."""
    found, tool = sample_called("vector_add"), load_tool(f"{TOOL}/")
    ran, made, device = run(found.path.read_bytes(), launch_of(found), tool, ClockKind.INSTRUCTIONS)
    copy = load(made.data)
    clone = copy.symbol(next(chunk.name for chunk in made.patched.chunks))
    code, at, looks = copy.read(clone.address, clone.size), 0, []
    while at < len(code):
        inst = made.program.isa.decode(code, at)
        if inst.op.mnemonic == "s_memtime":
            looks.append(clone.address + at)
        at += inst.size_bytes
    first, last = looks
    between = sum(count for pc, count in device.profile.counts.items() if first < pc <= last)
    cycles = (rows(ran, tool)["end"] - rows(ran, tool)["begin"]).tolist()
    assert len(set(cycles)) == 1 and sum(cycles) == between
    assert ran.report["waves"]["imbalance"] == 1 and ran.report["waves"]["histogram"]["counts"] == [len(cycles)]
    _, columns, *_, bins = ran.text.split("\n")
    assert columns.split() == ["count", "min", "mean", "max", "imbalance", "of"]
    assert re.fullmatch(rf"  waves by cycles: {len(cycles)} to [\d.]+", bins)


def test_cycles_of_the_model_are_its_own() -> None:
    """All but what the tool does before its first look and behind its last, which is about the same for all waves."""
    found, tool = sample_called("mandelbrot"), load_tool(f"{TOOL}/")
    ran, _, device = run(found.path.read_bytes(), launch_of(found), tool, ClockKind.MODEL)
    own = device.profile.cycles.waves.ravel()
    seen = (rows(ran, tool)["end"] - rows(ran, tool)["begin"]).astype(np.int64)
    around = own - seen
    assert around.min() > 0 and own.argmax() == seen.argmax()
    assert around.max() - around.min() < own.max() / 20 < np.ptp(seen) / 10
    spans = ran.report["workgroups"]
    assert spans["max"] < (device.profile.cycles.ends - device.profile.cycles.begins).max()
    assert ran.report["waves"]["max"] == seen.max() and ran.report["waves"]["mean"] == pytest.approx(seen.mean())


OTHERS = [("gfx942", 64, 64), ("gfx1030", 32, 64), ("gfx1100", 32, 20), ("gfx1201", 32, 64)]


@pytest.mark.parametrize(("name", "wave_size", "bits"), [
    pytest.param(*other, marks=() if other[0] == "gfx1100" else pytest.mark.slow) for other in OTHERS])
def test_on_other_targets(name: str, wave_size: int, bits: int, require_tool, tmp_path: Path) -> None:
    """A clock of 20 bits says nothing of waves beside each other, but how long each was."""
    found = sample_called("mandelbrot")
    compiled = CompiledSamples(require_tool("clang-22"), tmp_path).code(found.name, name, wave_size)
    report = check_counts(compiled, launch_of(found)).report
    assert report["clock_bits"] == bits and (report["cycles"] is None) == (bits == 20)
    assert (report["workgroups"] is None) == (report["instructions"]["per_cycle"] is None) == (bits == 20)
    assert 0 < report["waves"]["min"] < report["waves"]["max"] < 1 << 20


def test_numbers_by_hand() -> None:
    """Two work-groups of two waves, one of which is not there, on two compute units of two dies."""
    tool = load_tool(f"{TOOL}/")
    notes = plan(sample_called("vector_add").path, tool).edits.notes
    waves = np.zeros(4, numpy_type(type(tool).waves.element))
    for number, (begin, end, place, die) in enumerate([(100, 140, 7, 0), (110, 130, 7, 0), (120, 240, 7, 1)]):
        waves[number] = (begin, end, 0, 0, place, die, 1)
    launch = LaunchResult(0, "k", (2, 1, 1), (128, 1, 1), {type(tool).waves.name: waves.tobytes()}, notes=notes)
    report = tool.report(launch)
    assert report["cycles"] == 140 and report["instructions"] is None
    of = ("count", "min", "mean", "max", "imbalance")
    assert [tuple(report[name][key] for key in of) for name in ("waves", "workgroups", "units")] == [
        (3, 20, 60, 120, 2), (2, 40, 80, 120, 1.5), (2, 60, 90, 120, 120 / 90)]
    assert report["waves"]["histogram"] == {
        "edges": [20, 32.5, 45, 57.5, 70, 82.5, 95, 107.5, 120], "counts": [1, 1, 0, 0, 0, 0, 0, 1]}
    rows_of_file = tool.files(launch, report)["load_balance.csv"].decode().splitlines()
    assert rows_of_file[1] == "0,0,100,140,0,0,7,0,1" and len(rows_of_file) == 4


def test_registers_that_tell_compute_units_apart() -> None:
    found = {name: compute_unit_bits(target(name)) for name in ("gfx90a", "gfx942", "gfx1100", "gfx1201")}
    assert found == {"gfx90a": {"HW_ID": 0xFF00}, "gfx942": {"HW_ID": 0xFF00, "XCC_ID": 0xF},
                     "gfx1100": {"HW_ID1": 0x1D3C00}, "gfx1201": {"WAVE_HW_ID1": 0x1D3C00}}


def test_threads_of_which_nothing_that_was_chosen_ran() -> None:
    tool = load_tool(f"{TOOL}/", {"counting": "threads", "instrument": "global"})
    values = tuple(map(parse_argument, ("u32=0", "f32=1", "in:f32[64]=zeros", "inout:f32[64]=zeros")))
    launch = Launch("saxpy", (1, 1, 1), (64, 1, 1), values)
    ran, *_ = run(sample_called("saxpy").path.read_bytes(), launch, tool, ClockKind.INSTRUCTIONS)
    counted = ran.report["instructions"]
    assert counted["total"] == 0 and counted["thread"] is None and "of a thread" not in ran.text
