"""Launches of graphs under `instr_count`: one report of each launch of a graph for each kernel, with all its nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Program = Callable[..., Path]
Tooled = Callable[..., Any]
Counted = Callable[..., list[dict[str, Any]]]


@pytest.mark.parametrize("name", ("graphs", "graph_nodes"))
def test_each_launch_of_a_graph(name: str, program: Program, tooled: Tooled, counted: Counted) -> None:
    """The kernels run straight through, so that each node of one executes what each of its launches does."""
    alone = counted(program(name))
    each = {row["kernel"]: row["instructions"] for row in alone}
    assert all(row["instructions"] == each[row["kernel"]] for row in alone)
    rows = tooled(program(name)).verdict["reports"]
    launches: Counter[str] = Counter()
    for row in rows:
        assert row["report"]["instructions"] == row["launches"] * each[row["kernel"]]
        launches[row["kernel"]] += row["launches"]
    assert launches == Counter(row["kernel"] for row in alone)
    assert max(row["launches"] for row in rows) > 1
    if name == "graphs":  # a graph with two nodes, three times; and a launch of its own
        assert [row["launches"] for row in rows] == [2, 2, 2, 1]
    else:
        assert len(each) == 2
