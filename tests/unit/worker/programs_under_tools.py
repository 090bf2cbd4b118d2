"""Programs of tests/programs as subjects of studies, and what tools reported of their launches.

In: names of programs and tools. Out: studies; (kernel, report) of each launch.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from luthier_py.session.study.spec import BARE, StudiedProgram, Study, ToolUse

SOURCES = Path(__file__).resolve().parents[2] / "programs"
OTHERWISE = {
    "cooperative", "printing",  # waves wait for each other, or the host: how often they look is chance; test_preload
    "graphs", "graph_nodes", "graph_changes", "graph_exchanges", "graph_sizes",  # launches of a graph; test_preload
}  # fmt: skip
PROGRAMS = sorted({path.stem for path in SOURCES.glob("*.hip")} - OTHERWISE)
SECONDS = 300

Outcomes = dict[tuple[str, str], dict[str, Any]]


def study(
    name: str, program: Path, tools: list[str], options: Mapping[str, str] | None = None, **environment: str
) -> Study:
    uses = tuple(ToolUse(tool, None if tool == BARE else tool, dict(options or {})) for tool in tools)
    one = StudiedProgram(name, (str(program),), {"": ()}, environment)
    return Study(name, program.parent, ("emulator:gfx90a",), 1, 2, SECONDS, (one,), uses, (), ())


def reports(outcomes: Outcomes, name: str, tool: str) -> list[tuple[str, Any]]:
    """(kernel, report) of each launch, in a run that ended as the bare program did."""
    bare, done = outcomes[name, BARE], outcomes[name, tool]
    assert bare["exit_code"] == done["exit_code"] == 0, done["said"]
    assert bare["output_sha256"] == done["output_sha256"]
    verdicts = done["verdicts"]
    assert not any(verdict["refused"] for verdict in verdicts)
    return [(row["kernel"], row["report"]) for verdict in verdicts for row in verdict["reports"]]
