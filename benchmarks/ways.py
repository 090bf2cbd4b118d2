"""How each tool is put under what is measured and judged here: a way is its name and options, `instr_count lines=0`.

In: what this repository registers. Out: ways. Invariant: no registered tool is left out; a new one comes as it is.
"""

from __future__ import annotations

from collections.abc import Iterable

from luthier_py.rewrite.tool.discover import registered_tools

OURS = "luthier_py.tools."  # where the code of our own tools is; others may be installed
OPTIONS = {
    "mem_trace": ("lines=0",),
    "record_reg_vals": ("lines=0", "INSTR_END=64"),
    "script": ('text=on("memory"):count(by=line)',),
}
"""Of tools that do not run without, or print and record more than can be kept. Without blanks."""


def registered() -> list[str]:
    return sorted(tool.name for tool in registered_tools().values() if tool.place.startswith(OURS))


def way_of(tool: str) -> str:
    return " ".join((tool, *OPTIONS.get(tool, ())))


def completed(ways: Iterable[str]) -> tuple[str, ...]:
    """These, and a way of each registered tool that has none among them."""
    known = tuple(ways)
    named = {parsed(way)[0] for way in known}
    return (*known, *(way_of(tool) for tool in registered() if tool not in named))


def parsed(way: str) -> tuple[str, dict[str, str]]:
    """The tool's name, and its options."""
    name, *words = way.split()
    return name, {key: value for key, _, value in (word.partition("=") for word in words)}
