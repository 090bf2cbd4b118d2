"""`begin` and `end` of scripts: each of the page says what the emulator's counts and a record say; rows without a
counterpart, what cannot be put beside each other, and several kernels together."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorded_scripts import Observed, observe, pc, segments, total

from luthier_py.base.errors import Misread
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Done, run_instrumented
from luthier_py.report.columns import align_columns
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample
from luthier_py.tools.script import Script

PAGE = Path(__file__).resolve().parents[2] / "docs" / "one-liners.md"
SCRIPTS = re.findall(r"```script\n(.*?)```", PAGE.read_text(), re.DOTALL)


def table(header: list[str], rows: list[tuple[Any, ...]]) -> list[str]:
    return [f"    {line}" for line in align_columns(header, rows, left=0, first=1).split("\n")]


def mix(o: Observed) -> list[str]:
    valu, memory = (sum(map(o.runs, o.instrs(where))) for where in ("vector_alu", "memory"))
    return [f"{100 * valu / o.profile.total:.1f}% vector, {100 * memory / o.profile.total:.1f}% memory"]


def lanes(o: Observed) -> list[str]:
    rows = [(pc(instr), o.lanes(instr) / o.runs(instr)) for instr in o.instrs("global & load")]
    return ["lanes of each load", *table(["pc", "lanes / loads"], [(at, f"{each:.6g}") for at, each in rows])]


def waste(o: Observed) -> list[str]:
    touched = total((pc(each.instr), 64 * segments(each, 64)) for each in o.accesses("global"))
    wanted = total((pc(each.instr), each.bytes * len(each.lanes)) for each in o.accesses("global"))
    ratios = sorted(((touched[at] / wanted[at], at) for at in touched), key=lambda row: -row[0])[:3]
    return table(["pc", "top(3, touched * 64 / wanted)"], [(at, f"{ratio:.6g}") for ratio, at in ratios])


def stored(o: Observed) -> list[str]:
    numbers = np.concatenate([values.view(np.float32) for _, _, values in o.values("opcode = global_store_*", "vdata")])
    return [f"mean of what is stored {float(np.mean(numbers.astype(np.float64))):.6g} of {numbers.size}"]


ORACLES: list[tuple[str, Callable[[Observed], list[str]]]] = [
    ("histogram", mix), ("reduce", lanes), ("transpose", waste), ("saxpy", stored)]


@pytest.mark.parametrize("number", range(len(SCRIPTS)))
def test_a_script_of_the_page_says_at_its_end_what_the_emulator_counts(number: int) -> None:
    (name, oracle), text = ORACLES[number], SCRIPTS[number]
    o = observe(name, sample(name).path.read_bytes(), [text], "opcode = global_store_*")
    tool = Script(text)
    assert tool.ending([o.report]).split("\n") == oracle(o)
    assert len(SCRIPTS) == len(ORACLES)
    assert re.findall(r'begin: print\("(.*)"\)', text) == [line for line in tool.echo().split("\n") if line]


def reported(name: str, tool: Any) -> Any:
    code = sample(name).path.read_bytes()
    device = EmulatorDevice(load(code, name).target)
    return run_instrumented(device, instrument(code, tool), tool, launch_of(sample(name)))


TEXT = """
on("global & load"): loads = count(by=opcode); least = min(lane, by=opcode)
on("global & store"): stores = count(by=opcode); most = max(lane)
on("global"): both = count(by=opcode); sizes = hist(bytes)
end:
    print("all", loads, stores, loads / both)
    share = 100 * stores / both
    print(top(1, share), least)
    print(sum(loads) + sum(stores) - sum(both), len(both), max(loads) / 0, -min(share), int(avg(both)))
    print(most, most.count)
    print("sizes", sizes)
    printf("%d of %.2f, %d", sum(loads), avg(both), least_of_all)
"""


def test_of_several_kernels_together_with_rows_that_others_lack() -> None:
    tool = Script(TEXT.replace(", %d", "").replace(", least_of_all", ""))
    ran = [reported(name, tool) for name in ("vector_add", "saxpy", "histogram")]
    alike = [dict[str, int](), dict[str, int]()]
    for at, each in enumerate(alike):
        for row in (row for one in ran for row in one.report["tables"][at and 2]["rows"]):
            each[row["opcode"]] = each.get(row["opcode"], 0) + row["count"]
    loads, stores = alike
    both = [*loads.values(), *stores.values()]
    most = sum(one.report["tables"][3]["rows"][0]["count"] for one in ran if one.report["tables"][3]["rows"])
    lines = tool.ending([one.report for one in ran]).split("\n")
    atomics = next(row["count"] for row in ran[2].report["tables"][4]["rows"] if "atomic" in row["opcode"])
    everything = {**loads, **stores, "global_atomic_add": atomics}
    assert lines[0] == "all" and lines[1].split() == ["opcode", "loads", "stores", "loads", "/", "both"]
    assert {tuple(line.split()) for line in lines[2:5]} == {
        (name, str(loads.get(name, 0)), str(stores.get(name, 0)), str(int(name in loads))) for name in everything}
    assert [line.split() for line in lines[5:7]] == [
        ["opcode", "top(1,", "share)", "least"], [next(iter(stores)), "100"]]
    assert lines[7].split() == [str(-atomics), "3", "nan", "-0", str(int(sum([*both, atomics]) / 3))]
    assert lines[8:] == [f"63 {most}", "sizes", "    low  high  sizes", f"    4    8       {sum(both) + atomics}",
                         f"{sum(loads.values())} of {sum([*both, atomics]) / 3:.2f}"]
    assert not any(line.startswith("    ") or "loads" in line for line in ran[0].text.split("\n"))  # they are for `end`


def test_where_nothing_ran_there_is_no_number() -> None:
    text = 'on("atomic"): a = min(lane); n = count(); s = sum(lane, by=pc)\nend: print(a, n, s.count); print(a, n)\n'
    tool = Script(text + r'end: printf("%d and %d\n", a, n)')
    assert tool.ending([]).split("\n") == [
        "    nothing", " 0", "'%d and %d\\n' cannot show this: a is nothing, n is 0"]


def test_a_number_may_be_shown_twice() -> None:
    tool = Script(r'begin: printf("%d %d %.1f\n", 1, 1, 1 / 2); print(1, "and", 1)')
    assert tool.echo().split("\n")[-2:] == ["1 1 0.5", "1 and 1"]


REFUSED = {
    "end: print(loads)": "there is no table loads; at end there is, if it was named",
    "on('load'): loads = count()\nend: print(load)": "load is no table here; did you mean loads?",
    "on('load'): loads = count()\nend: print(loads.cuont)": "cuont is no column of loads here; did you mean count?",
    "on('load'): a = count(by=pc); b = count(by=line)\nend: print(a / b)": "its rows have the keys (line), and those",
    "on('load'): a = count(by=pc); b = hist(bytes)\nend: print(a, b)": "its rows have the keys (low, high), and those",
    "on('load'): a = count(by=pc)\nend: printf('%d', a)": "printf takes single numbers; print shows tables",
    "on('load'): a = count()\nend: printf('%d %d', a)": "not enough arguments for format string",
    "on('load'): a = count()\nend: print(top(3, a))": "top takes how many rows, and a table with keys",
    "on('load'): a = count(); a = count()": "there is a table a already",
    "on('load'): a = count()\nbegin: print(a)": "there is no table a",
    "on('load'): a = count()\nend if 1: print(a)": "end happens once, and takes no condition",
    "on('load'): a = count()\nend: count()": "count is no action here",
    "on('load'): a = count()\nend: printf()": "printf takes a text first",
    "on('load'): a = count()\nend: print(a, sep=1)": "print takes values alone",
    "on('load'): opcode = count(by=opcode)\nend: print(opcode)": "the rows have a key of that name; give this another",
    "on('load'): a = hist(bytes)\nend:\n    low = 1\n    print(a, low)": "the rows have a key of that name",
    "on('load'): a = count()\nend: b = c = a": "here should be what to print",
    "on('load'): a = count()\nend: print(a if a else 1)": "this is no expression of begin and end",
    "on('load'): a = count(); b = count(where=a > 1)": "a is no value here",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_wrong_is_said(text: str) -> None:
    with pytest.raises(Misread) as error:
        Script(text)
    assert REFUSED[text] in error.value.message and error.value.message.endswith("^")


def test_beside_another_tool_and_in_what_a_run_prints() -> None:
    tool = load_tool("script,instr_count", {"text": r'on("*"): n = count()\nend: print("executed", n)'})
    ran = reported("saxpy", tool)
    (row,) = ran.report["script"]["tables"][0]["rows"]
    done = Done(Path(), ran, EmulatorDevice(load(sample("saxpy").path.read_bytes(), "").target), tool, None)
    assert done.text.split("\n")[-1] == f"executed {row['count']}" and tool.ending([ran.report] * 2).endswith(
        f" {2 * row['count']}")
