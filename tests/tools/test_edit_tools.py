"""Tools that edit on every sample kernel: counts are the emulator's, and results what they are without them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented, run_original
from luthier_py.program.analysis import loops_of
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture
def ran(sample, request):
    """The tool's run, its copy, and what the emulator counted without it."""
    code, launch = sample.path.read_bytes(), launch_of(sample)
    device, tool = EmulatorDevice(load(code).target), load_tool(f"{TOOLS}/{request.param}/")
    before = run_original(device, code, launch).outputs
    profile = device.profile
    made = instrument(code, tool)
    after = run_instrumented(device, made, tool, launch)
    assert after.outputs.keys() == before.keys()
    assert all(data.tobytes() == before[number].tobytes() for number, data in after.outputs.items())
    return after, made, profile.counts


@pytest.mark.parametrize("ran", ["branch_edges"], indirect=True)
def test_both_ways_of_a_branch(ran):
    after, made, counts = ran
    branches, into = Counter(), Counter()
    rows = (after.report or {"edges": ()})["edges"]
    for row in rows:
        branches[row["branch"]] += row["count"]
        into[row["target"]] += row["count"]
    splits = [block for function in made.program.functions for block in function.blocks if len(block.successors) == 2]
    assert branches.keys() >= {block.instrs[-1].pc for block in splits}
    assert all(count == counts.get(pc, 0) for pc, count in branches.items())
    ways = sorted((row["branch"], row["target"], row["taken"]) for row in rows)
    assert ways == sorted(way for block in splits for way in ways_of(block.instrs[-1]))
    for function in made.program.functions:
        for block in function.blocks:
            coming = [other for other in function.blocks if block.address in other.successors]
            if coming and all(other in splits for other in coming) and block.address not in function.entries:
                assert into[block.address] == counts.get(block.address, 0)


def ways_of(branch):
    """Where it leads when it is taken, and when it is not."""
    behind = branch.pc + branch.inst.size_bytes
    return (branch.pc, branch.inst.branch_target(branch.pc), True), (branch.pc, behind, False)


@pytest.mark.parametrize("ran", ["loop_counts"], indirect=True)
def test_entries_and_turns_of_loops(ran):
    after, made, counts = ran
    rows = (after.report or {"loops": ()})["loops"]
    headers = [(function.name, loop.header.address) for function in made.program.functions
               for loop in loops_of(function) if not loop.begins]
    assert sorted((row["function"], row["header"]) for row in rows) == sorted(headers)
    for row in rows:
        assert row["entries"] + row["turns"] == counts.get(row["header"], 0)
        assert row["trips"] == (counts.get(row["header"], 0) / row["entries"] if row["entries"] else 0.0)


@pytest.mark.parametrize("ran", ["mov_replace"], indirect=True)
def test_moves_by_a_hook(ran):
    after, made, _ = ran
    isa, codes = made.program.isa, [function.code for function in made.program.functions]
    moves = sum(isa.text(code.inst(at)).startswith("v_mov_b32_e32 v") and ", v" in isa.text(code.inst(at))
                for code in codes for at in range(len(code)))
    assert (after.report or {"replaced": 0})["replaced"] == moves == len(made.edits.instead)
