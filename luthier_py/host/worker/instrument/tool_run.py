"""What a tool under a program has reported so far: reports of launches, records, a verdict.

In: launches and records, as they come. Out: texts and files at once, the verdict whenever requested. Invariant:
an output that fails says so once, and nothing more of it is tried; a tool that fails to report a launch says so, and
reports the next one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from luthier_py.base.errors import Invalid
from luthier_py.base.late_modules import np
from luthier_py.base.storage import write_file
from luthier_py.host.worker.error_boundary import run_guarded, say
from luthier_py.host.worker.watchdog import nobody_waits
from luthier_py.report.output import Output, launch_row
from luthier_py.report.received import Received
from luthier_py.report.spool import SpooledRows, with_rows
from luthier_py.report.verdict import Verdict
from luthier_py.rewrite.tool import Channel, LaunchResult, Tool, as_data, load_tool
from luthier_py.rewrite.tool.records.channel import Full

VERDICT = "LUTHIER_VERDICT"
VERDICT_REPORTS = "LUTHIER_VERDICT_REPORTS"
"""0: the verdict leaves out the reports of the launches, which may be many."""


class ToolRun:
    """Mutable: one tool, and what it has reported so far. ``reports``: of all launches, for a verdict with them."""

    def __init__(self, tool: Tool, reports: SpooledRows | None) -> None:
        self.tool, self.reports = tool, reports
        self.output, self.verdict = Output(tool, in_time=True), Verdict(tool)
        self.alone: AbstractContextManager[Any] = self.output.live.lock if self.output.live else nullcontext()
        self.failed: set[str] = set()
        self.received = Received(tool)
        self.verdict.records = self.received.counts
        self._dropped: dict[tuple[Channel, int], int] = {}  # by channel and device

    def attempt(self, what: str, action: Callable[[], Any]) -> Any:
        """The action's result; None where this kind of action failed, now or before."""
        if what in self.failed:
            return None
        result = run_guarded(action, what)
        if isinstance(result, Exception):
            self.failed.add(what)
            return None
        return result

    def of_launch(self, what: str, result: LaunchResult, action: Callable[[], Any]) -> Any:
        """The action's result; None where it failed, for this launch."""
        found = run_guarded(action,
                            f"{what}, launch {result.index} of kernel {self.tool.selection.shown(result.kernel)}")
        if isinstance(found, Exception):
            self.failed.add(what)
            return None
        return found

    def report(self, result: LaunchResult, without_code: bool = False) -> None:
        """Ask the tool for a launch's report, and pass it on. ``without_code``: the tool inserted nothing into the
        kernel. Errors are reported on stderr and in ``failed``, not raised."""
        with self.alone:
            self._report(result, without_code)

    def _report(self, result: LaunchResult, without_code: bool) -> None:
        self.verdict.instrumented += result.launches * (not without_code)
        self.verdict.without_code += result.launches * without_code
        name = type(self.tool).__name__
        report = self.of_launch(f"{name}.report", result, partial(self.tool.report, result))
        self.of_launch(f"{name}.findings", result, partial(self.verdict.add_report, result, report))
        if self.reports is not None:
            data = self.of_launch(f"{name}.report", result, partial(as_data, report, f"the report of {name}"))
            self.attempt(VERDICT, partial(self.reports.add, {**launch_row(result), "report": data}))
        telling = partial(self.tool.text, result, report)
        text = None if report is None else ""
        if text is not None and self.output.wants_texts:
            text = self.of_launch(f"{name}.text", result, telling)
        if text is not None:
            self.attempt("output", partial(self.output.launch, result, report, text))

    def take(self, channel: Channel, device: int, dropped: int, slots: bytes) -> None:
        """Slots of a channel's ring on a device, which has dropped so many records so far."""
        self._dropped[channel, device] = dropped
        count = self.received.count(channel)
        count.dropped = sum(number for (which, _), number in self._dropped.items() if which is channel)
        full = f"{channel} was full, and is to stop a launch then"
        if dropped and channel.full is Full.STOP and full not in self.failed:
            say(f"{full}: the rest of the launch is not recorded, and the run has failed")
            self.failed.add(full)
        if slots:
            found = np.frombuffer(slots, channel.record.slots)
            with self.alone:
                taken = run_guarded(partial(self.received.take, channel, found), f"channel {channel.name}")
            if isinstance(taken, Exception):
                self.failed.add(f"channel {channel.name}")
        if self.received.failures:
            self.failed.add("assertion in device code")

    def facts(self, **more: Any) -> Iterator[bytes]:
        """JSON in pieces."""
        return with_rows({**self.verdict.facts(), "failed": sorted(self.failed), **more}, "reports", self.reports)

    def write_verdict(self, ended: bool) -> None:
        """To LUTHIER_VERDICT; before the end it names the process that is going to write it."""
        if (path := os.environ.get(VERDICT)) and not nobody_waits(Path(path)):
            self.attempt(VERDICT, partial(write_file, Path(path), self.facts(worker=os.getpid(), ended=ended)))

    def close(self) -> None:
        """Remove the rows that wait on disk."""
        self.output.close()
        if self.reports is not None:
            self.reports.close()


def open_tool(name: str, options: str, program: int, reports: SpooledRows | None) -> ToolRun:
    """``options``: one NAME=VALUE a line."""
    tool = load_tool(name, dict(_option(line) for line in options.splitlines() if line))
    tool.selection = tool.selection.of_process(program)
    if tool.selection.live:
        tool.per_launch = True  # live output comes before the program's end
    return ToolRun(tool, reports)


def make_report_spool() -> SpooledRows | None:
    """None unless a verdict with all reports is requested."""
    path = os.environ.get(VERDICT)
    return SpooledRows(Path(path)) if path and os.environ.get(VERDICT_REPORTS, "1") != "0" else None


def _option(line: str) -> tuple[str, str]:
    name, equals, value = line.partition("=")
    if not equals:
        raise Invalid(f"tool option `{line}`: write NAME=VALUE")
    return name, value
