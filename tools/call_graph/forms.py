"""Call graphs as files of other programs: folded stacks (flamegraph.pl and its like), speedscope, DOT and GraphML.

In: a report of call_graph. Out: the content of a file. Invariant: weights of all stacks add up to the executed
instructions.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from io import BytesIO
from typing import Any

import networkx as nx

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def folded(report: dict[str, Any]) -> bytes:
    """A line for each stack: its functions, outermost first, and its instructions."""
    lines = [f"{';'.join(name.replace(';', ':') for name in row['stack'])} {row['instructions']}\n"
             for row in report["stacks"] if row["instructions"]]
    return "".join(sorted(lines)).encode()


def speedscope(report: dict[str, Any], name: str) -> bytes:
    rows = [row for row in sorted(report["stacks"], key=lambda row: row["stack"]) if row["instructions"]]
    names = list(dict.fromkeys(name for row in rows for name in row["stack"]))
    numbers = {name: number for number, name in enumerate(names)}
    weights = [row["instructions"] for row in rows]
    return json.dumps({
        "$schema": SCHEMA, "exporter": "luthier-py call_graph", "name": name, "activeProfileIndex": 0,
        "shared": {"frames": [{"name": name} for name in names]},
        "profiles": [{
            "type": "sampled", "name": "executed instructions", "unit": "none",
            "startValue": 0, "endValue": sum(weights),
            "samples": [[numbers[name] for name in row["stack"]] for row in rows], "weights": weights,
        }],
    }).encode()


def _graph(report: dict[str, Any]) -> nx.DiGraph[str]:
    """Functions, and the calls between two of them together."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for row in report["functions"]:
        graph.add_node(row["function"], calls=row["calls"], exclusive=row["exclusive"], inclusive=row["inclusive"])
    counts: Counter[tuple[str, str]] = Counter()
    for row in report["calls"]:
        counts[row["caller"], row["callee"]] += row["count"]
    graph.add_edges_from((*edge, {"calls": count}) for edge, count in counts.items())
    return graph


def graphml(report: dict[str, Any]) -> bytes:
    out = BytesIO()
    nx.write_graphml(_graph(report), out)
    return out.getvalue()


def dot(report: dict[str, Any]) -> bytes:
    graph, quoted = _graph(report), partial(json.dumps, ensure_ascii=False)
    labels = {row["function"]: f"{row['function']}\n{row['exclusive']} of {row['inclusive']}"
              for row in report["functions"]}
    nodes = [f"  {quoted(name)} [label={quoted(labels.get(name, name))}];" for name in graph]
    edges = [f"  {quoted(a)} -> {quoted(b)} [label={count}];" for a, b, count in graph.edges(data="calls")]
    return "\n".join(["digraph calls {", "  node [shape=box];", *nodes, *edges, "}\n"]).encode()
