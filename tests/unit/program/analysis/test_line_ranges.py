"""Ranges of lines: a diamond by hand, random graphs beside a search along all ways, and compiled samples."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping

import pytest
from compiled_samples import CompiledSamples
from every_case import check_all
from synthetic import build
from test_loops import END, random_rows

from luthier_py.binary.loader import load
from luthier_py.isa import sgpr
from luthier_py.program.analysis import Frames, LineRange, SourceLine, SourceLines, line_ranges, source_frames
from luthier_py.program.ir import Function, Instr, lift


def with_lines(function: Function, lines: Iterable[str | int]) -> Frames:
    """Line tables that say so of the instructions: lines of k.hip, and of other files whole."""
    known = tuple(SourceLine("k.hip", each) if isinstance(each, int) and each else
                  SourceLine(*each.split(":")) if isinstance(each, str) else None for each in lines)
    return Frames(SourceLines(tuple(instr.pc for instr in function.instrs), known), (), ())


def test_a_diamond_by_hand() -> None:
    rows = [("s_mov_b32", sgpr(0), 1), ("s_nop", 0), ("s_cbranch_scc1", "right"),
            ("s_nop", 1), ("s_nop", 2), ("s_branch", "join"),
            "right:", ("s_nop", 3), ("s_nop", 4),
            "join:", ("s_nop", 5), ("s_nop", 6), END]
    function = lift(build({"k": rows})).kernel("k").function
    lines = [0, 20, 0,     # nothing is known before the first line
             0, 30, 0,     # the left way: 20 comes, 30 leaves, at its end 30 comes and the join's 12 leaves
             0, "h.h:7",   # the right way has no line of this file
             0, 12, 0]     # both ways come to the join: the least of 30 and 20; nothing follows the end
    found = line_ranges(function, with_lines(function, lines))
    assert [(each.first, each.last) for each in found.values()] == [
        (20, 20), (20, 20), (20, 30), (20, 30), (30, 30), (12, 30), (12, 20), (12, 20), (12, 20), (12, 12), (12, 12)]
    assert {each.file for each in found.values()} == {"k.hip"}
    assert line_ranges(function, Frames(SourceLines((), ()), (), ())) == {}


def searched(function: Function, own: Mapping[int, int]) -> dict[int, LineRange]:
    """From each instruction back and forth through such as have no line, to the first ones that have."""
    order = list(function.instrs)
    at = {instr.pc: instr for instr in order}
    after: dict[int, list[int]] = {instr.pc: [] for instr in order}
    before: dict[int, list[int]] = {instr.pc: [] for instr in order}
    for block in function.blocks:
        ways = [*zip(block.instrs, block.instrs[1:], strict=False)]
        ways += [(block.instrs[-1], at[target]) for target in block.successors]
        for source, target in ways:
            after[source.pc].append(target.pc)
            before[target.pc].append(source.pc)

    def lines(instr: Instr, ways: Mapping[int, list[int]]) -> set[int]:
        seen, work, found = set(), [*ways[instr.pc]], set()
        while work:
            pc = work.pop()
            if pc in own:
                found.add(own[pc])
            elif pc not in seen:
                seen.add(pc)
                work += ways[pc]
        return found

    ranges = {}
    for instr in order:
        ends = [*({own[instr.pc]} if instr.pc in own else
                  {min(lines(instr, before), default=0), max(lines(instr, after), default=0)} - {0})]
        if ends:
            ranges[instr.pc] = LineRange("k.hip", min(ends), max(ends))
    return ranges


def check_random_graph(seed: int) -> None:
    rng = random.Random(seed)
    function = lift(build({"k": random_rows(rng)})).kernel("k").function
    pcs = [instr.pc for instr in function.instrs]
    own = {pc: rng.randrange(1, 99) for pc in pcs if rng.random() < 0.3}
    found = line_ranges(function, with_lines(function, [own.get(pc, 0) for pc in pcs]))
    assert found == searched(function, own)


def test_random_graphs() -> None:
    check_all(check_random_graph, range(20))


@pytest.mark.parametrize("target", ["gfx90a", "gfx1201"])
def test_compiled_samples(
    target: str, require_tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Calls that were inlined are lines of the kernel's; what has no line stands between some."""
    compiled = CompiledSamples(require_tool("clang-22"), tmp_path_factory.mktemp("lines"))
    for name in ("matmul", "bitonic_sort"):
        obj = load(compiled.code(name, target, 32 if target == "gfx1201" else 64, 3, "-g"))
        frames, [function] = source_frames(obj), lift(obj).functions
        found, without = line_ranges(function, frames), 0
        own = {}
        for instr in function.instrs:
            line = frames.at(instr.pc)[-1].line
            assert line is None or line.file.endswith(f"{name}.hip")
            own |= {instr.pc: line.line} if line else {}
            without += line is None
        wanted = searched(function, own)
        assert {pc: (each.first, each.last) for pc, each in found.items()} == {
            pc: (each.first, each.last) for pc, each in wanted.items()}
        assert without > 4 and len(found) == len([*function.instrs])
