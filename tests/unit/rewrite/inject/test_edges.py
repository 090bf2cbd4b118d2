"""Hooks on the ways between blocks, and at loops: each runs as often as control goes there."""

from __future__ import annotations

import pytest
from emulated import LANES, Bench, code_object
from shown_kernels import END, POINTERS, WORDS, S, V, everywhere, instrumented, note_lanes, stores, words

from luthier_py import Tool, Variable, hook, ptr, u32, u64
from luthier_py.base.errors import EditConflict
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented, run_original
from luthier_py.intrinsics import atomic_add
from luthier_py.rewrite.pipeline import instrument
from luthier_py.samples import SAMPLES


@pytest.fixture(scope="module")
def bench():
    return Bench(bytes(range(64)), bytes(4 * WORDS * LANES))


@hook(lanes="one")
def bump(total: ptr[u64]) -> None:
    atomic_add(total, u64(1))


@hook
def times_ten(x: u32) -> u32:
    return x * u32(10)


@hook
def plus(x: u32, n: u32) -> u32:
    return x + n


class Edges(Tool):
    """Counts every edge, and every loop's entries, turns and exits."""

    counts = Variable(u64, 200)
    turns = Variable(u64, 60)
    seen = seen_turns = ()  # after a launch

    def instrument(self, m):
        self.edges = [edge for function in m.functions() for edge in m.edges(function)]
        self.loops = [loop for function in m.functions() for loop in m.loops(function)]
        for number, edge in enumerate(self.edges):
            m.at_edge(edge, bump, self.counts[number])
        for number, loop in enumerate(loop for loop in self.loops if not loop.begins):
            m.at_loop_entry(loop, bump, self.turns[3 * number])
            m.at_back_edge(loop, bump, self.turns[3 * number + 1])
            m.at_loop_exit(loop, bump, self.turns[3 * number + 2])

    def report(self, launch):
        self.seen, self.seen_turns = launch[self.counts], launch[self.turns]
        return {}


def loop(turns, *inside):
    return [("s_mov_b32", S(9), turns), "loop:", *inside, ("s_sub_u32", S(9), S(9), 1), ("s_cmp_lg_u32", S(9), 0),
            ("s_cbranch_scc1", "loop")]


def counted(bench, rows):
    tool = Edges()
    made = instrument(code_object({"k": rows}), tool, kernels=["k"])
    ran, bare = bench.run(made.data, "k.luthier"), bench.run(code_object({"k": rows}), "k")
    assert ran.buffers == bare.buffers
    return tool, list(ran[tool.counts])[:len(tool.edges)], ran[tool.turns]


def test_a_loop_of_one_block_goes_round_by_its_own_edge(bench):
    """Its back edge is critical: the block has another way in, and another way out."""
    _, counts, turns = counted(bench, [*POINTERS, *loop(7), *stores(S(9)), END])
    assert counts == [1, 6, 1] and turns[:3] == (1, 6, 1)


def test_nested_loops(bench):
    rows = [*POINTERS, ("s_mov_b32", S(8), 5), "outer:", *loop(3), ("s_sub_u32", S(8), S(8), 1),
            ("s_cmp_lg_u32", S(8), 0), ("s_cbranch_scc1", "outer"), END]
    tool, _, turns = counted(bench, rows)
    assert [each.depth for each in tool.loops] == [1, 2]
    assert turns[:6] == (1, 4, 1, 5, 10, 5)


def test_both_ways_of_a_branch_that_changes_nothing(bench):
    _, counts, _ = counted(bench, [
        *POINTERS, *loop(4, ("s_bitcmp1_b32", S(9), 0), ("s_cbranch_scc1", "next"), "next:", ("s_nop", 0)), END])
    assert counts == [1, 2, 2, 3, 1]


def flows(made, tool, profile, counts):
    """What comes into a block runs it and leaves it again; of a branch both ways together are its executions."""
    for function in made.program.functions:
        for block in function.blocks:
            ran = profile.counts.get(block.address, 0)
            into = sum(n for edge, n in zip(tool.edges, counts, strict=False) if edge.target is block)
            out = [n for edge, n in zip(tool.edges, counts, strict=False) if edge.source is block]
            if block.address not in function.entries:
                assert into == ran
            if out:
                assert sum(out) == profile.counts.get(block.instrs[-1].pc, 0)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_edges_of_samples_agree_with_the_emulators_counts(sample):
    code, launch, tool = sample.path.read_bytes(), launch_of(sample), Edges()
    device = EmulatorDevice(load(code).target)
    outputs = run_original(device, code, launch).outputs
    profile = device.profile
    made = instrument(code, tool)
    ran = run_instrumented(device, made, tool, launch)
    assert all(data.tobytes() == outputs[number].tobytes() for number, data in ran.outputs.items())
    assert len(tool.edges) <= tool.counts.length and 3 * len(tool.loops) <= tool.turns.length
    counts = tool.seen
    flows(made, tool, profile, counts)
    for number, one in enumerate(each for each in tool.loops if not each.begins):
        come, back, left = tool.seen_turns[3 * number:3 * number + 3]
        assert come + back == profile.counts.get(one.header.address, 0)
        assert come == left or any(block.ending.name in ("END", "RETURN") for block in one.blocks)


def test_results_of_hooks_on_one_way_only(bench):
    """The branch is taken twice; of the two hooks there the one with priority runs first."""
    rows = [*POINTERS, ("s_mov_b32", S(10), 3), ("s_mov_b32", S(11), 0),
            *loop(4, ("s_bitcmp1_b32", S(9), 0), ("s_cbranch_scc1", "next"), ("s_add_u32", S(11), S(11), 1), "next:",
                  ("s_nop", 0)), *stores(S(10), S(11)), END]

    def visit(tool, m):
        function, = m.functions()
        taken = next(e for e in m.edges(function) if e.taken and e.splits and e.target is not e.source)
        m.at_edge(taken, plus, S(10), 1, into=S(10))
        m.at_edge(taken, times_ten, S(10), into=S(10), priority=1)

    ran = bench.run(instrumented(code_object({"k": rows}), visit)[1].data, "k.luthier")
    assert words(ran, 0)[0] == (3 * 10 + 1) * 10 + 1 and words(ran, 1)[0] == 2


def test_what_a_hook_on_a_way_reads_is_no_scratch_before_it(bench):
    """v0 is dead at the marker but for the hook on the taken way of the branch behind it."""
    rows = [*POINTERS, ("v_mov_b32", V(0), 7), ("s_nop", 7), ("s_cmp_eq_u32", S(0), S(0)), ("s_cbranch_scc1", "on"),
            ("s_nop", 1), "on:", ("v_mov_b32", V(0), 1), END]

    def visit(tool, m):
        function, = m.functions()
        marker = next(i for i in function.instrs if i.inst.op.base == "S_NOP")
        m.before(marker, everywhere, tool.rows)
        taken = next(e for e in m.edges(function) if e.taken)
        m.at_edge(taken, note_lanes, tool.slot, V(0))

    tool, made = instrumented(code_object({"k": rows}), visit, rows=Variable(u64, LANES, name="rows"),
                              slot=Variable(u32, name="slot"))
    ran = bench.run(made.data, "k.luthier")
    assert ran[tool.slot] == 7 * LANES and ran[tool.rows] == (1,) * LANES


def test_a_function_that_begins_with_a_loop_has_no_edge_into_it():
    rows = ["loop:", ("s_sub_u32", S(9), S(9), 1), ("s_cmp_lg_u32", S(9), 0), ("s_cbranch_scc1", "loop"), END]
    with pytest.raises(EditConflict, match="no edge leads into it"):
        instrumented(code_object({"k": rows}), lambda tool, m: m.at_loop_entry(
            m.loops(m.functions()[0])[0], bump, tool.total), total=Variable(u64, name="total"))
