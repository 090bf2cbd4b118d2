"""Sides of a comparison and what is different between them: numbers by hand, from llvm-objdump, and from a data set."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from luthier_py import study_table
from luthier_py.errors import Invalid
from luthier_py.report.comparison import Difference, RunSide, compare, difference_lines
from luthier_py.report.tallies import KERNEL, LINES, OPCODES, NumberName, tally
from luthier_py.samples import sample
from luthier_py.session.compared import compare_files
from luthier_py.session.study.store import leaves, write_data


def rows(*numbers: tuple[int, str, str, int, int, float]) -> dict[str, Any]:
    names = ("pc", "instruction", "source", "cycles", "worst_way", "share")
    return {"instructions": [dict(zip(names, each, strict=True)) for each in numbers]}


TWICE = [
    rows((8, "ds_read_b32 v1, v2", "/a/f.hip:3", 10, 2, 0.5), (16, "ds_read_b32 v3, v2", "/a/f.hip:4", 20, 4, 0.25)),
    rows((8, "ds_read_b32 v1, v2", "/a/f.hip:3", 1, 3, 0.5), (16, "ds_read_b32 v3, v2", "/a/f.hip:4", 2, 1, 0.5)),
]


def test_counts_add_up_and_the_worst_is_the_worst() -> None:
    found = tally(TWICE)
    assert found == {
        NumberName(LINES, "f.hip:3", "cycles"): 11, NumberName(LINES, "f.hip:3", "worst_way"): 3,
        NumberName(LINES, "f.hip:4", "cycles"): 22, NumberName(LINES, "f.hip:4", "worst_way"): 4,
        NumberName(OPCODES, "ds_read_b32", "cycles"): 33, NumberName(OPCODES, "ds_read_b32", "worst_way"): 4,
    }  # fmt: skip
    assert tally(TWICE[:1])[NumberName(LINES, "f.hip:4", "share")] == 0.25  # alone, a share stands for itself


def test_rows_without_lines_are_known_by_their_order() -> None:
    report = {"edges": [{"function": "k", "branch": 4, "taken": True, "count": 1},
                        {"function": "k", "branch": 40, "taken": True, "count": 2},
                        {"function": "g", "branch": 90, "taken": False, "count": 3}], "total": 6}
    assert tally([report], "k") == {
        NumberName("edges", "taken #0", "count"): 1, NumberName("edges", "taken #1", "count"): 2,
        NumberName("edges", "g not taken #0", "count"): 3,
    }  # fmt: skip


@pytest.mark.parametrize(("before", "after", "pairs", "left"), [
    (["a", "b"], ["b", "a"], {("a", "a"), ("b", "b")}, ([], [])),
    (["void f<4>(int)", "g"], ["void f<8>(int)", "g"], {("g", "g"), ("void f<4>(int)", "void f<8>(int)")}, ([], [])),
    (["f<1>()", "f<2>()"], ["f<3>()", "f<4>()"], set(), (["f<1>()", "f<2>()"], ["f<3>()", "f<4>()"])),
    (["a", "old"], ["a", "new"], {("a", "a"), ("old", "new")}, ([], [])),
    (["a"], ["b", "c"], set(), (["a"], ["b", "c"])),
    (["(anonymous namespace)::f<1>()", "(anonymous namespace)::g()"], ["(anonymous namespace)::f<2>()", "h()", "i()"],
     {("(anonymous namespace)::f<1>()", "(anonymous namespace)::f<2>()")}, (["(anonymous namespace)::g()"],
                                                                           ["h()", "i()"])),
])
def test_kernels_find_their_counterparts(
    before: list[str], after: list[str], pairs: set[tuple[str, str]], left: tuple[list[str], list[str]]
) -> None:
    found = compare(*(RunSide("", "", dict.fromkeys(names, {})) for names in (before, after)))
    assert {(pair.before, pair.after) for pair in found.pairs} == pairs
    assert (list(found.only_before), list(found.only_after)) == left and found.same == (left == ([], []))


def test_what_differs_is_told_greatest_first() -> None:
    one, two = ({NumberName(KERNEL, "", name): value for name, value in numbers.items()}
                for numbers in ({"a": 1, "b": 10, "c": 5, "gone": 3, "none": 0}, {"a": 2, "b": 4, "c": 5, "new": 1}))
    found = compare(RunSide("x", "t", {"k": one}), RunSide("y", "t", {"k": two}))
    [pair] = found.pairs
    assert [(d.name.number, d.before, d.after, d.change, d.ratio) for d in pair.differences] == [
        ("b", 10, 4, -6, 0.4), ("gone", 3, None, -3, 0), ("a", 1, 2, 1, 2), ("new", None, 1, 1, None)
    ]
    assert pair.unchanged == 2 and isinstance(pair.differences[0], Difference)
    assert "  and 1 more: --most 0 shows all" in list(difference_lines(found, 3))
    assert not any("--most" in line for line in difference_lines(found, 0))


def test_code_is_what_llvm_objdump_shows(require_tool: Callable[[str], str], tmp_path: Path) -> None:
    paths = [sample(name).path for name in ("reduce_strided", "reduce_padded")]
    counts = []
    for path in paths:
        text = subprocess.run([require_tool("llvm-objdump-22"), "-d", path], capture_output=True, text=True, check=True)
        counts.append(Counter(re.findall(r"^\t(\w+)", text.stdout.split("s_endpgm")[0], re.M)))
    [pair] = compare_files(*paths).pairs
    told = {d.name.thing: (d.before or 0, d.after or 0) for d in pair.differences if d.name.section == OPCODES}
    assert told == {name: (counts[0][name], counts[1][name]) for name in sorted(counts[0] | counts[1])
                    if counts[0][name] != counts[1][name]} and told  # fmt: skip


def test_a_study_is_compared_with_another(tmp_path: Path) -> None:
    for name, factor in (("one", 1), ("two", 3)):
        (tmp_path / name).mkdir()
        report = {"instructions": 7 * factor, "rows": [{"pc": 4 * factor, "instruction": "s_nop 0", "count": factor}]}
        write_data(tmp_path / name, name, [
            {"cell": program, "program": program, "tool": "t", "repeat": repeat, "process": 0, "launch": 0,
             "kernel": "k", "metric": metric, "count": value if isinstance(value, int) else None,
             "text": value if isinstance(value, str) else None}
            for program in ("p", "q") for repeat in range(2) for metric, value in leaves(report)
        ])  # fmt: skip
    found = compare_files(tmp_path / "one", tmp_path / "two" / "results.parquet")
    assert [pair.title for pair in found.pairs] == ["p k", "q k"]
    assert {(d.name, d.before, d.after) for d in found.pairs[0].differences} == {
        (NumberName(KERNEL, "", "instructions"), 7, 21), (NumberName(OPCODES, "s_nop", "count"), 1, 3)
    }
    assert study_table(tmp_path / "one", metric="instructions").column("count").to_pylist() == [7] * 4


@pytest.mark.parametrize(("content", "said"), [
    ('{"schema": 2, "launches": []}', "its schema is 2"), ('{"launches": []}', "no output of Luthier-py"),
    ("[1]", "not an ELF file"),
    ('{"schema": 1, "tool": "t", "options": {}, "launches": [], "verdict": null}', "no kernel"),
])
def test_other_files_are_refused(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(Exception, match=said):
        compare_files(tmp_path / "x.json", tmp_path / "x.json")


def test_a_pattern_must_be_one() -> None:
    with pytest.raises(Invalid, match="--kernels"):
        compare_files(sample("saxpy").path, sample("saxpy").path, "(")


def test_two_tools_are_not_compared(tmp_path: Path) -> None:
    for tool in ("a", "b"):
        launch = {"kernel": "k", "report": {"n": 1}}
        (tmp_path / tool).write_text(json.dumps(
            {"schema": 1, "tool": tool, "options": {}, "launches": [launch], "verdict": None}))
    with pytest.raises(Invalid, match="compare what one tool counted"):
        compare_files(tmp_path / "a", tmp_path / "b")
