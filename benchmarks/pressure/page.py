"""Tables of a run: by tool and corpus, by policy, by cause of refusal.

In: rows of `run`. Out: Markdown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from run import Row

TEXT = """# Kernels under pressure

`make pressure ARGS="--kernels {kernels} --seed {seed} --seconds {seconds:.0f} --page"` wrote this page.

Every tool instruments every kernel, and each copy is proved to leave the application's state alone. *run*: original and
copy ran on the emulator, the application's buffers were the same bit by bit, and the counts were the emulator's own (of
tools whose counts the emulator has, too: `truth.py`).
*refused*: the error says why; *late*: it took more than {seconds:.0f} s of a processor. *code* is how many times as
long the kernels with sites became, *VGPRs* and *waves* in how many of them there are more registers or fewer waves
than before, *private* the most bytes that were added to a lane's private memory.

Crowded kernels are random ones in which each SGPR, each of 256 VGPRs and (in half of them) each of 256 AGPRs holds
something from the beginning to the end, but for 0, 1 or 2 of each file or of one. Hand-written kernels are those of
PyPI's amd-aiter, libraries those of PyPI's cyllama-rocm and bitsandbytes and of Debian's rocSPARSE and rocRAND, chosen
by the seed.

{done:,} of {all:,} pairs of a kernel and a tool are in these tables, in an order that the seed makes; `--further` goes
on, and `--again` repeats what was refused.

{tables}
"""


def tables(rows: Sequence[Row]) -> str:
    corpora = sorted({row.corpus for row in rows})
    return "\n\n".join(["## By tool", _by_tool(rows, corpora), "## By target", _by_target(rows),
                        "## How calls got their registers", _policies(rows, corpora), "## Refused", _causes(rows)])


HEAD = "kernels | with sites | run | refused | late | wrong | sites | code | VGPRs | waves | private"


def _by_tool(rows: Sequence[Row], corpora: Iterable[str]) -> str:
    lines = [f"| corpus | tool | {HEAD} |", "|---|---|" + "--:|" * 11]
    for corpus in corpora:
        own = [row for row in rows if row.corpus == corpus]
        lines += [f"| {corpus} | {tool} | {_cells([row for row in own if row.tool == tool])} |"
                  for tool in dict.fromkeys(sorted(row.tool for row in own))]
        lines.append(f"| **{corpus}** | all | {_cells(own)} |")
    return "\n".join([*lines, f"| **all** | all | {_cells(rows)} |"])


def _by_target(rows: Sequence[Row]) -> str:
    lines = [f"| target | {HEAD} |", "|---|" + "--:|" * 11]
    for target in sorted({row.target for row in rows}, key=lambda name: (len(name), name)):
        lines.append(f"| {target} | {_cells([row for row in rows if row.target == target])} |")
    return "\n".join(lines)


def kind(row: Row) -> str:
    """``late``, ``wrong``, ``refused``, or nothing."""
    if not row.outcome:
        return ""
    return "late" if row.outcome == "took too long" else \
        "wrong" if row.outcome.startswith(("wrong", "crash")) else "refused"


def _cells(rows: Sequence[Row]) -> str:
    kinds, served = Counter(map(kind, rows)), [row for row in rows if row.sites]
    before, after = (sum(row.code_bytes[end] for row in served) for end in range(2))
    cells = (len({(row.corpus, row.target, row.name) for row in rows}), len(served), sum(row.ran for row in rows),
             kinds["refused"], kinds["late"], kinds["wrong"], sum(row.sites for row in served),
             f"{after / before:.2f}" if before else "", sum(row.vgprs[1] > row.vgprs[0] for row in served),
             sum(row.waves[1] < row.waves[0] for row in served), max((row.private_bytes for row in rows), default=0))
    return " | ".join(f"{cell:,}" if isinstance(cell, int) else cell for cell in cells)


def _policies(rows: Sequence[Row], corpora: Sequence[str]) -> str:
    counts = {corpus: Counter[str]() for corpus in corpora}
    for row in rows:
        counts[row.corpus].update(row.schemes)
    names = [name for name, _ in sum(counts.values(), Counter[str]()).most_common()]
    lines = [f"| calls | {' | '.join(corpora)} |", "|---|" + "--:|" * len(corpora)]
    lines += [f"| {name} | {' | '.join(f'{counts[corpus][name]:,}' for corpus in corpora)} |" for name in names]
    return "\n".join(lines)


def cause(outcome: str) -> str:
    """The same words for the same cause: without numbers, registers and what is quoted."""
    short = re.sub(r"`[^`]*`", "`...`", outcome)
    short = re.sub(r"\b[sva]\d+\b|\b[sva]\[\d+:\d+\]|0x[0-9a-f]+", "X", short)
    return re.sub(r"\b\d+\b", "N", short)[:160]


def _causes(rows: Iterable[Row]) -> str:
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row.outcome:
            found.setdefault(cause(row.outcome), []).append(row)
    if not found:
        return "None."
    lines = ["| why | how often | kernels | for example |", "|---|--:|--:|---|"]
    for why, own in sorted(found.items(), key=lambda item: -len(item[1])):
        one = own[0]
        lines.append(f"| {why.replace('|', ' ')} | {len(own)} | {len({(r.target, r.name) for r in own})} | "
                     f"{one.target}, {one.name}, {one.tool} |")
    return "\n".join(lines)
