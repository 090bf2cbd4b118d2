"""Where the reports of a run go: lines as they come, or one file at its end; and the tool's own files.

In: each launch with its report, in order; the verdict. Out: LUTHIER_OUTPUT (text, CSV or JSON) and LUTHIER_REPORT (a
folder). Invariant: text is appended line by line, whoever else writes to that file; other files are whole or not there.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from luthier_py.errors import printable_lines
from luthier_py.report.columns import comma_separated
from luthier_py.report.verdict import Verdict
from luthier_py.storage import write_file
from luthier_py.tool import LaunchResult, Tool

Row = dict[str, Any]
LONGEST_NAME = 100  # of a folder that is named for a kernel


@dataclass(slots=True)
class Output:
    """Mutable: keeps what is to be written at the end. Text goes to ``stream`` where no file was asked for."""

    tool: Tool
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    rows: list[Row] = field(default_factory=list)
    launches: list[tuple[LaunchResult, Any]] = field(default_factory=list)

    def launch(self, result: LaunchResult, report: Any, text: str) -> None:
        """One launch; raises OSError."""
        path, folder = self.tool.selection.output, self.tool.selection.report
        if path is None:
            print(printable_lines(text), file=self.stream, flush=True)
        elif path.suffix == ".txt":
            _append(path, text)
        else:
            self.rows.append(row_of(self.tool, result, report))
        if folder is not None:
            self.launches.append((result, report))

    def finish(self, verdict: Verdict) -> list[Path]:
        """The end of the run; gives the files that were written; raises OSError."""
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
            write_file(path, comma_separated(flat_rows(self.tool, self.rows)).encode())
        else:
            facts = {"tool": self.tool.name, "options": self.tool.option_values, "launches": self.rows}
            write_file(path, f"{json.dumps({**facts, 'verdict': verdict.facts()}, indent=2, default=str)}\n".encode())
        return [path]

    def reports(self) -> list[Path]:
        """The tool's files for each kernel: of all its launches together, if the tool can, or of each."""
        folder = self.tool.selection.report
        found: dict[tuple[str, int], list[tuple[LaunchResult, Any]]] = {}
        for result, report in self.launches:  # code objects may have kernels of one name
            found.setdefault((result.kernel, id(result.notes)), []).append((result, report))
        written, taken = [], Counter[str]()
        for (kernel, _), launches in found.items():
            assert folder is not None
            taken[kernel] += 1
            place = folder / _name(kernel, taken[kernel])
            combined = self.tool.combined([report for _, report in launches]) if len(launches) > 1 else launches[0][1]
            if combined is not None:
                written += write_report(self.tool, place, launches[0][0], combined)
                continue
            for result, report in launches:
                written += write_report(self.tool, place / str(result.index), result, report)
        return written


def write_report(tool: Tool, folder: Path, result: LaunchResult, report: Any) -> list[Path]:
    """The files that the tool makes of a report, in a folder; raises OSError."""
    files = tool.files(result, report)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_file(folder / name, content)
    return [folder / name for name in files]


def row_of(tool: Tool, result: LaunchResult, report: Any) -> Row:
    """One launch as data."""
    return {
        "launch": result.index,
        "kernel": tool.selection.shown(result.kernel),
        "grid": list(result.grid),
        "block": list(result.block),
        "launches": result.launches,
        "device": result.device,
        "report": report,
    }


def flat_rows(tool: Tool, rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Rows with one cell for each number, all with the same columns: ``report``'s fields under their own names, nested
    ones as ``opcodes.s_nop``; grids as ``4x1x1``; a list is one cell of JSON."""
    flat = []
    for row in rows:
        head = {key: "x".join(map(str, value)) if key in ("grid", "block") else value for key, value in row.items()}
        del head["report"]
        flat += [{**head, **_fields("", part)} for part in tool.rows(row["report"])]
    columns = dict.fromkeys(column for row in flat for column in row)
    return [{column: row.get(column) for column in columns} for row in flat]


def _fields(prefix: str, value: Any) -> Row:
    if isinstance(value, Mapping):
        found: Row = {}
        for key, inner in value.items():
            found.update(_fields(f"{prefix}.{key}" if prefix else str(key), inner))
        return found
    if isinstance(value, (list, tuple)):
        value = json.dumps(value, default=str)
    return {prefix or "report": value}


def _append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text + "\n")


def _name(kernel: str, number: int) -> str:
    """A folder's name: the kernel's, as far as file systems take it."""
    plain = "".join(c if c.isalnum() or c in "_.-" else "_" for c in kernel)[:LONGEST_NAME]
    name = plain if plain == kernel else f"{plain}-{hashlib.sha256(kernel.encode()).hexdigest()[:8]}"
    return name if number == 1 else f"{name}-{number}"
