"""What was counted so far: several launches one by one are as all at once; how often it is shown, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented
from luthier_py.report.live import LiveTable
from luthier_py.report.output import Output
from luthier_py.report.so_far import SoFar
from luthier_py.report.verdict import Verdict
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import LaunchResult, Tool, load_tool
from luthier_py.samples import sample

NEVER = 1000.0  # seconds


def launches(tool: Tool, name: str, grids: Sequence[int] = (1, 4, 2)) -> list[tuple[Any, Any]]:
    code, launch = sample(name).path.read_bytes(), launch_of(sample(name))
    device, made = EmulatorDevice(load(code, name).target), instrument(code, tool)
    ran = [run_instrumented(device, made, tool, replace(launch, grid=(grid, 1, 1)), index)
           for index, grid in enumerate(grids)]
    return [(one.result, one.report) for one in ran]


@pytest.mark.parametrize("name", [
    "branch_divergence", "memory_divergence", "lds_bank_conflicts", "memory_locality", "roofline", "exactness",
    "floatcheck", "racecheck", "synccheck", "wave_metrics",
])
def test_what_is_combined_step_by_step_is_what_is_combined_at_once(name: str) -> None:
    tool = load_tool(name)
    found, so_far = launches(tool, "saxpy" if name == "floatcheck" else "reduce_strided"), SoFar(tool)
    for result, report in found:
        so_far.add(result, report)
    (known,) = so_far.kernels.values()
    assert known.whole and known.report == tool.combined([report for _, report in found])
    assert (known.last.launches, known.last.index) == (3, 2)


class Counting(Tool):
    """Has a report of several launches, or none."""

    def combined(self, reports: Sequence[int]) -> int | None:
        return sum(reports) if self.tells_end else None

    def text(self, launch: LaunchResult, report: Any) -> str:
        return f"{self.headline(launch)}: {report}"

    def ending(self, reports: Sequence[int]) -> str:
        return f"in all {sum(reports)}"


def launch(number: int, kernel: str) -> LaunchResult:
    return LaunchResult(number, kernel, (1, 1, 1), (64, 1, 1), {})


def shown(tool: Tool, stream: StringIO, seconds: float) -> list[str]:
    live = LiveTable(SoFar(tool), stream, seconds)
    for number in range(10):
        live.launch(launch(number, f"k{number % 2}"), number)
    live.close()
    return stream.getvalue().splitlines()


def test_lines_where_there_is_no_terminal() -> None:
    tool = Counting()
    tool.tells_end = True
    first, *others = shown(tool, StringIO(), NEVER)
    assert first.startswith("luthier: 1 launch") and sum(line.startswith("luthier: ") for line in others) == 1
    assert others[-4].startswith("luthier: 10 launches in ") and others[-3:] == [
        "5 launches until 8 - k0: 20", "5 launches until 9 - k1: 25", "in all 45"]


def test_of_a_tool_that_combines_nothing_the_last_launch_is_shown_and_said_to_be_one() -> None:
    assert shown(Counting(), StringIO(), NEVER)[-4:] == [
        "kernel 8 - k0 - #workgroups 1: 8", "  the last of them; 4 before it",
        "kernel 9 - k1 - #workgroups 1: 9", "  the last of them; 4 before it"]


def test_what_fails_is_raised_at_the_end_behind_the_verdict() -> None:
    class Failing(Counting):
        def text(self, launch: LaunchResult, report: Any) -> str:
            raise ValueError("it cannot say")

    tool, stream = Failing(LUTHIER_LIVE=NEVER), StringIO()
    output = Output(tool, stream, in_time=True)
    output.launch(launch(0, "k"), 1, "")
    with pytest.raises(ValueError, match="it cannot say"):
        output.finish(Verdict(tool))
    assert stream.getvalue().startswith("luthier: verdict")


def test_in_place_on_a_terminal() -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    tool, stream = Counting(), Terminal()
    tool.tells_end = True
    shown(tool, stream, NEVER)
    drawn, erased, last = stream.getvalue().rpartition("\x1b[2K")
    assert erased and "1 launch in" in drawn and last.splitlines()[-1] == "in all 45" and "10 launches" in last


def test_reports_of_launches_are_not_printed_beside_it() -> None:
    tool = load_tool("script", {"text": r'on("*"): n = count()' + r"\nend: print(n)", "LUTHIER_LIVE": "1000"})
    stream, verdict = StringIO(), Verdict(tool)
    output = Output(tool, stream, in_time=True)
    found = launches(tool, "saxpy")
    for result, report in found:
        output.launch(result, report, "one of them")
    output.finish(verdict)
    total = sum(report["tables"][0]["rows"][0]["count"] for _, report in found)
    lines = stream.getvalue().splitlines()
    assert "one of them" not in lines and lines[-2:] == [str(total), f"luthier: {verdict.text()}"]
    plain = Output(replaced := load_tool("script", {"text": tool.source}), StringIO())
    for result, report in found:
        plain.launch(result, report, "")
    plain.finish(Verdict(replaced))
    assert plain.stream.getvalue().splitlines()[0] == str(total)  # type: ignore[attr-defined]
