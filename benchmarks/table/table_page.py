"""The one table, and what is not in order.

In: rows of runs. Out: Markdown. Invariant: what was not compiled, was refused or took too long counts as nothing else.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from cells import BARE, LATE, LEVELS, NOT_COMPILED, PROGRAM, REFUSED, SAMPLE, TARGETS, Row, every_cell

TEXT = """# Every target, every level, every tool

`make table` wrote this page: the samples of tests/data and the programs of tests/programs, compiled by clang 22 for
each target, wave size and level of optimisation, run on the emulator. A *cell* is one sample or program, compiled in
one way; there are {cells:,}, and {ways} ways to put a tool under each. {bare:,} cells were run (samples
{samples:,}, programs {programs:,}), and in these {tooled:,} of {pairs:,} runs under tools, chosen by lot. Of all
{all:,} runs {present:,} were made with the sources as they are, the others with earlier ones.

*right*: of the cells that ran, those where a sample's results are NumPy's, or all of a program's own checks pass.
*tools*: of the runs under a tool, those where the application's memory (of a program: its output and its checks) is
the same bit by bit, and the tool's counts, where the emulator has such, are its own of the run without the tool. What
could not be compiled (*n*), was refused by name (*r*) or took too long (*l*) counts as nothing else; below is what is
not in order, and why.

Tools that write something down for each execution see part of the instructions where these are executed often. gfx803
at -O0 is code object version 4, all else 6: without inlining, clang 22 has gfx8's functions take the aperture of
private memory from hidden arguments whose address they do not know (0), but from the queue in version 4.

{table}

By tool, runs in which it had nothing to do (no LDS, no loop) apart:

{tools}

{wrong}"""
SHORT = {NOT_COMPILED: "n", REFUSED: "r", LATE: "l"}


def page(rows: Sequence[Row], tools: Sequence[str], version: str) -> str:
    bare = [row for row in rows if row.tool == BARE]
    every = every_cell(list(dict.fromkeys(target for target, _ in TARGETS)), LEVELS, 0)
    header = ["target", *(f"O{level}: {what}" for level in LEVELS for what in ("right", "tools"))]
    lines = [header, ["---", *["---:"] * (len(header) - 1)]]
    for where in TARGETS:
        own = [[row for row in rows if (row.cell.where, row.cell.level) == (where, level)] for level in LEVELS]
        cells = (share(part) for some in own for part in (
            [row for row in some if row.tool == BARE], [row for row in some if row.tool != BARE]))
        lines.append([f"{where[0]} wave{where[1]}", *cells])
    return TEXT.format(
        cells=len(every), ways=len(tools), bare=len(bare),
        samples=sum(row.cell.kind == SAMPLE for row in bare), programs=sum(row.cell.kind == PROGRAM for row in bare),
        tooled=len(rows) - len(bare), pairs=len(every) * len(tools), all=len(rows),
        present=sum(row.version == version for row in rows), table=marked(lines), tools=by_tool(rows, tools),
        wrong=causes(rows))


def share(rows: Sequence[Row]) -> str:
    """Those in order, of those that ran; and the others."""
    others = {word: sum(row.sort == name for row in rows) for name, word in SHORT.items()}
    ran = [row for row in rows if row.sort not in SHORT]
    text = f"{sum(not row.outcome for row in ran)}/{len(ran)}" if ran else ""
    return " ".join([text, *(f"{count}{word}" for word, count in others.items() if count)]).strip()


def by_tool(rows: Sequence[Row], tools: Sequence[str]) -> str:
    lines = [["tool", "right", "had nothing to do", "not compiled, refused, late"], ["---", "---:", "---:", "---:"]]
    for tool in tools:
        own = [row for row in rows if row.tool == tool]
        did = [row for row in own if row.observed and row.sort not in SHORT]
        lines.append([f"`{tool}`", f"{sum(not row.outcome for row in did)}/{len(did)}",
                      str(sum(not row.observed for row in own)), str(sum(row.sort in SHORT for row in own))])
    return marked(lines)


def causes(rows: Iterable[Row]) -> str:
    """What is not in order, by its cause."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.outcome:
            found[cause(row.outcome)].append(row)
    if not found:
        return "All is in order."
    lines = [["not so, and why", "runs", "targets", "subjects", "for example"], ["---", "---:", "---", "---", "---"]]
    for why, own in sorted(found.items(), key=lambda item: (item[1][0].sort in SHORT, -len(item[1]))):
        targets = sorted({row.cell.target for row in own}, key=lambda name: (len(name), name))
        subjects = sorted({row.cell.name for row in own})
        lines.append([why, str(len(own)), few(targets), few(subjects), f"{own[0].cell}, {own[0].tool or 'bare'}"])
    return marked(lines)


def few(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) < 7 else f"{len(names)} of them"


def cause(outcome: str) -> str:
    """The same words for the same cause: without numbers, registers, paths, and what is quoted."""
    short = re.sub(r"`[^`]*`", "`...`", " ".join(outcome.split())).replace("|", " ")
    short = re.sub(r"/\S*/", "", short)
    short = re.sub(r"\b[sva]\d+\b|\b[sva]\[\d+:\d+\]|0x[0-9a-f]+", "X", short)
    return re.sub(r"\b\d+\b", "N", short)[:240]


def marked(lines: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
