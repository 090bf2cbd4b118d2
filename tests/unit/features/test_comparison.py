"""Sides of a comparison and what is different between them: numbers by hand, from llvm-objdump, and from a data set."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from compiled_samples import CompiledSamples
from fat_binaries import bundle

from luthier_py import study_table
from luthier_py.base.errors import Invalid, Unsupported
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.compare.report import Difference, RunSide, compare, difference_lines
from luthier_py.features.compare.sides import compare_files
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented
from luthier_py.features.study.store import write_data
from luthier_py.report.plain import leaves
from luthier_py.report.tallies import ADDRESSES, FIRST, KERNEL, LINES, OPCODES, RUNNING, NumberName, tally
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import as_data, load_tool
from luthier_py.samples import sample


def rows(*numbers: tuple[int, str, str, int, int, float]) -> dict[str, Any]:
    names = ("pc", "instruction", "source", "cycles", "worst_way", "share")
    return {"instructions": [dict(zip(names, each, strict=True)) for each in numbers]}


def report_of(tools: str, options: dict[str, str]) -> Any:
    """Of a sample's launch."""
    tool = load_tool(tools, options)
    made = instrument(sample("transpose").path.read_bytes(), tool)
    ran = run_instrumented(EmulatorDevice(made.obj.target), made, tool, launch_of(sample("transpose")))
    return as_data(ran.report, "the report")


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


NOT_ADDED = ADDRESSES | {FIRST, RUNNING}
SCRIPT = 'on("memory"): count(by=line); hist(active, by=(line, opcode)); top(1, opcode)'


@pytest.mark.parametrize(("tools", "options"), [
    ("script", {"text": SCRIPT}), ("instr_count,memory_divergence", {}), ("branch_divergence", {}),
])
def test_no_number_of_a_report_changes_unseen(tools: str, options: dict[str, str]) -> None:
    report = report_of(tools, options)
    counted = 0
    for way, value in leaves(report):
        names = set(way)
        if type(value) is int and not names & NOT_ADDED:
            more = json.loads(json.dumps(report))
            part = reduce(lambda at, key: at[int(key) if isinstance(at, list) else key], way[:-1], more)
            part[int(way[-1]) if isinstance(part, list) else way[-1]] = value + 1000
            assert tally([more]) != tally([report]), way
            counted += 1
    assert counted >= 10


def test_a_script_s_tables_are_told_by_action() -> None:
    report = report_of("script", {"text": SCRIPT})
    found, tables = tally([report] * 2, "transpose"), report["tables"]
    for row in tables[0]["rows"]:
        line = row["line"].rpartition("/")[2]
        assert found[NumberName("count(by=line) by source line", line, "count")] == 2 * row["count"] > 0
    assert found[NumberName("tables", "count(by=line) #0", "room")] == tables[0]["room"]  # of every launch
    assert not any(name.number in ("low", "high") for name in found)


def test_two_tools_are_apart() -> None:
    one = {"total": 7, "instructions": 2, "rows": [{"source": "/a/f.hip:3", "cycles": 10}]}
    found = tally([{"a": one, "b": {**one, "total": 90}}] * 2)
    assert found == {NumberName(f"{tool} {section}".rstrip(), thing, number): value for tool in "ab" for
                     section, thing, number, value in (("", "instructions", "", 4), (LINES, "f.hip:3", "cycles", 20))}


def test_lines_are_not_counted_twice() -> None:
    rows = [{"source": "/a/f.hip:3", "count": 2}]
    assert tally([{"places": rows, "lines": rows}]) == {
        NumberName(f"places {LINES}", "f.hip:3", "count"): 2, NumberName(LINES, "f.hip:3", "count"): 2
    }  # fmt: skip


@pytest.mark.parametrize("tool", ["branch_divergence", "memory_divergence", "memory_locality", "roofline"])
def test_lines_are_known_without_their_folders(tool: str) -> None:
    text = json.dumps(report_of(tool, {})).replace("transpose.hip", "/there/transpose.hip")
    found = {name: value for name, value in tally([json.loads(text)]).items() if name.section == LINES and name.thing}
    assert not any("/" in part for name in tally([json.loads(text)]) for part in name)
    assert {name.thing for name in found} >= {"transpose.hip:8", "transpose.hip:11"}
    assert found == {name: value for name, value in tally([report_of(tool, {})]).items() if name in found}


def test_what_is_no_amount_is_not_added_up() -> None:
    report = {"wave_size": 64, "rows": [{"kind": "x", "count": 2, "min": 3, "max": 5, "pc": 8, "other_pc": 9,
                                         "first": {"address": 512, "lane": 3}, "instruction": 5}], "first": {"lane": 1}}
    assert tally([report, report]) == {
        NumberName(KERNEL, "", "wave_size"): 64, NumberName("rows", "x #0", "count"): 4,
        NumberName("rows", "x #0", "min"): 3, NumberName("rows", "x #0", "max"): 5,
        NumberName("rows", "x #0", "instruction"): 10,
    }  # fmt: skip


def test_code_that_is_elsewhere_is_no_other_code() -> None:
    """Addresses are nothing that two builds share: of blocks, of ways between them, of functions, of paths' ends."""
    def moved(by: int) -> dict[str, Any]:
        return {
            "blocks": [{"function": "_Z1fi", "pc": 64 + by, "region": 32 + by, "executions": 5}],
            "ways": [{"from": 32 + by, "to": 64 + by, "executions": 4}],
            "traces": [{"blocks": [32 + by, 64 + by], "likely": [0.5], "instructions": 9}],
            "paths": [{"function": "_Z1fi", "blocks": [32 + by], "then": hex(64 + by), "executions": 3}],
            "functions": [{"function": "f(int)", "address": 32 + by, "calls": 2}],
            "decided": [{"pc": 64 + by, "sources": [32 + by, 48 + by]}],
        }

    found = tally([moved(0)])
    assert found == tally([moved(768)]) == {
        NumberName("blocks", "f(int) #0", "executions"): 5, NumberName("ways", "#0", "executions"): 4,
        NumberName("traces", "#0", "instructions"): 9, NumberName("traces #0 likely", "0", ""): 0.5,
        NumberName("paths", "f(int) #0", "executions"): 3, NumberName("functions", "f(int) #0", "calls"): 2,
    }  # fmt: skip
    assert tally([{"blocks": 3}]) == {NumberName(KERNEL, "", "blocks"): 3}  # their number


def test_launches_in_another_order_are_the_same(tmp_path: Path) -> None:
    """Of several there is no trace, which follows from all of them; and blocks are not known by their rank."""
    def report(*executions: int) -> dict[str, Any]:
        blocks = [{"function": "k", "pc": pc, "length": pc, "executions": count, "instructions": pc * count}
                  for pc, count in zip((4, 8), executions, strict=True)]
        traces = [{"blocks": [4], "likely": [], "instructions": 4 * executions[0]}]
        return {"blocks": sorted(blocks, key=lambda row: -row["instructions"]), "traces": traces}

    def side(name: str, *reports: dict[str, Any]) -> Path:
        rows = [{"kernel": "k", "report": each} for each in reports]
        path = tmp_path / name
        path.write_text(json.dumps({"schema": 1, "tool": "hot_blocks", "options": {}, "verdict": {}, "launches": rows}))
        return path

    one, other = report(9, 1), report(2, 3)
    assert compare_files(side("a.json", one, other), side("b.json", other, one)).same
    assert not compare_files(side("a.json", one, one), side("b.json", other, one)).same


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


def test_what_is_the_same_is_told_in_one_line_of_all_kernels() -> None:
    numbers = {NumberName(KERNEL, "", "a"): 1}
    one = RunSide("x", "t", {"k": numbers, "same": numbers, "gone": {}, "g": {}})
    other = RunSide("y", "t", {"k": {NumberName(KERNEL, "", "a"): 2}, "same": numbers}, notes=("a note",))
    _, *lines = difference_lines(compare(one, other), 0)
    assert lines[:3] == ["a note", "", "k"] and lines[3].endswith("kernel") and lines[4:] == [
        "       1      2      +1     2x  a", "  0 numbers unchanged", "", "only in x: gone", "only in x: g",
        "1 kernel different, 1 the same",
    ]  # fmt: skip


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


def test_builds_are_compared_by_the_target_that_both_have(require_tool: Callable[[str], str], tmp_path: Path) -> None:
    """Where it is the only one; what was left out is told."""
    samples = CompiledSamples(require_tool("clang-22"), tmp_path)
    sizes = {"gfx90a": 64, "gfx1100": 32, "gfx1201": 32}
    codes = {name: samples.path("saxpy", name, size) for name, size in sizes.items()}

    def library(*names: str) -> Path:
        path = tmp_path / f"{'-'.join(names)}.hipfb"
        path.write_bytes(bundle(*((f"hipv4-amdgcn-amd-amdhsa--{name}", codes[name].read_bytes()) for name in names)))
        return path

    both, note = library("gfx90a", "gfx1100"), "of gfx1100, the only target that both have; left out: gfx90a"
    for before, after, said in ((both, codes["gfx1100"], note), (codes["gfx1100"], both, note),
                                (both, library("gfx1100", "gfx1201"), f"{note}, gfx1201")):
        found = compare_files(before, after)
        assert found.same and found.notes == [said] and said in difference_lines(found, 0)
    found = compare_files(both, both)
    assert "only target" not in "\n".join(difference_lines(found, 0))
    targets = [f"saxpy [{name}]" for name in ("gfx90a", "gfx1100")]
    assert [pair.title for pair in found.pairs] == targets
    twice = library("gfx90a", "gfx90a")
    assert [pair.title for pair in compare_files(twice, twice).pairs] == ["saxpy", "saxpy #2"]


def test_instructions_without_a_line_have_a_row(tmp_path: Path) -> None:
    """Rows of lines, and that one, have all instructions."""
    strided, padded = (sample(name).path for name in ("reduce_strided", "reduce_padded"))
    [pair] = compare_files(strided, padded).pairs
    lines = [d for d in pair.differences if d.name.section == LINES]
    (instructions,) = [d for d in pair.differences if d.name.number == "instructions" and d.name.section == KERNEL]
    assert sum(d.change for d in lines) == instructions.change
    assert [(d.before, d.after) for d in lines if d.name.thing == "(no line)"] == [(5, 10)]


def test_a_study_is_compared_with_another(tmp_path: Path) -> None:
    for name, factor in (("one", 1), ("two", 3)):
        (tmp_path / name).mkdir()
        report = {"instructions": 7 * factor, "rows": [{"pc": 4 * factor, "instruction": "s_nop 0", "count": factor}],
                  "by": {"x.hip:3": 5 * factor}, "mean": 0.5 * factor}
        write_data(tmp_path / name, name, [
            {"cell": program, "program": program, "tool": "t", "repeat": repeat, "process": 0, "launch": 0,
             "kernel": "k", "metric": ".".join(way), "way": way, "count": value if isinstance(value, int) else None,
             "value": value if isinstance(value, float) else None, "text": value if isinstance(value, str) else None}
            for program in ("p", "q") for repeat in range(2) for way, value in leaves(report)
        ])  # fmt: skip
    found = compare_files(tmp_path / "one", tmp_path / "two" / "results.parquet")
    assert [pair.title for pair in found.pairs] == ["p k", "q k"]
    assert {(d.name, d.before, d.after) for d in found.pairs[0].differences} == {
        (NumberName(KERNEL, "", "instructions"), 7, 21), (NumberName(OPCODES, "s_nop", "count"), 1, 3),
        (NumberName("by", "x.hip:3", ""), 5, 15), (NumberName(KERNEL, "", "mean"), 0.5, 1.5),
    }
    assert study_table(tmp_path / "one", metric="instructions").column("count").to_pylist() == [7] * 4
    with pytest.raises(Invalid, match="none: No such file or directory; give a study's folder, or its results.parquet"):
        study_table(tmp_path / "none")
    newer = pq.read_table(tmp_path / "one" / "results.parquet").replace_schema_metadata({"version": "2"})
    pq.write_table(newer, tmp_path / "newer.parquet")
    with pytest.raises(Unsupported, match="newer.parquet: it is of version 2, and this Luthier-py reads 1; take a new"):
        compare_files(tmp_path / "one", tmp_path / "newer.parquet")


@pytest.mark.parametrize(("content", "said"), [
    ('{"schema": NaN}', "NaN is no number of a report"), ('{"schema": 1' + "0" * 400 + "}", "is no number of a report"),
    ('{"schema": 2, "launches": []}', "its schema is 2"), ('{"launches": []}', "no output of Luthier-py"),
    ("[1]", "not an ELF file"),
    ('{"schema": 1, "tool": "t", "options": {}, "launches": [], "verdict": null}', "no kernel"),
    ('{"schema": 1, "tool": "t", "options": [], "launches": [], "verdict": null}', "no output of Luthier-py"),
    ('{"schema": 1, "tool": "t", "options": {}, "launches": 1, "verdict": null}', "no output of Luthier-py"),
    ('{"schema": 1, "tool": "t", "options": {}, "launches": [{}], "verdict": null}', "no output of Luthier-py"),
    ('{"schema": 1, "tool": "t", "options": {}, "launches": [], "verdict": {"refused": [3]}}', "no output of Luthier"),
])
def test_other_files_are_refused(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(Exception, match=said):
        compare_files(tmp_path / "x.json", tmp_path / "x.json")


def test_a_pattern_must_be_one() -> None:
    path = sample("saxpy").path
    for pattern, said in (("(", "give a regular expression"), ("^s$", "no kernel that --kernels chooses")):
        with pytest.raises(Invalid, match=said):
            compare_files(path, path, pattern)


def test_a_target_must_be_there() -> None:
    path = sample("saxpy").path
    assert compare_files(path, path, target="gfx90a").pairs
    with pytest.raises(Invalid, match="--target gfx90: .*saxpy.co has code for gfx90a"):
        compare_files(path, path, target="gfx90")


def test_rows_are_not_compared(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("launch,kernel\n")
    with pytest.raises(Invalid, match=r"x.csv: compare takes files of --output FILE.json"):
        compare_files(sample("saxpy").path, tmp_path / "x.csv")


def test_two_tools_are_not_compared(tmp_path: Path) -> None:
    for tool in ("a", "b"):
        launch = {"kernel": "k", "report": {"n": 1}}
        (tmp_path / tool).write_text(json.dumps(
            {"schema": 1, "tool": tool, "options": {}, "launches": [launch], "verdict": None}))
    with pytest.raises(Invalid, match="compare what one tool counted"):
        compare_files(tmp_path / "a", tmp_path / "b")
