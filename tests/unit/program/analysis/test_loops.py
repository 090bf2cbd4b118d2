"""Edges, dominators and natural loops, on random graphs beside what removing a block from the graph says."""

from __future__ import annotations

import random

from every_case import check_all
from synthetic import build

from luthier_py.isa import sgpr
from luthier_py.program.analysis import dominators, edges_of, innermost_loops, loops_of
from luthier_py.program.ir import lift

END = ("s_endpgm",)


def function(rows):
    return lift(build({"k": rows})).kernel("k").function


def random_rows(rng):
    """Blocks that branch anywhere, and fall through or do not."""
    count = rng.randrange(2, 12)
    rows = [("s_mov_b32", sgpr(0), 0)]
    for number in range(count):
        rows += [f"b{number}:", ("s_nop", number)]
        kind = rng.randrange(4)
        if kind < 2:
            rows.append(("s_cbranch_scc1", f"b{rng.randrange(count)}"))
        elif kind == 2:
            rows.append(("s_branch", f"b{rng.randrange(count)}"))
    return [*rows, END]


def reached(blocks, entry, without=None):
    seen, work = set(), [entry] if entry != without else []
    while work:
        address = work.pop()
        if address not in seen:
            seen.add(address)
            work += [to for to in blocks[address].successors if to != without]
    return seen


def check_dominators(seed):
    f = function(random_rows(random.Random(seed)))
    blocks = {block.address: block for block in f.blocks}
    there, found = reached(blocks, f.address), dominators(f)
    assert {block.address for block in found} == there
    for block in found:
        chain, at = set(), block
        while at is not None:
            chain.add(at.address)
            at = found[at]
        assert chain == {a for a in there if a == block.address or block.address not in reached(blocks, f.address, a)}


def test_a_block_dominates_what_is_not_reached_without_it():
    check_all(check_dominators, range(60))


def check_loops(seed):
    f = function(random_rows(random.Random(seed)))
    blocks = {block.address: block for block in f.blocks}
    edges, loops = edges_of(f), loops_of(f)
    there = reached(blocks, f.address)
    around = {(e.source.address, e.target.address) for e in edges if e.source.address in there
              and e.source.address not in reached(blocks, f.address, e.target.address)}
    assert {(e.source.address, e.target.address) for loop in loops for e in loop.backs} == around
    for loop in loops:
        inside = {block.address for block in loop.blocks}
        wanted = {a for a in there if any(
            a == e.source.address or e.source.address in reached(blocks, a, loop.header.address) for e in loop.backs)}
        assert inside == wanted | {loop.header.address}
        come = [e for e in edges if e.source not in loop.blocks and e.target in loop.blocks]
        come = [e for e in come if e.source.address in there]
        assert [e for e in loop.entries if e.source.address in there] == come
        assert all(e.target is loop.header for e in come)
        assert set(loop.exits) == {e for e in edges if e.source in loop.blocks and e.target not in loop.blocks}
        assert loop.begins == (loop.header.address == f.address)
        assert loop.depth == sum(loop.header in other.blocks for other in loops)


def test_control_comes_into_a_loop_through_its_header_and_goes_round_by_its_back_edges():
    check_all(check_loops, range(60))


def test_both_sides_of_a_branch_to_what_comes_next_are_edges():
    f = function([("s_cbranch_scc1", "on"), "on:", END])
    assert [(e.source.address, e.target.address, e.taken) for e in edges_of(f)] == [
        (f.address, f.address + 4, True), (f.address, f.address + 4, False)]


def test_the_innermost_loop_of_each_block():
    rng = random.Random(7)
    for _ in range(40):
        found = function(random_rows(rng))
        loops, innermost = loops_of(found), innermost_loops(found)
        for block in found.blocks:
            around = [loop.header for loop in loops if block in loop.blocks]
            own = innermost.get(block)
            assert (own is None) == (not around)
            assert own is None or own.depth == max(loop.depth for loop in loops if block in loop.blocks)
