"""The control flow that was taken, for Graphviz.

In: a report of hot_blocks. Out: the content of a file. Invariant: what comes into a block, from blocks and from
outside, are its executions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any


def dot(report: dict[str, Any], shown: Callable[[str], str]) -> bytes:
    """A cluster for each function; blocks that ran, and how often control went from one to another. ``shown``: names
    of functions for people."""
    functions: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in report["blocks"]:
        if row["executions"]:
            functions[row["function"]].append(row)
    lines = ["digraph blocks {", "  node [shape=box];"]
    for number, (name, rows) in enumerate(sorted(functions.items())):
        lines += [f"  subgraph cluster{number} {{", f'    label="{shown(name)}";']
        for row in sorted(rows, key=lambda row: int(row["pc"])):
            share = row["instructions"] / report["instructions"]
            line = next(iter(row["lines"]), "")
            label = f"{row['pc']:#x} {line}\\n{row['executions']} x {row['length']}, {share:.1%}"
            lines.append(f'    b{row["pc"]} [label="{label}"];')
        lines.append("  }")
    lines += [f"  b{way['from']} -> b{way['to']} [label={way['executions']}];"
              for way in report["ways"] if way["executions"]]
    return "\n".join([*lines, "}\n"]).encode()
