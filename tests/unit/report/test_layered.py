"""Layouts of any graph, and drawings of real kernels: nothing overlaps, every way is there, and large ones end soon."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from itertools import combinations, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luthier_py.binary.loader import load
from luthier_py.program.analysis import edges_of, loops_of
from luthier_py.program.ir import lift
from luthier_py.report.cfg import FEW, LARGE, FlowCounts, cfg_svg, flow_counts
from luthier_py.report.layered import GraphLayout, Size, lay_out_graph
from luthier_py.samples import sample

SVG = "{http://www.w3.org/2000/svg}"


Area = tuple[float, float, float, float]  # left, top, right, bottom


def inside(one: Area, other: Area) -> bool:
    """Whether there is a point inside of both, or of a line inside of the other."""
    wide = max(one[0], other[0]) < min(one[2], other[2]) or one[0] == one[2] and other[0] < one[0] < other[2]
    return wide and (max(one[1], other[1]) < min(one[3], other[3]) or one[1] == one[3] and other[1] < one[1] < other[3])


def check(sizes: list[Size], edges: list[tuple[int, int]], found: GraphLayout) -> None:
    boxes = [(x, y, x + size.width, y + size.height) for (x, y), size in zip(found.corners, sizes, strict=True)]
    for left, top, right, bottom in boxes:
        assert left >= 0 <= top and right <= found.size.width and bottom <= found.size.height
    for number, box in enumerate(boxes):
        assert not any(inside(box, other) for other in boxes[:number])
    ends: dict[int, set[int]] = {}
    for number, ((source, target), line) in enumerate(zip(edges, found.lines, strict=True)):
        assert boxes[source][0] <= line[0][0] <= boxes[source][2] and line[0][1] == boxes[source][3]
        if number not in found.joined:
            assert boxes[target][0] <= line[-1][0] <= boxes[target][2] and line[-1][1] == boxes[target][1]
            ends.setdefault(target, set()).add(number)
        for (x, y), (to_x, to_y) in pairwise(line):
            assert x == to_x or y == to_y
            piece = min(x, to_x), min(y, to_y), max(x, to_x), max(y, to_y)
            assert not any(inside(piece, box) for box in boxes)
        if number not in found.back:
            assert all(y <= to_y for (_, y), (_, to_y) in pairwise(line))
    assert {target for _, target in edges} == ends.keys()  # others join these


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 14).flatmap(lambda n: st.tuples(
    st.lists(st.tuples(st.integers(20, 200), st.integers(10, 80)), min_size=n, max_size=n),
    st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=3 * n))))
def test_any_graph(drawn: Any) -> None:
    sizes, edges = [Size(*map(float, size)) for size in drawn[0]], drawn[1]
    check(sizes, edges, lay_out_graph(sizes, edges))


def test_edges_go_back_where_a_loop_is_and_nowhere_else() -> None:
    for name in ("matmul", "bitonic_sort", "mandelbrot", "nbody", "device_call"):
        for function in lift(load(sample(name).path.read_bytes())).functions:
            numbers = {block: number for number, block in enumerate(function.blocks)}
            edges = edges_of(function)
            found = lay_out_graph([Size(50.0, 20.0)] * len(numbers),
                                  [(numbers[e.source], numbers[e.target]) for e in edges],
                                  [numbers[function.block(address)] for address in function.entries])
            assert {edges[number] for number in found.back} == {e for loop in loops_of(function) for e in loop.backs}


@pytest.mark.parametrize("edges", [[(0, 3), (1, 2)], [(0, 4), (1, 3), (2, 4)]])
def test_no_edges_cross_that_need_not(edges: list[tuple[int, int]]) -> None:
    """Of the first the order of the lower boxes decides, of the second that of the upper ones."""
    corners = lay_out_graph([Size(50.0, 20.0)] * (1 + max(map(max, edges))), edges).corners
    for (one, below), (other, below_other) in combinations(edges, 2):
        assert (corners[one][0] - corners[other][0]) * (corners[below][0] - corners[below_other][0]) >= 0


def test_a_box_is_in_the_middle_of_those_that_follow_it() -> None:
    found = lay_out_graph([Size(50.0, 20.0)] * 4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    top, left, right, bottom = (x for x, _ in found.corners)
    assert left + 50 < right and top == bottom == pytest.approx((left + right) / 2)


def test_a_thousand_blocks_take_no_more_bends_than_targets_and_layers() -> None:
    """All of them branch to the last one: one line goes there, which the others meet."""
    edges = [(number, number + 1) for number in range(999)] + [(number, 999) for number in range(998)]
    found = lay_out_graph([Size(50.0, 20.0)] * 1000, edges)
    assert sum(map(len, found.lines)) < 10_000 and len(found.joined) == 997 and not found.back


def test_each_block_and_each_way_is_drawn_once_with_its_count() -> None:
    (kernel,) = lift(load(sample("bitonic_sort").path.read_bytes())).kernels
    function, edges = kernel.function, edges_of(kernel.function)
    counts = FlowCounts({block.address: 1000 + at for at, block in enumerate(function.blocks)},
                        {(e.source.address, e.target.address): 2000 + at for at, e in enumerate(edges)})
    root = ElementTree.fromstring(cfg_svg([function], counts))
    texts = Counter(text.text for text in root.iter(f"{SVG}text"))
    for at, block in enumerate(function.blocks):
        assert texts[f"1,{at:03} times"] == 1 and sum(f"0x{block.address:x}" in str(t) for t in texts) >= 1
    assert all(texts[f"2,{at:03}"] == 1 for at in range(len(edges)))
    heads = [str(text) for text in texts if "loop header" in str(text)]
    assert len(heads) == len(loops_of(function)) == 2 and any("depth 2" in head for head in heads)
    hottest = max(function.blocks, key=lambda block: counts.blocks[block.address] * len(block.instrs))
    heats = {next(group.iter(f"{SVG}title")).text: float(rect.attrib["fill-opacity"]) for group in root.iter(f"{SVG}g")
             for rect in group.findall(f"{SVG}rect") if "fill-opacity" in rect.attrib}
    warmest = max(heats, key=lambda name: heats[name])
    assert heats[warmest] == 0.6 and f"0x{hottest.address:x}" in str(warmest)


def test_counts_of_conditional_branches_are_of_the_blocks_that_they_end() -> None:
    (kernel,) = lift(load(sample("bitonic_sort").path.read_bytes())).kernels
    edge = next(edge for edge in edges_of(kernel.function) if edge.splits and edge.taken)
    row = {"branch": edge.instr.pc, "target": edge.target.address, "count": 3}
    reports = [{"edges": [row, {**row, "branch": 1}]}, {"edges": [row], "blocks": 7, "ways": "none"}, None]
    assert flow_counts(reports, [kernel.function]) == FlowCounts(
        {}, {(edge.source.address, edge.target.address): 6}) and not flow_counts([{"blocks": [1]}], [])


@pytest.mark.parametrize("name", ["matmul"])
def test_long_blocks_say_how_much_of_them_is_left_out(name: str) -> None:
    (kernel,) = lift(load(sample(name).path.read_bytes())).kernels
    svg = cfg_svg([kernel.function])
    left = [int(number) for number in re.findall(r">\.\.\. (\d+) more<", svg)]
    lines = svg.count("<text") - 1 - len(kernel.function.blocks) - len(left)
    assert left and lines + sum(left) == len(list(kernel.function.instrs)) and LARGE > len(kernel.function.blocks) > FEW
