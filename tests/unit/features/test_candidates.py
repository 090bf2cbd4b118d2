"""What of a kernel may be made faster: names, lines, shares and order, of code made by hand."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import pytest
from synthetic import TEXT, build

from luthier_py.features.causal.candidates import CONTROL, Candidate, candidates, select_by_filters
from luthier_py.isa import sgpr, vgpr
from luthier_py.isa.timing.costs import cost_of
from luthier_py.program.analysis import SourceLine, SourceLines
from luthier_py.program.ir import Program, lift

A, B, C = SourceLine("a.hip", 3), SourceLine("b.hip", 9), SourceLine("a.hip", 2)
K, G = TEXT, TEXT + 0x100
"""Addresses of two functions; each instruction has four bytes."""


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    """A loop within a loop, and another function; lines are known of most of it."""
    move = ["v_mov_b32_e32", vgpr(1), vgpr(0)]
    add = ["s_add_u32", sgpr(0), sgpr(0), sgpr(1)]
    made = lift(build({
        "k": [move, "outer:", add, "inner:", move, ["s_cbranch_scc1", "inner"], add, ["s_cbranch_scc0", "outer"],
              ["s_endpgm"]],
        "_Z1gv": [move, ["s_nop", 3], ["s_endpgm"]],
    }, kernels=("k", "_Z1gv"), gpu="gfx1100", wave_size=64))  # fmt: skip
    lines = {K: A, K + 8: None, K + 12: B, K + 16: A, K + 20: C, K + 24: None, G: A, G + 4: None}
    known = SourceLines(tuple(lines), tuple(lines.values()))
    monkeypatch.setitem(vars(sys.modules[candidates.__module__]), "source_lines", lambda obj: known)
    return made


def held(program: Program, counts: Mapping[int, int] | None = None) -> dict[int, int]:
    """Cycles by address."""
    costs = {instr.pc: cost_of(program.obj.target, instr.inst, 64).held
             for function in program.functions for instr in function.instrs}  # fmt: skip
    return costs if counts is None else {pc: counts.get(pc, 0) * cost for pc, cost in costs.items()}


def at(*offsets: int, base: int = K) -> tuple[int, ...]:
    return tuple(base + each for each in offsets)


COUNTS = {K: 1, **dict.fromkeys(at(4, 16, 20), 5), **dict.fromkeys(at(8, 12), 50), K + 24: 1, G: 2, G + 4: 2}
EXPECTED: dict[str, dict[str, tuple[str | None, tuple[int, ...]]]] = {
    "line": {"a.hip:3": ("a.hip:3", (*at(0, 4, 16), G)), "b.hip:9": ("b.hip:9", at(12)),
             "a.hip:2": ("a.hip:2", at(20)), "no line": (None, (*at(8, 24), G + 4))},
    "block": {f"block {K:#x}": ("a.hip:3", at(0)), f"block {K + 4:#x}": ("a.hip:3", at(4)),
              f"block {K + 8:#x}": ("b.hip:9", at(8, 12)), f"block {K + 16:#x}": ("a.hip:3", at(16, 20)),
              f"block {K + 24:#x}": (None, at(24)), f"block {G:#x}": ("a.hip:3", at(0, 4, base=G))},
    "loop": {f"loop {K + 4:#x}": ("a.hip:2", at(4, 8, 12, 16, 20)), f"loop {K + 8:#x}": ("b.hip:9", at(8, 12))},
    "function": {"k": ("a.hip:3", at(0, 4, 8, 12, 16, 20, 24)), "g()": ("a.hip:3", at(0, 4, base=G))},
}  # fmt: skip


@pytest.mark.parametrize("kind", EXPECTED)
def test_candidates_have_the_code_that_was_executed(kind: str, program: Program) -> None:
    """Each with its line and its part of all cycles, the greatest part first, equal ones by name."""
    cycles = held(program, COUNTS)
    found = candidates(program, kind, COUNTS)
    assert {each.name: (each.line, each.pcs) for each in found} == EXPECTED[kind]
    for each in found:
        assert each.share == pytest.approx(sum(cycles[pc] for pc in each.pcs) / sum(cycles.values()))
    assert [each.name for each in found] == sorted(
        EXPECTED[kind], key=lambda name: (-sum(cycles[pc] for pc in EXPECTED[kind][name][1]), name))
    assert len({each.share for each in found}) > 1


def test_code_that_nobody_counted_counts_once(program: Program) -> None:
    cycles = held(program)
    found = {each.name: each for each in candidates(program, "function", None)}
    assert G + 8 in found["g()"].pcs and len(found["k"].pcs) == 7
    assert found["k"].share == pytest.approx(sum(cycles[pc] for pc in found["k"].pcs) / sum(cycles.values()))
    assert candidates(program, "block", {}) == []


def test_equal_candidates_are_sorted_by_name(program: Program) -> None:
    found = candidates(program, "function", {K: 1, G: 1})
    assert [(each.name, each.share) for each in found] == [("g()", 0.5), ("k", 0.5)]


def test_filters_are_candidates_by_their_text(program: Program) -> None:
    texts = f"pc = {K + 8:#x}..{K + 16:#x}", f"pc = {G:#x}", f"pc = {G + 8:#x}", ""
    found = {each.name: each for each in select_by_filters(program, texts, COUNTS)}
    assert found[texts[0]].pcs == at(8, 12, 16) and found[texts[0]].line == "b.hip:9"
    assert (found[texts[1]].pcs, found[texts[1]].line) == ((G,), "a.hip:3")
    assert texts[2] not in found and found[""].share == pytest.approx(1.0), "what is never executed is no candidate"


@pytest.mark.parametrize(("pcs", "text"), [
    (at(0), "pc = {0:#x}..{0:#x}"), (at(0, 4, 12), "pc = {0:#x}..{4:#x} | pc = {12:#x}..{12:#x}"),
    ((*at(20, 24), G), "pc = {20:#x}..{256:#x}"), ((*at(24), G + 8), "pc = {24:#x}..{24:#x} | pc = {264:#x}..{264:#x}"),
])
def test_a_candidate_s_filter_chooses_its_code(pcs: tuple[int, ...], text: str, program: Program) -> None:
    """Neighbours together, and no other instruction."""
    found = Candidate("it", None, pcs, 0.5).filter(program)
    assert found == text.format(*range(K, K + 300))
    assert [each.pcs for each in select_by_filters(program, [found], None)] == [pcs]


def test_the_control_is_no_code(program: Program) -> None:
    assert (CONTROL.pcs, CONTROL.share, CONTROL.line, CONTROL.filter(program)) == ((), 0.0, None, "")
