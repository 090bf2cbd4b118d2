"""What a study found: times, differences between repeats, and the numbers of its figures and tables.

In: cells with their outcomes. Out: plain data for `report.study`. Invariant: counts come from one run of each kind, and
whether all repeats agree with it is part of the result.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from luthier_py.base.names import demangle
from luthier_py.features.faults.report import fault_summary
from luthier_py.features.study.campaigns import fault_rows
from luthier_py.features.study.cells import Cell
from luthier_py.features.study.runs import RunRecord, RunStatus
from luthier_py.features.study.spec import BARE, Figure, ItemTable, Quantity, Study
from luthier_py.features.study.store import reports_of
from luthier_py.report.plain import Json, leaves, numbers_like

CellRun = tuple[Cell, RunRecord]
GROUP = ("program", "arguments", "tool", "device", "stack")
ALIKE = ("program", "arguments", "device", "stack")  # whose times are compared
SHOWN = 3  # differences of a group that are reported


def summarise(study: Study, runs: Sequence[CellRun]) -> Json:
    """JSON-ready."""
    groups: dict[tuple[str, ...], list[CellRun]] = defaultdict(list)
    for cell, outcome in runs:
        groups[cell.group].append((cell, outcome))
    rows = [_group(key, members) for key, members in groups.items()]
    _add_ratios(rows)
    good = [run for members in groups.values() if (run := _first_good(members)) is not None]
    return {
        "title": study.title,
        "runs": len(runs),
        "statuses": dict(Counter(outcome["status"] for _, outcome in runs)),
        "observed": any(outcome["status"] == RunStatus.OK.value and cell.tool != BARE for cell, outcome in runs)
        or all(cell.tool == BARE for cell, _ in runs),
        "groups": rows,
        "differences": [f"{_name(row)}: {text}" for row in rows for text in row["differences"]],
        "failures": [f"{_name(row)}: {text}" for row in rows for text in row["failures"]],
        "campaigns": [_campaign(key, members) for key, members in groups.items() if members[0][0].run["faults"]],
        "figures": [_figure(figure, good) for figure in study.figures],
        "tables": [_items(table, good) for table in study.tables],
    }


def _first_good(members: Sequence[CellRun]) -> CellRun | None:
    return next((run for run in members if run[1]["status"] == RunStatus.OK.value), None)


def _name(row: Json) -> str:
    return " ".join(row[column] for column in GROUP if row[column])


def _group(key: tuple[str, ...], members: Sequence[CellRun]) -> Json:
    outcomes = [outcome for _, outcome in members]
    ended = [one for one in outcomes if one["status"] in (RunStatus.OK.value, RunStatus.NOTHING.value)]
    seconds = sorted(one["seconds"] for one in ended)
    return {
        **dict(zip(GROUP, key, strict=True)),
        "runs": len(outcomes),
        "parts": bool(members[0][0].run["faults"]),
        "statuses": dict(Counter(one["status"] for one in outcomes)),
        "launches": sum(row["launches"] for row in reports_of(ended[0])) if ended else 0,
        "median_seconds": median(seconds) if seconds else None,
        "least_seconds": seconds[0] if seconds else None,
        "most_seconds": seconds[-1] if seconds else None,
        "ratio": None,
        "differences": [] if members[0][0].run["faults"] else list(_differences(ended)),
        "failures": _failures(outcomes),
    }


def _campaign(key: tuple[str, ...], members: Sequence[CellRun]) -> Json:
    """What became of the faults of all parts."""
    rows = fault_rows([row for _, outcome in members for row in reports_of(outcome)])
    return {"of": " ".join(filter(None, key)), **fault_summary(rows, members[0][0].run["faults"]["seed"])}


def _failures(outcomes: Sequence[RunRecord]) -> list[str]:
    """Each kind of failure once, with what was said."""
    texts: Counter[str] = Counter()
    for one in outcomes:
        if one["status"] not in (RunStatus.OK.value, RunStatus.NOTHING.value):
            code = f", exit code {one['exit_code']}" if one["exit_code"] is not None else ""
            last = one["said"].splitlines()[-1:]
            texts[": ".join([f"{one['status']}{code}", *last])] += 1
    return [f"{text} ({n} of {len(outcomes)} runs)" for text, n in texts.items()]


def _differences(ended: Sequence[RunRecord]) -> Iterator[str]:
    """How later repeats differ from the first: in a count, or in the program's output."""
    if not ended:
        return
    first = _counts(ended[0])
    found = []
    for other in map(_counts, ended[1:]):
        changed = [key for key in {**first, **other} if first.get(key) != other.get(key)]
        found += [f"{key}: {first.get(key)} and {other.get(key)}" for key in changed]
    if len({one["output_sha256"] for one in ended}) > 1:
        found.append("the program's output differs")
    texts = list(dict.fromkeys(found))
    yield from texts[:SHOWN]
    if len(texts) > SHOWN:
        yield f"and {len(texts) - SHOWN} more"


def _counts(outcome: RunRecord) -> dict[str, Any]:
    return {
        f"process {row['process']}, launch {row['launch']} of {row['kernel']}, {'.'.join(way)}": value
        for row in reports_of(outcome)
        for way, value in leaves(row["report"])
        if value is not None
    }


def _add_ratios(rows: Iterable[Json]) -> None:
    """Beside the same program without a tool."""
    bare = {tuple(row[name] for name in ALIKE): row["median_seconds"]
            for row in rows if row["tool"] == BARE}  # fmt: skip
    for row in rows:
        base = bare.get(tuple(row[name] for name in ALIKE))
        if base and row["median_seconds"]:
            row["ratio"] = row["median_seconds"] / base


def _figure(figure: Figure, runs: Sequence[CellRun]) -> Json:
    sums: dict[tuple[str, ...], dict[Quantity, float]] = {}
    wanted = {quantity for part in figure.parts.values() for quantity in part}
    missing = set(wanted)
    for cell, outcome in runs:
        if cell.program not in figure.programs:
            continue
        for row in reports_of(outcome):
            bar = tuple(demangle(row["kernel"]) if column == "kernel" else getattr(cell, column)
                        for column in figure.bars)
            for quantity in (one for one in wanted if one.tool == cell.tool):
                numbers = [number for _, number in numbers_like(row["report"], quantity.metric)]
                of_bar = sums.setdefault(bar, {})
                of_bar[quantity] = of_bar.get(quantity, 0) + sum(numbers)
                missing -= {quantity} if numbers else set()
    rows = [{"bar": " ".join(filter(None, bar)), "values": _parts(figure, sums[bar])} for bar in _beside(sums)]
    told = {key: getattr(figure, key) for key in ("name", "title", "unit", "share", "stack")}
    nowhere = sorted(f"{quantity.tool}:{quantity.metric}" for quantity in missing)
    return {**told, "parts": list(figure.parts), "rows": rows, "missing": nowhere}


def _beside(bars: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Those of one first column together, of these those of one second, each column in the order of the runs."""
    known = list(bars)
    columns = [dict.fromkeys(column) for column in zip(*known, strict=True)]
    places = [{value: place for place, value in enumerate(column)} for column in columns]
    return sorted(known, key=lambda bar: [place[value] for place, value in zip(places, bar, strict=True)])


def _parts(figure: Figure, sums: Mapping[Quantity, float]) -> list[float]:
    values = [_quotient([sums.get(quantity, 0) for quantity in part]) for part in figure.parts.values()]
    total = sum(values)
    return [100 * value / total if total else 0.0 for value in values] if figure.share else values


def _quotient(numbers: Sequence[float]) -> float:
    """A number, or one divided by another; 0 where there was nothing to divide by."""
    top, *below = numbers
    return top if not below else top / below[0] if below[0] else 0.0


def _items(table: ItemTable, runs: Sequence[CellRun]) -> Json:
    rows = []
    wanted = [run for run in runs if run[0].tool == table.tool and run[0].program in table.programs]
    several = [name for name in ("device", "stack") if len({getattr(cell, name) for cell, _ in wanted}) > 1]
    for cell, outcome in wanted:
        of = " ".join(filter(None, (cell.program, cell.arguments, *(getattr(cell, name) for name in several))))
        for report in reports_of(outcome):
            items = (item for item in _below(report["report"], table.items) if isinstance(item, Mapping))
            rows += [{"of": of, "values": [item.get(column) for column in table.columns]} for item in items]
    return {"title": table.title, "columns": list(table.columns), "rows": rows}


def _below(report: Any, way: str) -> list[Any]:
    """The list in a report to which a way like ``a.b`` leads."""
    for key in way.split("."):
        report = report.get(key) if isinstance(report, Mapping) else None
    return report if isinstance(report, list) else []
