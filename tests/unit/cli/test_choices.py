"""What options of commands say together, without a command."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from luthier_py.base.errors import Invalid
from luthier_py.base.storage import check_file, check_folder
from luthier_py.features.commands.options import NO_TOOL, ToolChoice, check_settings, pairs, tool_options
from luthier_py.features.settings.run_settings import RunSettings, run_settings
from luthier_py.host.worker.device.recording import RecordSettings

Luthier = Callable[..., tuple[int, str, str]]


def test_a_script_stands_for_a_tool() -> None:
    assert ToolChoice().resolve_script() == (None, []) and ToolChoice().resolve_script(NO_TOOL) == (NO_TOOL, [])
    assert ToolChoice("t", option=["x=1"]).resolve_script(NO_TOOL) == ("t", ["x=1"])
    assert ToolChoice(script=["a", "b\nc"]).resolve_script() == ("script", [r"text=a\nb\nc"])
    assert ToolChoice(script_file=Path("f"), option=["x=1"]).resolve_script() == (
        "script",
        [f"file={Path.cwd()}/f", "x=1"],
    )
    given: dict[str, dict[str, Any]] = {
        "-t": {"tool": "t"}, "-e": {"script": ["a"]}, "-f": {"script_file": Path("f")}}  # fmt: skip
    for one, other in combinations(given, 2):
        with pytest.raises(Invalid, match=f"{one} and {other}: give one of them"):
            ToolChoice(**given[one], **given[other]).resolve_script()


def test_options_of_a_tool() -> None:
    assert pairs(None) == {} and pairs(["a=1", "b=x=y", "c="], report=None) == {"a": "1", "b": "x=y", "c": ""}
    assert pairs(["a=1"], REPORT=Path("d")) == {"REPORT": "d", "a": "1"}
    assert pairs([], ["k.hip:3", "k.hip:7-9"]) == {"INSTRUMENT": "lines = k.hip:3 | lines = k.hip:7-9"}
    assert pairs(["instrument=load"], ["k.hip:3"]) == {"instrument": "(load) & (lines = k.hip:3)"}
    with pytest.raises(Invalid, match="option `a`: write NAME=VALUE"):
        pairs(["a"])
    with pytest.raises(Invalid, match="option REPORT is given twice"):
        pairs(["REPORT=e"], REPORT=Path("d"))
    assert tool_options(False, [], None) == {} and tool_options(True, ["a=1"]) == {"a": "1"}
    with pytest.raises(Invalid, match="option a, b: there is no tool that could take it"):
        tool_options(False, ["a=1", "b=2"])


PLAIN = run_settings("emulator")
CHECKED = run_settings("emulator", {"--check": "all"})
SHUFFLED = replace(PLAIN, shuffle=3)
RECORDED = replace(PLAIN, record=RecordSettings(Path("f.lrec")))


@pytest.mark.parametrize(("settings", "tool", "code", "said"), [
    (PLAIN, "instr_count", 0, ""), (RECORDED, NO_TOOL, 0, ""), (SHUFFLED, NO_TOOL, 0, ""), (SHUFFLED, NO_TOOL, 9, ""),
    (CHECKED, "instr_count", 9, ""), (PLAIN, "memcheck", 9, ""),
    (RECORDED, "instr_count", 0, "--record keeps a launch as it is"),
    (replace(RECORDED, shuffle=3), NO_TOOL, 0, "--record keeps a launch as it is"),
    (SHUFFLED, "instr_count", 0, "--shuffle compares what the program itself writes; leave out -t"),
    (PLAIN, "instr_count", 9, "--error-exitcode tells what"), (PLAIN, NO_TOOL, 9, "--error-exitcode tells what"),
])
def test_what_says_nothing_together_is_refused(settings: RunSettings, tool: str, code: int, said: str) -> None:
    if not said:
        check_settings(settings, tool, {}, code)
        return
    with pytest.raises(Invalid, match=said):
        check_settings(settings, tool, {}, code)


@pytest.mark.parametrize(("output", "said"), [
    ("a.lrec/new", "--output {}: .*/a.lrec is a file; give a folder"),
    ("a.lrec/new/b.lrec", "--output {}: there is no folder .*/a.lrec/new"),
    ("new/b.lrec", "--output {}: there is no folder .*/new"), ("a.lrec", None), ("new/folder", None),
])  # fmt: skip
def test_where_nothing_can_be_kept_is_known_before_anything_runs(tmp_path: Path, output: str, said: str | None) -> None:
    (tmp_path / "a.lrec").write_bytes(b"")
    with nullcontext() if said is None else pytest.raises(Invalid, match=said.format(tmp_path / output)):
        run_settings("emulator:gfx90a", record=RecordSettings(tmp_path / output))
    with pytest.raises(Invalid, match="--record .*: there is no folder"):
        run_settings("emulator:gfx90a", record=tmp_path / "new" / "b.lrec")


def test_a_folder_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: path != tmp_path)  # root may write everywhere
    with pytest.raises(Invalid, match=f"--output {tmp_path}/new: {tmp_path} cannot be written to"):
        check_folder(tmp_path / "new", f"--output {tmp_path}/new")
    old = tmp_path / "old.csv"
    old.write_text("")  # it is replaced, and what is appended to is not
    with pytest.raises(Invalid, match=f"--output {old}: {tmp_path} cannot be written to; give another file"):
        check_file(old, f"--output {old}")
    check_file(old, f"--output {old}", in_place=True)
    (there := tmp_path / "there").mkdir()
    (link := tmp_path / "link.csv").symlink_to(there / "new.csv")
    check_file(link, f"--output {link}")  # what it leads to is written
    check_file(Path("/dev/null"), "--output /dev/null")


def test_launches_are_recorded_by_our_runtime(luthier: Luthier) -> None:
    code, _, errors = luthier("record", "--device", "emulator:gfx90a", "--stack", "rocm", "--", "true")
    assert code == 2 and errors.endswith("our own HIP runtime: give --stack luthier, or luthier-X.Y\n")
