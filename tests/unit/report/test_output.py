"""Where reports go: the terminal, text, CSV, JSON, and folders for the tool's own files."""

from __future__ import annotations

import csv
import gc
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE

from luthier_py.report.output import Output, flat_rows
from luthier_py.report.verdict import Verdict
from luthier_py.rewrite.tool import LaunchResult, Tool

SYMBOL, NAME = "_Z3addPfi", "add(float*, int)"


class Nested(Tool):
    """Reports more than a number."""

    def files(self, launch: LaunchResult, report: Any) -> Mapping[str, bytes]:
        return {"report.json": json.dumps(report).encode()}


class Summed(Nested):
    def combined(self, reports: Sequence[Any]) -> Any:
        return sum(reports)


class Heads(Summed):
    def files(self, launch: LaunchResult, report: Any) -> Mapping[str, bytes]:
        return {"head.txt": self.headline(launch).encode()}


def launch(index: int, kernel: str = SYMBOL) -> LaunchResult:
    return LaunchResult(index, kernel, (4, 2, 1), (64, 1, 1), {})


def test_the_terminal() -> None:
    tool, stream = Nested(), StringIO()
    output = Output(tool, stream)
    output.launch(launch(0), {"n": 1}, "one")
    assert stream.getvalue() == "one\n"
    assert output.finish(Verdict(tool)) == []
    assert stream.getvalue().splitlines()[1].startswith("luthier: verdict: 0 launches")


def test_a_long_name_is_told_once() -> None:
    tool, stream, long = Heads(), StringIO(), "gemm_" + "with_parameters_" * 20
    output, short = Output(tool, stream), tool.selection.short(long)
    for number in range(2):
        output.launch(launch(number, long), {"n": 1}, tool.headline(launch(number, long)))
    assert stream.getvalue().splitlines() == [
        f"{short} is {long}", *(f"kernel {number} - {short} - #workgroups 8" for number in range(2))]


def test_a_tool_that_says_nothing_writes_no_lines(tmp_path: Path) -> None:
    for options in ({}, {"luthier_output": str(tmp_path / "counts.txt")}):
        stream = StringIO()
        output = Output(Nested(**options), stream)
        output.launch(launch(0), {}, "")
        assert stream.getvalue() == "" and not (tmp_path / "counts.txt").exists()


def test_text_is_appended_as_it_comes(tmp_path: Path) -> None:
    path, stream = tmp_path / "out.txt", StringIO()
    for _ in range(2):  # two runs
        tool = Nested(LUTHIER_OUTPUT=path)
        output = Output(tool, stream)
        output.launch(launch(0), {}, "one\ntwo")
        assert path.read_text().endswith("one\ntwo\n")
        assert output.finish(Verdict(tool)) == [path]
    kinds = [line.partition(":")[0] for line in path.read_text().splitlines() if not line.startswith(" ")]
    assert kinds == ["one", "two", "verdict"] * 2 and "one" not in stream.getvalue()


def test_csv_has_a_row_for_each_launch(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    tool = Nested(LUTHIER_OUTPUT=path)
    output = Output(tool, StringIO())
    output.launch(launch(0), {"opcodes": {"s_nop": 1}, "rows": [1, 2]}, "")
    output.launch(launch(3, "plain"), {"opcodes": {"s_endpgm": 5}, "rows": []}, "")
    assert not path.exists()  # whole or not there
    assert output.finish(Verdict(tool)) == [path]
    first, second = csv.DictReader(StringIO(path.read_text()))
    assert first == {"launch": "0", "kernel": NAME, "grid": "4x2x1", "block": "64x1x1", "launches": "1", "device": "0",
                     "opcodes.s_nop": "1", "rows": "[1, 2]", "opcodes.s_endpgm": ""}  # fmt: skip
    assert (second["kernel"], second["opcodes.s_nop"], second["opcodes.s_endpgm"]) == ("plain", "", "5")
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


def test_a_report_need_not_be_a_table() -> None:
    for report in (7, None):
        row = {"launch": 1, "report": [report]}
        assert list(flat_rows(row)) == [{"launch": 1, "report": report}]


def test_json_has_all(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    tool = Nested(LUTHIER_OUTPUT=path, mangled_names=1)
    output = Output(tool, StringIO())
    output.launch(launch(2), {"n": [1, {"x": 2}]}, "")
    output.finish(Verdict(tool, launches=5))
    facts = json.loads(path.read_text())
    assert facts["tool"] == "Nested" and facts["options"]["MANGLED_NAMES"] is True and facts["verdict"]["launches"] == 5
    assert facts["launches"] == [{"launch": 2, "kernel": SYMBOL, "grid": [4, 2, 1], "block": [64, 1, 1], "launches": 1,
                                  "device": 0, "report": {"n": [1, {"x": 2}]}}]  # fmt: skip


def test_files_of_each_launch_or_of_each_kernel(tmp_path: Path) -> None:
    for tool, expected in (
        (Nested(LUTHIER_REPORT=tmp_path / "each"), {"add/0": 10, "add/1": 20, "one": 7}),
        (Summed(LUTHIER_REPORT=tmp_path / "sum"), {"add": 30, "one": 7}),
    ):
        output = Output(tool, StringIO())
        for result, report in ((launch(0, "add"), 10), (launch(1, "add"), 20), (launch(2, "one"), 7)):
            output.launch(result, report, "")
        folder = tool.selection.report
        assert folder is not None and not folder.exists()
        written = output.finish(Verdict(tool))
        assert {str(path.parent.relative_to(folder)): json.loads(path.read_text()) for path in written} == expected


def test_what_several_launches_are_called_together(tmp_path: Path) -> None:
    """Not one of them: their number, until the last, and the ranges that all were in."""
    tool = Heads(LUTHIER_REPORT=tmp_path)
    output = Output(tool, StringIO())
    for result in (replace(launch(0, "k"), ranges=("step",)), replace(launch(4, "k"), launches=3, ranges=("step",)),
                   replace(launch(5, "in"), ranges=("step",)), replace(launch(6, "in"), ranges=("other",)),
                   launch(7, "one")):
        output.launch(result, 1, "")
    files = {path.parent.name: path.read_text() for path in output.finish(Verdict(tool))}
    assert files == {"k": "4 launches until 4 - k - in step", "in": "2 launches until 6 - in",
                     "one": "kernel 7 - one - #workgroups 8"}


def test_kernels_of_one_name_are_kept_apart(tmp_path: Path) -> None:
    """They come from two code objects, of which the tool keeps different notes."""
    tool = Summed(LUTHIER_REPORT=tmp_path)
    output = Output(tool, StringIO())
    for index, notes in enumerate(("one", "other", "one")):
        output.launch(replace(launch(index, "k"), notes=notes), index + 1, "")
    files = {path.parent.name: json.loads(path.read_text()) for path in output.finish(Verdict(tool))}
    assert files == {"k": 4, "k-2": 2}


@pytest.mark.parametrize("kind", ("out.csv", "out.json", "folder"))
def test_memory_does_not_grow_with_launches(kind: str, tmp_path: Path) -> None:
    """Not by what a launch leaves, but for its place in a file; and nothing but the results is left behind."""
    tool = Summed(**{"LUTHIER_REPORT" if kind == "folder" else "LUTHIER_OUTPUT": tmp_path / kind})
    stream, output = open(os.devnull, "w"), Output(tool, None)
    output.stream = stream

    def grown(launches: int) -> int:
        before = tracemalloc.get_traced_memory()[0]
        for index in range(launches):
            output.launch(launch(index, "k"), index, "")
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before

    tracemalloc.start()
    try:
        grown(100)
        assert grown(1000) < 1000 * (32 if kind == "folder" else 4)
    finally:
        tracemalloc.stop()
    (path,) = {path.parent if kind == "folder" else path for path in output.finish(Verdict(tool))}
    output.close()
    assert [path.name for path in tmp_path.iterdir()] == [kind]
    if kind == "folder":
        assert json.loads((path / "report.json").read_text()) == sum(range(100)) + sum(range(1000))
    else:
        assert len(path.read_text().splitlines()) > 1100
    stream.close()


def test_what_a_killed_process_leaves(tmp_path: Path) -> None:
    """A row of JSON for each launch until then, beside the file that was asked for."""
    code = f"""if True:
        import os
        from pathlib import Path
        from luthier_py.report.output import Output
        from luthier_py.rewrite.tool import LaunchResult, Tool
        output = Output(Tool(LUTHIER_OUTPUT=Path({str(tmp_path)!r}) / "out.json"))
        for index in range(3):
            output.launch(LaunchResult(index, "k", (1, 1, 1), (64, 1, 1), {{}}), index * 10, "")
        os._exit(1)
    """
    assert subprocess.run([sys.executable, "-c", code], timeout=PATIENCE).returncode == 1
    (path,) = tmp_path.iterdir()
    assert path.name.startswith(".out.json.") and path.suffix == ".rows"
    assert [json.loads(line)["report"] for line in path.read_text().splitlines()] == [0, 10, 20]


@pytest.mark.parametrize(
    "kernel",
    ["a/../b", "x" * 300, "k<int>", "..", ".", "/", "/etc/x", "../../x", "", "a\0b", "-rf", "é" * 200, "\udc80"],
)
def test_any_kernel_has_a_folder(kernel: str, tmp_path: Path) -> None:
    tool = Nested(LUTHIER_REPORT=tmp_path / "r")
    output = Output(tool, StringIO())
    output.launch(launch(0, kernel), 1, "")
    (path,) = output.finish(Verdict(tool))
    assert path.resolve().parent.parent == (tmp_path / "r").resolve() and len(path.parent.name.encode()) < 120


def test_a_tool_cannot_name_files_elsewhere(tmp_path: Path) -> None:
    class Elsewhere(Nested):
        def files(self, launch: LaunchResult, report: Any) -> Mapping[str, bytes]:
            return {"../out.json": b"1", "/out.json": b"2", "..": b"3"}

    output = Output(Elsewhere(LUTHIER_REPORT=tmp_path / "r"), StringIO())
    output.launch(launch(0, "k"), 1, "")
    written = output.finish(Verdict(output.tool))
    assert {path.resolve().parent for path in written} == {(tmp_path / "r" / "k").resolve()}
    assert sorted(path.read_bytes() for path in written) == [b"1", b"2", b"3"]
