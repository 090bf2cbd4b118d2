"""Reaching definitions, uses and graphs: against walks along random paths, path searches, and the emulator's counts."""

from __future__ import annotations

import random
from typing import Any

import pytest
from emulated import code_object

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_original
from luthier_py.isa import EXEC, OpFlag, sgpr, vgpr
from luthier_py.program.analysis import (
    Definitions,
    Facts,
    analyse,
    block_graph,
    call_graph,
    dominators,
    loops_of,
    post_dominators,
    trip_count,
)
from luthier_py.program.ir import Block, Function, Instr, Program, lift
from luthier_py.samples import SAMPLES, sample

STEPS = 400


def lifted(rows: Any) -> tuple[Function, Facts, list[Instr]]:
    program = lift(load(code_object({"k": rows})))
    function = program.kernel("k").function
    return function, analyse(program), list(function.instrs)


def test_ways_that_meet_and_lanes_that_keep_what_they_had() -> None:
    function, facts, i = lifted([
        ("s_mov_b32", sgpr(20), 1), ("v_mov_b32", vgpr(1), 1), ("s_cmp_eq_u32", sgpr(6), 0), ("s_cbranch_scc1", "else"),
        ("s_mov_b32", sgpr(20), 2), ("s_branch", "end"), "else:", ("s_mov_b32", sgpr(21), sgpr(20)), "end:",
        ("s_mov_b64", sgpr(EXEC, 2), 3), ("v_mov_b32", vgpr(1), sgpr(20)), ("v_add_u32", vgpr(2), vgpr(1), vgpr(3)),
        ("s_endpgm", 0),
    ])
    found = Definitions(function, facts)
    assert found.reaching(i[8], sgpr(20)).instrs == (i[0], i[4]) and not found.reaching(i[8], sgpr(20)).outside
    assert found.reaching(i[9], vgpr(1)).instrs == (i[1], i[8])
    assert found.reaching(i[9], vgpr(3)) == found.reaching(i[0], vgpr(3)) and found.reaching(i[9], vgpr(3)).outside
    assert found.reaching(i[9], sgpr(21)).instrs == (i[6],) and found.reaching(i[9], sgpr(21)).outside
    assert found.uses(i[0]) == (i[6], i[8]) and found.uses(i[4]) == (i[8],) and found.uses(i[9]) == ()
    assert found.graph.edges[i[0], i[6]]["registers"].sgpr == 1 << 20
    assert set(found.graph.successors(i[2])) == {i[3]}


def paths(function: Function, rng: random.Random) -> list[Instr]:
    """Instructions as control may run through them."""
    block, found = function.block(function.entries[0]), []
    while len(found) < STEPS:
        found += list(block.instrs)
        if not block.successors:
            break
        block = rng.choice(function.successors(block))
    return found


@pytest.mark.parametrize("one", SAMPLES, ids=lambda one: one.name)
def test_the_last_writer_on_any_path_reaches(one: Any) -> None:
    program = lift(load(one.path.read_bytes()))
    facts, rng = analyse(program), random.Random(one.name)
    for function in program.functions:
        found = Definitions(function, facts)
        for _ in range(8):
            last: dict[Any, Instr] = {}
            for instr in paths(function, rng):
                for reg in instr.inst.reads:
                    reaching = found.reaching(instr, reg)
                    assert last[reg] in reaching.instrs and instr in found.uses(last[reg]) if reg in last \
                        else reaching.outside or reaching.instrs
                last.update(dict.fromkeys(instr.inst.writes, instr))
                if OpFlag.CALL in instr.op.flags:
                    last = {}


def reaches(function: Function, start: Block, without: Block | None, stops: set[Block]) -> bool:
    """Whether a way leads from ``start`` to one of ``stops`` that leaves out a block."""
    seen, work = set(), [start] if start is not without else []
    while work:
        block = work.pop()
        if block in stops:
            return True
        if block not in seen:
            seen.add(block)
            work += [each for each in function.successors(block) if each is not without]
    return False


@pytest.mark.parametrize("one", SAMPLES, ids=lambda one: one.name)
def test_dominators_and_graphs(one: Any) -> None:
    from networkx import immediate_dominators  # takes long to import

    program = lift(load(one.path.read_bytes()))
    for function in program.functions:
        graph, ends = block_graph(function), {block for block in function.blocks if not block.successors}
        assert {*graph.edges} == {(b, s) for b in function.blocks for s in function.successors(b)}
        assert all(set(function.predecessors(b)) == set(graph.predecessors(b)) for b in function.blocks)
        if len(function.entries) == 1:
            entry = function.block(function.entries[0])
            known = {k: v for k, v in immediate_dominators(graph, entry).items() if k is not entry}
            assert {k: v for k, v in dominators(function).items() if k is not entry} == known
        found = post_dominators(function)
        for block in function.blocks:
            every = {other for other in function.blocks if other is not block
                     and reaches(function, block, None, ends) and not reaches(function, block, other, ends)}
            chain, above = set(), found.get(block)
            while above is not None:
                chain.add(above)
                above = found[above]
            assert chain == every


def test_a_call_writes_what_those_touch_that_it_runs() -> None:
    def address(of: str, pair: int) -> list[Any]:
        return [("s_getpc_b64", sgpr(pair, 2)), ("s_add_u32", sgpr(pair), sgpr(pair), of),
                ("s_addc_u32", sgpr(pair + 1), sgpr(pair + 1), of)]

    def reached(g: list[Any]) -> list[tuple[bool, bool]]:
        call = ("s_swappc_b64", sgpr(30, 2), sgpr(10, 2))
        again = ("s_swappc_b64", sgpr(30, 2), sgpr(14, 2))
        f = [("s_mov_b64", sgpr(40, 2), sgpr(30, 2)), *address("g", 14), again, ("s_setpc_b64", sgpr(40, 2))]
        rows = [("s_mov_b32", sgpr(20), 1), ("v_mov_b32", vgpr(3), 1), *address("f", 10), call,
                ("v_add_u32", vgpr(2), sgpr(20), vgpr(3)), ("s_endpgm", 0)]
        program = lift(load(code_object({"k": rows, "f": f, "g": [*g, ("s_setpc_b64", sgpr(30, 2))]})))
        function = program.kernel("k").function
        *_, call, last, _ = function.instrs
        found = Definitions(function, analyse(program))
        return [(call in reaching.instrs, reaching.outside)
                for reaching in (found.reaching(last, reg) for reg in (sgpr(20), vgpr(3), sgpr(14), vgpr(7)))]

    assert reached([]) == [(False, False), (False, True), (True, True), (False, True)]
    assert reached([("v_mov_b32", vgpr(7), sgpr(20))]) == [(True, False), (False, True), (True, True), (True, True)]
    unknown = [("s_load_dwordx2", sgpr(8, 2), sgpr(0, 2), 0), ("s_setpc_b64", sgpr(8, 2))]
    assert reached(unknown) == [(True, False), (True, True), (True, True), (True, True)]


def test_calls() -> None:
    from networkx import descendants

    program: Program = lift(load(sample("device_call").path.read_bytes()))
    graph = call_graph(program)
    assert graph.number_of_edges() == sum(len(s.targets) for f in program.functions for s in program.calls(f)) > 0
    assert all(target in data["site"].targets for _, target, data in graph.edges(data=True))
    kernel = program.kernels[0].function
    assert {kernel, *descendants(graph, kernel)} == set(program.reachable(kernel))


def test_trip_counts_are_those_of_the_emulator() -> None:
    known = 0
    for one in SAMPLES:
        code = one.path.read_bytes()
        program = lift(load(code))
        facts = analyse(program)
        loops = [(loop, trips) for function in program.functions for loop in loops_of(function)
                 if (trips := trip_count(loop, Definitions(function, facts))) is not None]
        if not loops:
            continue
        device = EmulatorDevice(load(code).target)
        run_original(device, code, launch_of(one))
        assert device.profile is not None
        counts = device.profile.counts
        for loop, trips in loops:
            once = sum(counts.get(edge.instr.pc, 0) for edge in loop.entries if not edge.splits)
            if once and all(not edge.splits for edge in loop.entries):
                assert counts[loop.header.instrs[0].pc] == trips * once
                known += 1
    assert known >= 2


@pytest.mark.parametrize(("start", "step", "compare", "limit", "branch", "trips"), [
    (0, 1, "s_cmp_lt_u32", 10, "s_cbranch_scc1", 10), (0, 3, "s_cmp_lt_i32", 10, "s_cbranch_scc1", 4),
    (5, 1, "s_cmp_eq_u32", 9, "s_cbranch_scc0", 4), (7, 1, "s_cmp_lg_u32", 7, "s_cbranch_scc1", None),
    (7, 0, "s_cmp_lg_u32", 8, "s_cbranch_scc1", None),
])
def test_trip_counts(
    start: int, step: int, compare: str, limit: int, branch: str, trips: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("luthier_py.program.analysis.trips.MOST", 1 << 10)
    function, facts, _ = lifted([
        ("s_mov_b32", sgpr(20), start), "loop:", ("v_add_u32", vgpr(1), 1, vgpr(1)),
        ("s_add_u32", sgpr(20), sgpr(20), step), (compare, sgpr(20), limit), (branch, "loop"), ("s_endpgm", 0)])
    (loop,) = loops_of(function)
    assert trip_count(loop, Definitions(function, facts)) == trips


def test_trip_counts_that_the_code_does_not_say() -> None:
    function, facts, _ = lifted([
        ("s_mov_b32", sgpr(20), 0), "loop:", ("s_add_u32", sgpr(20), sgpr(20), 1), ("s_cmp_lt_u32", sgpr(20), sgpr(6)),
        ("s_cbranch_scc1", "loop"), ("s_endpgm", 0)])
    (loop,) = loops_of(function)
    assert trip_count(loop, Definitions(function, facts)) is None


COUNTED: list[Any] = [("s_add_u32", sgpr(20), sgpr(20), 1), ("s_cmp_lt_u32", sgpr(20), 10), ("s_cbranch_scc1", "loop")]
ONCE = ["loop:", ("v_add_u32", vgpr(1), 1, vgpr(1)), ("s_cmp_eq_u32", 0, 1), ("s_cbranch_scc1", "loop")]


@pytest.mark.parametrize(("before", "inside", "trips"), [
    ([("s_mov_b32", sgpr(20), 0)], [], 10),
    ([], ["loop:", *COUNTED], None),                                  # the function begins with the loop
    ([], ONCE, None),
    ([("v_mov_b32", vgpr(1), 0)], ONCE, 1),
    ([("v_mov_b32", vgpr(1), 0)], [], None),                          # what is in s20 comes from outside
    ([("s_cmp_eq_u32", sgpr(6), 0), ("s_cbranch_scc1", "loop"), ("s_mov_b32", sgpr(20), 0)], [], None),  # or may
    ([("s_mov_b32", sgpr(20), 0)], [("s_swappc_b64", sgpr(30, 2), sgpr(8, 2))], None),
    ([("s_mov_b32", sgpr(20), 0)], [("s_mov_b32", sgpr(20), 3), ("s_cbranch_vccz", "on"), "on:"], None),  # early
])
def test_trip_counts_of_whatever_else_comes_in(before: list[Any], inside: list[Any], trips: int | None) -> None:
    """The same counted loop each time."""
    body = inside if inside and inside[0] == "loop:" else ["loop:", *inside, *COUNTED]
    function, facts, _ = lifted([*before, *body, ("s_endpgm", 0)])
    (loop,) = loops_of(function)
    assert trip_count(loop, Definitions(function, facts)) == trips


def test_uniform_registers() -> None:
    function, facts, i = lifted([
        ("v_mov_b32", vgpr(1), sgpr(20)), ("v_lshlrev_b32", vgpr(2), 2, vgpr(0)), ("v_add_u32", vgpr(3), vgpr(1), 5),
        ("s_endpgm", 0)])
    last = i[-1]
    uniform = {reg: facts.uniform_before(last, reg) for reg in (vgpr(1), vgpr(2), vgpr(3), sgpr(4), vgpr(1, 2))}
    assert uniform == {vgpr(1): True, vgpr(2): False, vgpr(3): True, sgpr(4): True, vgpr(1, 2): False}
