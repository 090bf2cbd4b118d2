"""What became of injected faults: shares with their intervals, by kernel, class of instruction and source line.

In: a row for each fault, from `faults/campaign`. Out: facts, tables, files. Invariant: shares are of faults that were
hit and judged; the others are counted beside them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from luthier_py.base.errors import how_many
from luthier_py.base.names import demangle
from luthier_py.report.columns import align_columns, comma_separated
from luthier_py.report.plain import Json
from luthier_py.rewrite.tool import encoded

EFFECTS = "masked", "sdc", "crash", "hang"
"""That make shares."""
FAULT_HEADER = "faults", *EFFECTS
PARTS = {"model": "model", "kernel": "kernel", "group": "class", "instruction": "instruction", "line": "line"}
"""Columns that faults are summed up by, and how the tables call them."""
NO_LINE = "no line"
Z95 = 1.959963984540054
"""Of the normal distribution: 95 % lie within so many standard deviations."""


def wilson(count: int, total: int) -> tuple[float, float]:
    """The 95 % score interval of a share (Wilson, 1927); ``total`` is at least 1."""
    share, square = count / total, Z95 * Z95 / total
    middle = (share + square / 2) / (1 + square)
    half = math.sqrt(share * (1 - share) * square + square * square / 4) / (1 + square)
    return max(0.0, middle - half), min(1.0, middle + half)


def fault_summary(rows: Sequence[Json], seed: int) -> Json:
    """JSON-ready facts."""
    return {
        "seed": seed, "faults": len(rows), "all": _shares("all", rows),
        "host": {effect: sum(row["effect"] == effect and row["side"] == "host" for row in rows)
                 for effect in ("crash", "hang")},
        "by": {part: [_shares(name, some) for name, some in _parts(rows, part)] for part in PARTS},
    }


def _parts(rows: Iterable[Json], part: str) -> Iterator[tuple[str, list[Json]]]:
    """Those with most faults first. Where some code has lines, what has none is a row, too: all of what was hit."""
    found: dict[str, list[Json]] = {}
    rows = list(rows)
    lines = part == "line" and any(row["line"] is not None for row in rows)
    for row in rows:
        if row[part] is not None:
            name = f"0x{row['pc']:x} {row[part]}" if part == "instruction" else str(row[part])
            found.setdefault(name, []).append(row)
        elif lines and row["pc"] is not None:
            found.setdefault(NO_LINE, []).append(row)
    return iter(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))


def _shares(name: str, rows: Sequence[Json]) -> Json:
    counts = Counter(row["effect"] for row in rows)
    judged = sum(counts[effect] for effect in EFFECTS)
    return {
        "name": name, "judged": judged, "others": {key: counts[key] for key in sorted(counts.keys() - {*EFFECTS})},
        **{effect: {"count": counts[effect], "share": counts[effect] / judged if judged else None,
                    "interval": list(wilson(counts[effect], judged)) if judged else None} for effect in EFFECTS},
    }


def fault_text(facts: Json) -> str:
    """All tables."""
    whole = facts["all"]
    faults = how_many(facts["faults"], "fault")
    head = f"{faults}, seed {facts['seed']}; shares in percent, with 95 % intervals (Wilson)"
    if whole["others"]:
        head += "; not in them: " + ", ".join(f"{count} {effect}" for effect, count in whole["others"].items())
    if any(facts["host"].values()):
        head += "; on the host, the others on the device: " + ", ".join(
            f"{count} {effect}" for effect, count in facts["host"].items())
    parts = [head, _table("", [whole])]
    parts += [_table(PARTS[part], rows) for part, rows in facts["by"].items() if len(rows) > (part == "model")]
    return "\n\n".join(parts)


def _table(title: str, rows: Iterable[Json]) -> str:
    return align_columns((*FAULT_HEADER, title), ((row["judged"], *(_cell(row[each]) for each in EFFECTS),
                                             demangle(row["name"])) for row in rows), left=1)


def fault_cells(facts: Json) -> Iterator[tuple[str, ...]]:
    """All of it in one table: a name, and what FAULT_HEADER has."""
    for part, rows in {"": [facts["all"]], **facts["by"]}.items():
        for row in rows:
            name = f"{PARTS[part]} {demangle(row['name'])}" if part else "all"
            yield name, str(row["judged"]), *(_cell(row[each]) for each in EFFECTS)


def _cell(share: Json) -> str:
    if share["interval"] is None:
        return "-"
    low, high = (100 * each for each in share["interval"])
    return f"{share['count']} {100 * share['share']:5.1f} ({low:4.1f}-{high:5.1f})"


def fault_files(rows: Sequence[Json], facts: Json) -> dict[str, bytes]:
    """Files by name: each fault, and the tables."""
    return {"faults.csv": encoded(comma_separated(rows)), "summary.txt": encoded(f"{fault_text(facts)}\n")}
