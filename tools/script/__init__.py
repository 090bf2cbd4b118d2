"""A tool from a text: `on("global_load_*"): hist(segments(addr, 64), by=line)` (docs/one-liners.md)."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from numpy.typing import NDArray

from luthier_py import Channel, LaunchResult, Mutator, Option, Tool
from luthier_py.base.errors import Invalid, printable_lines

from .actions import RECORDING, Action
from .hooks import record_of
from .instrumenting import Probed, instrumented
from .reporting import merged, record_text, table_of
from .shown import not_done, table_text
from .understood import ReadScript, script_of


class Script(Tool):
    """What a script says: probes, and what to count, measure, trace or print there."""

    name = "script"
    cacheable = True
    asks_first = True
    unechoed = Tool.unechoed | {"text"}  # the user sees it in the command
    written = Option("", name="text", help=r"the script; \n outside of quotes begins a new line")
    file = Option("", help="a file with the script")
    per_launch = Option(False, help="1: tables for each launch; 0: for all launches of a kernel together")

    def __init__(self, text: str = "", **options: Any) -> None:
        given = {"text": text.replace("\n", r"\n")} if text else {}  # options are one line each
        super().__init__(**given, **options)
        if bool(self.written) == bool(self.file):
            raise Invalid("""script: give its text, as in -e 'on("memory"): count(by=line)', or a file with it (-f)""")
        self.source = self.written or self.reads(self.file).read_text()
        self.tells_end = bool(self.script.end)
        self.channels = tuple(Channel(record_of(action), name=f"Script.{action.kind}{action.number}")
                              for action in self.script.actions if action.kind in RECORDING)

    @property
    def script(self) -> ReadScript:
        return script_of(self.source, self.file or "script")

    @property
    def counting(self) -> tuple[Action, ...]:
        """Actions that keep tables."""
        return tuple(action for action in self.script.actions if action.kind not in RECORDING)

    def echo(self) -> str:
        """With what `begin` prints."""
        lines = (line for each in self.script.begin for line in each.lines({}))
        return "\n".join(filter(None, [super().echo(), *lines]))

    def instrument(self, m: Mutator) -> Probed:
        return instrumented(self.script, self.channels, m, self.selection.shown)

    def received(self, channel: Channel, launch: LaunchResult, records: NDArray[Any]) -> None:
        if self.selection.records is not None:
            return
        recording = (action for action in self.script.actions if action.kind in RECORDING)
        action = next(action for action, own in zip(recording, self.channels, strict=False) if own is channel)
        for record in records:
            known = launch.notes.known.get(int(record["pc"]), {}) if launch.notes else {}
            line = printable_lines(record_text(action, record, known))
            print(line, file=sys.stderr, end="" if line.endswith("\n") else "\n")

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: Probed = launch.notes
        tables = [table_of(action, notes.tables.get(action.number), launch) for action in self.counting]
        return {"tables": tables, "left_out": list(notes.left_out)}

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        lines = [line for table in self._shown(report) for line in table_text(table)]
        lines += not_done(report["left_out"])
        return "\n".join([self.headline(launch), *lines] if lines else [])

    def _shown(self, report: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Tables that `end` does not get; of those that it does nothing may be lost without a word."""
        for action, table in zip(self.counting, report["tables"], strict=True):
            if not (self.tells_end and action.name) or table["lost"]:
                yield table

    def rows(self, report: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"action": table["action"], **row, "lost": table["lost"]}
                for table in report["tables"] for row in table["rows"] or [{}]]

    def combined(self, reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {"tables": self._merged(reports), "left_out": reports[0]["left_out"]}

    def ending(self, reports: Sequence[dict[str, Any]]) -> str:
        tables = {action.name: table for action, table in zip(self.counting, self._merged(reports), strict=True)}
        return "\n".join(line for each in self.script.end for line in each.lines(tables))

    def _merged(self, reports: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return [merged(action, [report["tables"][at] for report in reports])
                for at, action in enumerate(self.counting)]
