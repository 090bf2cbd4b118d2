"""Requested outputs of a tool under a program that did not come.

In: the tool, and the verdicts of the program's processes. Out: a line for each thing that is missing. Invariant: where
there is none, every selected launch was counted and all that was counted is where the options direct it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from luthier_py.rewrite.tool import Tool

Told = Mapping[str, Any]


def describe_undelivered(tool: Tool, verdicts: Sequence[Told]) -> tuple[str, ...]:
    """Lines in the order of the processes; a program that runs many alike has each line once."""
    lines = [line for facts in verdicts for line in _of_process(tool, facts)]
    return tuple(dict.fromkeys([*lines, *_overwritten(tool, verdicts)]))


def _of_process(tool: Tool, facts: Told) -> Iterator[str]:
    if facts["failed"]:
        yield f"tool {tool.name}: not everything was delivered: {', '.join(facts['failed'])} failed"
    if not facts["ended"]:
        yield f"tool {tool.name}: its worker ended before the program; what it had counted is lost"
        return
    if facts["refused"]:
        names = ", ".join(tool.selection.shown(row["kernel"]) for row in facts["refused"])
        yield f"tool {tool.name}: kernels ran as they are: {names}"
    if facts["unseen"]:
        yield f"tool {tool.name}: {facts['unseen']} launches went past it, as the device counts them"
    if facts["lost_launches"]:
        yield f"tool {tool.name}: {facts['lost_launches']} of {facts['selected']} selected launches left no count"


def _overwritten(tool: Tool, verdicts: Sequence[Told]) -> Iterator[str]:
    """Files that each process writes as a whole."""
    writers = sum(facts["observed"] for facts in verdicts)
    chosen = tool.selection
    output = None if chosen.output is None or chosen.output.suffix == ".txt" else chosen.output
    for name, path in (("--output", output), ("--report", chosen.report)):
        if path is not None and writers > 1 and "%p" not in str(path):
            yield f"{name} {path}: {writers} processes wrote it one after the other; write %p for the process's number"
