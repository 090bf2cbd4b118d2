"""Budgets: files with limits of what kernels cost, and what a program's kernels cost under the tools that measure it.

In: a TOML file; a program. Out: its sections; numbers by kernel; the file again, with what was measured. Invariant: a
program runs once for each tool that some limit needs, and no number is taken from a run that did not end well.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from luthier_py.base.errors import LuthierError, how_many
from luthier_py.base.names import demangle
from luthier_py.base.records import dataclass, replace
from luthier_py.base.storage import write_file
from luthier_py.features.budget.report import BudgetSection, Limit, Measured
from luthier_py.features.campaign.engine import Campaign, Variation, in_turn
from luthier_py.features.exec.execute import SIGNALLED, Executed, Surroundings, execute
from luthier_py.features.settings.run_settings import RunSettings, run_settings
from luthier_py.features.study.keys import Keys, read_keys
from luthier_py.report.plain import is_number, numbers_like
from luthier_py.report.tallies import AddedUp, NumberName
from luthier_py.rewrite.tool import SUM, Amount, Amounts, Tool, amount_at, amounts_of, combined, load_tool

LAST_LINES = 5  # of a program that failed
COUNTED = {
    "instructions": ("instr_count", "instructions"),
    "conflicts": ("lds_bank_conflicts", "total.conflict_cycles"),
    "lds_cycles": ("lds_bank_conflicts", "total.cycles"),
    "races": ("racecheck", "findings"),
    "bad_accesses": ("memcheck", "findings"),
    "unwritten_reads": ("initcheck", "findings"),
    "lonely_barriers": ("synccheck", "findings"),
    "missing_waits": ("waitcheck", "findings"),
    "float_faults": ("floatcheck", "findings"),
}
"""Numbers with a name of their own: the tool that counts them, and where they are in its report; ``findings``: what it
finds."""
STATIC = {"sgprs": "sgprs", "vgprs": "vgprs", "occupancy": "waves_per_simd", "lds": "lds_bytes",
          "scratch": "private_bytes", "code_bytes": "code_bytes"}  # fmt: skip
"""Facts of a kernel without a tool, and their names in verdicts."""
FINDINGS, BAD = "findings", "bad_accesses"
OUTPUT = "LUTHIER_OUTPUT"
NUMBERS = (*COUNTED, *STATIC, FINDINGS)
WRITTEN = ("instructions", "conflicts", "vgprs", "occupancy", "scratch", "code_bytes", FINDINGS)
"""What a new section has."""
MORE_IS_BETTER = ("occupancy",)
MOST = 1 << 63  # of a limit
HEAD = "# Written by `luthier check --write`, which keeps tolerances, and not remarks.\n"


def read_budget(path: Path) -> list[BudgetSection]:
    """Raises OSError, and Invalid with the key that is wrong."""
    keys = read_keys(path, "budgets")
    found = [_section(name, table) for name, table in keys.tables("kernels")]
    keys.reject_unknown_keys()
    if not found:
        raise keys.wrong("kernels", 'write [kernels."NAME"] with a limit, or have it written: luthier check --write')
    return found


def _section(name: str, keys: Keys) -> BudgetSection:
    limits = {}
    for number in keys.table:
        if number not in NUMBERS and ":" not in number:
            raise keys.wrong(number, f"there is no such number; there are {', '.join(NUMBERS)}, and TOOL:METRIC")
        limits[number] = keys.take(number, partial(_limit, more_is_better=is_more_better(number)))
    return BudgetSection(name, limits)


def is_more_better(number: str) -> bool:
    """Whether a limit is a lower bound; of a tool's number its declaration says so."""
    return number in MORE_IS_BETTER if ":" not in number else _kind(*number.split(":", 1)).more_is_better


def _kind(tool: str, metric: str) -> Amount:
    """What a tool's number is."""
    amounts = amounts_of(tool)
    return SUM if amounts is None else amount_at(amounts, metric.split("."))


def _is_bound(value: Any) -> bool:
    """Whether a value can be a limit: NaN holds for everything, and beyond MOST floats do not distinguish
    neighbours."""
    return is_number(value) and abs(value) <= MOST


def _limit(value: Any, more_is_better: bool) -> Limit:
    if _is_bound(value):
        return Limit(least=value) if more_is_better else Limit(most=value)
    if not isinstance(value, dict) or not value.keys() & {"max", "min"} or value.keys() - {"max", "min", "tolerance"}:
        raise ValueError('write a number, or {max = 12000, tolerance = "2%"}, or {min = 8}')
    if not all(_is_bound(value[name]) for name in ("max", "min") if name in value):
        raise ValueError(f"max and min are numbers, not beyond {MOST}")
    tolerance = value.get("tolerance", 0)
    share = isinstance(tolerance, str)
    try:
        amount = float(tolerance.removesuffix("%")) / 100 if share and tolerance.endswith("%") else tolerance + 0.0
    except (TypeError, ValueError, OverflowError):
        amount = -1.0
    if not 0 <= amount <= MOST:
        raise ValueError('a tolerance is a number, or a share, as in "2%"')
    return Limit(value.get("max"), value.get("min"), amount, share)


# -- what kernels cost ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measuring:
    """A program, and how it is run."""

    command: Sequence[str]
    settings: RunSettings
    checking: RunSettings | None
    """The same with checks; None where there are none, as on a GPU."""
    level: str | None = None

    def measure(self, wanted: Iterable[str]) -> Measured:
        """These numbers, of all kernels that ran."""
        names = list(dict.fromkeys(wanted))
        found: dict[str, dict[str, float]] = {}
        tools = _tools_for(names)
        runs = Campaign([Variation(tool, tool, _reports_of) for tool in tools]).run(
            in_turn(lambda tool: self._under(tool, found)))
        for (tool, metrics), row in zip(tools.items(), runs, strict=True):
            _add_static(found, row["kernels"], names)
            _add_counts(found, row["reports"], metrics, amounts_of(tool))
            _add_found(found, row["reports"], metrics, load_tool(tool))
        for row in found.values():  # all was delivered: there is nothing of that kind in the kernel
            row.update({name: 0 for name in names if name in COUNTED and name not in row})
        if FINDINGS in names:
            self._add_findings(found)
        return found

    def _under(self, tool: str, found: Mapping[str, Mapping[str, float]]) -> Executed:
        """``found`` before: a kernel that accesses what is not there runs under no tool but the one that finds that."""
        try:
            return self._run(tool, self.settings)
        except LuthierError as error:
            bad = [name for name, row in found.items() if row.get(BAD)]
            if not bad:
                raise
            raise LuthierError(f"{COUNTED[BAD][0]} finds bad accesses in kernel {', '.join(bad)}, and without it the "
                               f"program does not come to its end: mend these first ({error.message})") from error

    def _add_findings(self, found: dict[str, dict[str, float]]) -> None:
        if self.checking is None:
            raise LuthierError(f"{FINDINGS} are what checks find on the emulator: give --device emulator:TARGET, or "
                               "take them out of the budget")
        for launch in self._run(None, self.checking).launches:
            row = found.setdefault(demangle(launch["kernel"]), {})
            row[FINDINGS] = row.get(FINDINGS, 0) + len(launch["findings"])

    def _run(self, tool: str | None, settings: RunSettings) -> Executed:
        under = f"under {tool}" if tool is not None else "under checks"
        with tempfile.TemporaryDirectory(prefix="luthier-budget-") as folder:
            printed, counts = Path(folder, "printed"), {OUTPUT: str(Path(folder, "counts.txt"))}
            with printed.open("wb") as file:
                options, level = (counts, self.level) if tool is not None else ({}, None)
                done = execute(self.command, settings, tool, options, level, reports=True,
                               around=Surroundings(file.fileno()))
            if done.stopped is not None:
                raise SystemExit(SIGNALLED + done.stopped)
            if done.exit_code:
                last = printed.read_text("utf-8", "replace").strip().splitlines()[-LAST_LINES:]
                raise LuthierError("; ".join([f"the program ended with {done.exit_code} {under}", *last, *done.hints]))
        if done.undelivered:
            raise LuthierError(f"{under}: {'; '.join(done.undelivered)}")
        return done


def make_measuring(command: Sequence[str], device: str | None, stack: str | None = None, level: str | None = None
              ) -> Measuring:
    """How a program is to be measured. ``device``: an emulator, or None for the GPU that the program finds, which has
    no checks. ``stack``, ``level``: as `luthier exec` has them."""
    settings = run_settings(device, stack=stack)
    checking = run_settings(device, {"--check": "all"}, stack) if device is not None else None
    return Measuring(command, settings, checking, level)


def _reports_of(done: Executed) -> dict[str, list[Any]]:
    """Kernels that were loaded and reports of launches, of all processes."""
    return {name: [each for facts in done.verdicts for each in facts[name]] for name in ("kernels", "reports")}


def _tools_for(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """The metrics of each tool, by the numbers' names. The first of the tools meets every kernel that runs."""
    found: dict[str, dict[str, str]] = {}
    if any(name in STATIC or name in COUNTED for name in names):
        found[COUNTED[BAD if BAD in names else "instructions"][0]] = {}
    for name in names:
        if name in COUNTED or ":" in name:
            tool, metric = COUNTED[name] if name in COUNTED else name.split(":", 1)
            found.setdefault(tool, {})[name] = metric
    return found


def _add_static(found: dict[str, dict[str, float]], kernels: Iterable[Mapping[str, Any]], names: Iterable[str]) -> None:
    """Code objects of one program may have kernels of one name: the worst counts."""
    for kernel in kernels:
        row = found.setdefault(demangle(kernel["name"]), {})
        for name in STATIC.keys() & set(names):
            value, worst = kernel[STATIC[name]][0], min if name in MORE_IS_BETTER else max
            row[name] = worst(row.get(name, value), value)


def _add_found(
    found: dict[str, dict[str, float]], launches: Iterable[Mapping[str, Any]], metrics: Mapping[str, str], tool: Tool
) -> None:
    """What the tool finds in all launches of a kernel together."""
    names = [name for name, metric in metrics.items() if metric == FINDINGS and tool.finds]
    for launch in launches if names else ():
        row, told = found.setdefault(demangle(launch["kernel"]), {}), tool.findings(launch["report"])
        row.update({name: row.get(name, 0) + told for name in names})


def _add_counts(
    found: dict[str, dict[str, float]], launches: Iterable[Mapping[str, Any]], metrics: Mapping[str, str],
    amounts: Amounts | None,
) -> None:
    """All launches of a kernel together, in whatever process; where no tool declares how, the mean of several is no
    number of a budget."""
    reports: dict[str, list[Any]] = {}
    for launch in launches:
        reports.setdefault(demangle(launch["kernel"]), []).append(launch["report"])
    for kernel, each in reports.items():
        own = AddedUp()
        for report in each if amounts is None or len(each) == 1 else [combined(amounts, each)]:
            for name, metric in metrics.items():
                for way, value in numbers_like(report, metric):
                    kind = None if amounts is None else amount_at(amounts, way)
                    own.add(NumberName(name, "", metric), value, kind)
        row = found.setdefault(kernel, {})
        row.update({name.section: value for name, value in own.result().items()})


# -- the budget file --------------------------------------------------------------------------


def write_budget(path: Path, run: Measuring) -> Iterator[str]:
    """Renew a budget, or write a new one; a line for each remark on that."""
    sections = read_budget(path) if path.exists() else []
    numbers = {number for section in sections for number in section.limits}
    measured = run.measure(number for number in (*WRITTEN, *sorted(numbers))
                           if number != FINDINGS or run.checking is not None)
    if not measured:
        raise LuthierError("no kernel ran, so there is nothing to write")
    written = renew_limits(sections, measured)
    write_file(path, budget_text(written).encode())
    yield f"{path}: {how_many(len(written), 'section')}, {len(written) - len(sections)} of them new"
    for section in sections:
        if not section.match_kernels(list(measured)):
            yield f"no kernel {section.kernels} ran; its section stays as it was"


def renew_limits(sections: Sequence[BudgetSection], measured: Measured) -> list[BudgetSection]:
    """The sections with what was measured as their limits, and new ones for kernels that have none; those of kernels
    that did not run stay."""
    found, budgeted = [], set()
    for section in sections:
        names = section.match_kernels(list(measured))
        budgeted.update(names)
        limits = {number: _tightest(limit, [measured[name].get(number) for name in names])
                  for number, limit in section.limits.items()}
        found.append(replace(section, limits=limits))
    return found + [_new_section(name, numbers) for name, numbers in measured.items() if name not in budgeted]


def _new_section(kernel: str, numbers: Mapping[str, float]) -> BudgetSection:
    there = [number for number in WRITTEN if number in numbers]
    return BudgetSection(kernel, {number: _limit(numbers[number], is_more_better(number)) for number in there})


def _tightest(limit: Limit, values: Sequence[float | None]) -> Limit:
    there = [value for value in values if value is not None]
    if not there:
        return limit
    return replace(limit, most=None if limit.most is None else max(there),
                   least=None if limit.least is None else min(there))


def budget_text(sections: Iterable[BudgetSection]) -> str:
    """The budget as TOML."""
    return "\n".join([HEAD, *(line for section in sections for line in _lines_of(section))])


def _lines_of(section: BudgetSection) -> Iterator[str]:
    yield f"[kernels.{_quote_toml(section.kernels)}]"
    for name, limit in section.limits.items():
        yield f"{name if name.isidentifier() else _quote_toml(name)} = {_value(name, limit)}"
    yield ""


def _value(name: str, limit: Limit) -> str:
    """A number where that says it all."""
    better = is_more_better(name)
    alone = limit.least if better else limit.most
    if alone is not None and limit == _limit(alone, better):
        return str(alone)
    tolerance = f'"{limit.tolerance * 100:.12g}%"' if limit.share else f"{limit.tolerance:.12g}"
    parts = {"max": limit.most, "min": limit.least, "tolerance": tolerance if limit.tolerance else None}
    return f"{{{', '.join(f'{key} = {value}' for key, value in parts.items() if value is not None)}}}"


def _quote_toml(text: str) -> str:
    """A basic string: TOML escapes as JSON does, but has no surrogates, and no DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
