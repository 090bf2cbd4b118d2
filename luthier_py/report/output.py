"""Where the reports of a run go: lines as they come, or one file at its end; and the tool's own files.

In: each launch with its report, in order; the verdict. Out: LUTHIER_OUTPUT (text, CSV or JSON, as docs/output.md has
them) and LUTHIER_REPORT (a folder). Invariant: text is appended line by line, even if other processes write to that
file; other files are whole or not there, and what they are made of waits on disk, so that memory does not grow with
the launches.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO

from luthier_py.base.errors import printable_lines
from luthier_py.base.records import replace
from luthier_py.base.storage import write_file
from luthier_py.report.columns import comma_separated_lines
from luthier_py.report.html import render
from luthier_py.report.live import LiveTable
from luthier_py.report.names import FileNames, file_name
from luthier_py.report.plain import Json, flat
from luthier_py.report.so_far import SoFar
from luthier_py.report.spool import Objects, SpooledRows, with_rows
from luthier_py.rewrite.tool import LaunchResult, Tool, as_data, encoded

if TYPE_CHECKING:
    from luthier_py.report.verdict import Verdict

SCHEMA = 1  # of JSON, and of CSV's columns; one more when something is renamed, removed or means something else


class Launches:
    """Mutable: those of one kernel of one code object, with their reports; ``notes`` are what the tool keeps of it."""

    def __init__(self, first: LaunchResult, file: IO[bytes]) -> None:
        self.notes, self._program = first.notes, first.program
        self._results, self.reports = Objects(file), Objects(file)

    def append(self, result: LaunchResult, report: Any) -> None:
        """Put a launch and its report on disk, without what all launches of the kernel share."""
        self._results.append(replace(result, notes=None, program=None))
        self.reports.append(report)

    def result(self, number: int) -> LaunchResult:
        """The launch with this number here, from 0 on, or from the end if negative; with notes and program again."""
        found: LaunchResult = replace(self._results[number], notes=self.notes, program=self._program)
        return found

    def together(self) -> LaunchResult:
        """All of them as one: the last, after as many; in ranges that all were in."""
        last, ranges = self.result(-1), {result.ranges for result in self._results}
        count = sum(result.launches for result in self._results)
        return replace(last, launches=count, ranges=last.ranges if len(ranges) == 1 else ())


class Output:
    """Mutable: what is to be written at the end. Text is written to ``stream`` where no file was requested.
    ``in_time``: launches come while a program runs, so that what was counted so far can be shown (LUTHIER_LIVE)."""

    def __init__(self, tool: Tool, stream: TextIO | None = None, in_time: bool = False) -> None:
        self.tool = tool
        self.stream = sys.stderr if stream is None else stream
        self._rows = SpooledRows(tool.selection.output)
        self._columns: dict[str, None] = {}
        self._named: set[str] = set()  # kernels whose whole names were printed
        self._launches: dict[tuple[tuple[str, ...], str, int], Launches] = {}  # kernels may have one name
        self._so_far, seconds = SoFar(tool), tool.selection.live if in_time else 0.0
        self.live = LiveTable(self._so_far, self.stream, seconds) if seconds else None

    @property
    def wants_texts(self) -> bool:
        """Whether launches are reported one by one."""
        path = self.tool.selection.output
        return self.live is None if path is None else path.suffix == ".txt"

    def launch(self, result: LaunchResult, report: Any, text: str) -> None:
        """One launch; raises OSError, and ToolError where the report is no data."""
        path, folder = self.tool.selection.output, self.tool.selection.report
        if self.live is not None:
            self.live.launch(result, report)
        elif self.tool.tells_end:
            self._so_far.add(result, report)
        if self.wants_texts:
            self._say(path, text and self._introduce_name(result.kernel) + text)
        elif path is not None:
            self._keep_row(result, report, path.suffix == ".csv")
        if folder is not None:
            ranges = result.ranges if self.tool.selection.by_range else ()
            key = ranges, result.kernel, id(result.notes)
            if key not in self._launches:
                self._launches[key] = Launches(result, self._objects)
            self._launches[key].append(result, report)

    def _introduce_name(self, kernel: str) -> str:
        """The first time a line with the whole name of a kernel whose short one texts have."""
        name = "" if kernel in self._named else self.tool.selection.whole(kernel)
        self._named.add(kernel)
        return f"{self.tool.selection.short(kernel)} is {name}\n" if name else ""

    def _say(self, path: Path | None, text: str) -> None:
        """Nothing where the tool has nothing to say."""
        if text and path is not None:
            _append(path, text)
        elif text:
            print(printable_lines(text), file=self.stream, flush=True)

    def finish(self, verdict: Verdict) -> list[Path]:
        """The end of the run; gives the files that were written; raises OSError."""
        try:
            if self.live is not None:
                self.live.close()
            if self.live is None or self.wants_texts:
                self._say(self.tool.selection.output if self.wants_texts else None, self._so_far.describe_end())
        finally:
            print(f"luthier: {printable_lines(verdict.text())}", file=self.stream, flush=True)
        return [*self.counts(verdict), *self.reports()]

    def counts(self, verdict: Verdict) -> list[Path]:
        """The file of LUTHIER_OUTPUT, complete."""
        path = self.tool.selection.output
        if path is None:
            return []
        if path.suffix == ".txt":
            _append(path, verdict.text())
        elif path.suffix == ".csv":
            lines = comma_separated_lines(list(self._columns), self._rows)
            write_file(path, map(encoded, lines))
        else:
            write_file(path, with_rows(head(self.tool, verdict), "launches", self._rows))
        self.close()
        return [path]

    def reports(self) -> list[Path]:
        """The tool's files for each kernel: of all its launches together, if the tool can, or of each."""
        folder = self.tool.selection.report
        written, names = [], defaultdict[tuple[str, ...], FileNames](FileNames)
        for (ranges, kernel, _), launches in self._launches.items():
            assert folder is not None
            place = folder.joinpath(*map(file_name, ranges), names[ranges].of(kernel))
            reports = launches.reports
            combined = self.tool.combined(reports) if len(reports) > 1 else reports[0]
            if combined is not None:
                written += write_report(self.tool, place, launches.together(), combined)
                continue
            for number, report in enumerate(reports):
                result = launches.result(number)
                written += write_report(self.tool, place / str(result.index), result, report)
        return written

    def close(self) -> None:
        """Remove what waits on disk, also after a failure."""
        self._rows.close()

    def _keep_row(self, result: LaunchResult, report: Any, flat: bool) -> None:
        row = row_of(self.tool, result, list(self.tool.rows(report)) if flat else report)
        for part in flat_rows(row) if flat else (row,):
            self._rows.add(part)
            if flat:
                self._columns.update(dict.fromkeys(part))

    @cached_property
    def _objects(self) -> IO[bytes]:
        return tempfile.TemporaryFile()


def write_report(tool: Tool, folder: Path, result: LaunchResult, report: Any) -> list[Path]:
    """The files that the tool makes of a report, in a folder; raises OSError."""
    names = FileNames()
    files = {names.of(name): content for name, content in _files_of(tool, result, report).items()}
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_file(folder / name, content)
    return [folder / name for name in files]


def _files_of(tool: Tool, result: LaunchResult, report: Any) -> Mapping[str, bytes]:
    """The tool's own, and a page with code for each of several tools, or the one, that has none."""
    files = dict(tool.files(result, report))
    for part in tool.together:
        own, name = report if part is tool else report[part.name], f"{part.name}.html"
        page = None
        if own is not None and name not in files:
            from luthier_py.report.tool_page import tool_page  # few runs ask for pages

            page = tool_page(part, result, own)
        if page is not None:
            files[name] = encoded(render(page))
    return files


def document(tool: Tool | None, rows: Sequence[Json], verdict: Verdict | None) -> dict[str, Any]:
    """All of a run, as docs/output.schema.json says."""
    return {**head(tool, verdict), "launches": list(rows)}


def head(tool: Tool | None, verdict: Verdict | None) -> dict[str, Any]:
    """A document without its launches."""
    return {
        "schema": SCHEMA,
        "tool": None if tool is None else tool.name,
        "options": {} if tool is None else dict(tool.option_values),
        "verdict": None if verdict is None else {**verdict.facts(), "text": verdict.text()},
    }


def row_of(tool: Tool, result: LaunchResult, report: Any) -> Json:
    """One launch as data; ToolError where the report is none."""
    data = as_data(report, f"the report of {tool.name}")
    return {**launch_row(result), "kernel": tool.selection.shown(result.kernel), "report": data}


def launch_row(result: LaunchResult) -> Json:
    """One launch without its report, and with the kernel's name as it is."""
    return {
        "launch": result.index,
        "kernel": result.kernel,
        "grid": list(result.grid),
        "block": list(result.block),
        "launches": result.launches,
        "device": result.device,
        **({"ranges": list(result.ranges)} if result.ranges else {}),
    }


def flat_rows(row: Mapping[str, Any]) -> Iterator[Json]:
    """One for each part of a launch's ``report``, with one cell for each number: the part's fields under their own
    names, nested ones as ``opcodes.s_nop``; grids as ``4x1x1``; a list is one cell of JSON."""
    launch = {key: _cell(key, value) for key, value in row.items()}
    del launch["report"]
    return ({**launch, **{name or "report": json.dumps(value) if isinstance(value, list) else value
                         for name, value in flat(part).items()}} for part in row["report"])


def _cell(key: str, value: Any) -> Any:
    """Of what is known of a launch."""
    separators = {"grid": "x", "block": "x", "ranges": " > "}
    return separators[key].join(map(str, value)) if key in separators else value


def _append(path: Path, text: str) -> None:
    with path.open("ab") as file:
        file.write(encoded(f"{text}\n"))
