"""Several tools as one: whose options are whose, and what cannot run together."""

from __future__ import annotations

from pathlib import Path

import pytest

from luthier_py import Channel, LaunchParameter, LaunchResult, Mutator, Option, Tool, Variable, hook, u32, u64
from luthier_py.base.errors import Invalid
from luthier_py.features.exec.attach import _place_of
from luthier_py.rewrite.pipeline import plan
from luthier_py.rewrite.tool import COUNT_WARP_LEVEL, Several, load_tool, made_tool
from luthier_py.rewrite.tool.discover import absolute

SAXPY = Path(__file__).parents[3] / "data" / "saxpy.co"


@hook
def nothing() -> None:
    pass


def everywhere(m: Mutator) -> int:
    instrs = m.instrs(m.functions()[0])
    for instr in instrs:
        m.before(instr, nothing)
    return len(instrs)


class Sent:
    where: u64


class First(Tool):
    """Has one of everything."""

    seen = Variable(u64)
    period = LaunchParameter(u32, 3)
    sent = Channel(Sent)
    depth = Option(1)
    size = Option(8)
    per_wave = COUNT_WARP_LEVEL

    def instrument(self, m: Mutator) -> int:
        return everywhere(m)

    def launching(self, launch: LaunchResult) -> None:
        self.period = 100 + launch.notes


class Second(Tool):
    """Has an option that another has."""

    depth = Option(2)
    per_wave = COUNT_WARP_LEVEL
    per_launch = False

    def instrument(self, m: Mutator) -> int:
        return everywhere(m)

    def rows(self, report):
        return [7]


def both(**options) -> Several:
    found = Several(First(), Second()).remade(**options)
    assert found.name == "First,Second" and found.per_launch is True
    return found


def test_options_go_to_who_has_them() -> None:
    given = {"size": "16", "First.depth": 5, "COUNT_WARP_LEVEL": 0, "Second.count_warp_level": 1}
    first, second = both(**given).together
    assert (first.size, first.depth, first.per_wave) == (16, 5, False)
    assert (second.depth, second.per_wave) == (2, True)


def test_options_are_told_by_tool_and_can_be_given_again() -> None:
    found = both(**{"Second.depth": 9, "INSTR_END": 4, "First.INSTR_END": 2, "LUTHIER_KERNELS": "a"})
    assert found.given == {"Second.depth", "First.INSTR_END", "Second.INSTR_END", "LUTHIER_KERNELS"}
    values = found.option_values
    assert (values["First.depth"], values["Second.depth"], values["LUTHIER_KERNELS"]) == (1, 9, "a")
    assert found.remade().option_values == values
    assert found.remade(**{"Second.depth": 1}).together[1].option_values["depth"] == 1
    assert "* Second.depth = 9" in " ".join(found.echo().split())


@pytest.mark.parametrize(("options", "says"), [
    ({"depth": 3}, "option depth: First and Second have it; write First.depth"),
    ({"size": 3, "SIZE": 3}, "option size is given twice"),
    ({"nothing": 3}, "option nothing: First and Second have no such option"),
    ({"Second.size": 3}, "option Second.size: Second has no such option"),
    ({"Third.size": 3}, "there is no tool Third; there are First, Second"),
    ({"First.LUTHIER_KERNELS": "x"}, "LUTHIER_KERNELS is one for all tools of a run: First has x, Second has "),
])
def test_what_nobody_or_everybody_would_take_is_refused(options, says: str) -> None:
    with pytest.raises(Invalid, match=says):
        both(**options)


def test_what_could_not_be_told_apart_is_refused() -> None:
    with pytest.raises(Invalid, match="two tools are called First"):
        Several(First(), First())
    same = type("First", (Tool,), {"name": "same", "seen": Variable(u64)})
    with pytest.raises(Invalid, match=r"First and same .* two variables are called First\.seen"):
        Several(First(), same())


def test_each_sees_its_own_instructions_notes_and_launch_parameters() -> None:
    found = both(**{"Second.INSTR_END": 4})
    edits = plan(SAXPY, found).edits
    count = edits.notes["First"]
    assert edits.notes == {"First": count, "Second": 4} and count > 4
    found.launching(LaunchResult(0, "saxpy", (1, 1, 1), (64, 1, 1), {}, notes=edits.notes))
    assert First.period.value_in(found) == 100 + count


def test_reports_rows_and_files_are_told_apart() -> None:
    found = both()
    launch = LaunchResult(0, "k", (1, 1, 1), (64, 1, 1), {"First.seen": (5).to_bytes(8, "little")})
    report = found.report(launch)
    assert report == {"First": {"seen": 5}, "Second": {}}
    assert found.rows(report) == [{"tool": "First", "seen": 5}, {"tool": "Second", "report": 7}]
    assert found.text(launch, report) == "kernel 0 - k - #workgroups 1\n  seen = 5"
    assert set(found.files(launch, report)) == {"First.json", "First.txt", "Second.json", "Second.txt"}
    assert found.combined([report, report]) is None  # Second has no such thing


def test_one_that_has_nothing_to_do_is_told_so() -> None:
    """Its `report` is not asked, as it would not be alone: what it made for the launch is not there."""
    idle = type("Idle", (Tool,), {"instrument": lambda self, m: None})
    found = Several(First(), idle())
    notes = plan(SAXPY, found).edits.notes
    assert notes.keys() == {"First"}
    launch = LaunchResult(0, "k", (1, 1, 1), (64, 1, 1), {"First.seen": (5).to_bytes(8, "little")}, notes=notes)
    report = found.report(launch)
    assert report == {"First": {"seen": 5}, "Idle": None}
    head = "kernel 0 - k - #workgroups 1"
    assert found.text(launch, report) == f"{head}\n  seen = 5\n{head}, there is nothing for Idle"
    assert found.rows(report) == [{"tool": "First", "seen": 5}]
    assert not [name for name in found.files(launch, report) if "Idle" in name]


def test_files_of_one_name_get_the_tools() -> None:
    plots = [type(name, (Tool,), {"files": lambda self, launch, report: {"plot.png": self.name.encode()}})
             for name in ("A", "B")]
    launch = LaunchResult(0, "k", (1, 1, 1), (64, 1, 1), {})
    assert Several(*(kind() for kind in plots)).files(launch, {"A": 0, "B": 0}) == {
        "A.plot.png": b"A", "B.plot.png": b"B"}


def test_channels_of_one_name_get_the_tools() -> None:
    other = type("Other", (Tool,), {"sent": Channel(Sent), "more": Channel(Sent)})
    found = Several(First(), other())
    assert [*map(found.name_channel, found.channels)] == ["First.sent", "Other.sent", "more"]
    assert [*map(both().name_channel, both().channels)] == ["sent"]


def test_they_are_found_by_name_and_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text("from luthier_py import Tool\n\nclass Mine(Tool):\n    'Nothing.'\n")
    monkeypatch.chdir(tmp_path)
    found = load_tool("branch_edges,mine.py,instr_count", {"mode": "instruction"})
    assert [part.name for part in found.together] == ["branch_edges", "Mine", "instr_count"]
    assert found.option_values["instr_count.mode"] == "instruction"
    assert absolute("branch_edges,mine.py") == f"branch_edges,{tmp_path}/mine.py"
    assert [_place_of(type(part)) for part in found.together[1:]] == [f"{tmp_path}/mine.py:Mine", "instr_count"]
    assert made_tool([found, load_tool("none")]).name == "branch_edges,Mine,instr_count,none"


def test_one_that_is_asked_each_time_makes_all_of_them_so() -> None:
    told, other, untold = (type(name, (Tool,), {"cacheable": said})
                           for name, said in (("Told", True), ("Other", True), ("Untold", False)))
    assert Several(told(), other()).cacheable and not Several(told(), untold()).cacheable
