"""`luthier faults`: what it prints, its files, its exit codes; and docs/faults.md's example."""

from __future__ import annotations

import csv
import gc
import json
import re
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from luthier_py.samples import FOLDER

Luthier = Callable[..., tuple[int, str, str]]
PAGE = Path(__file__).resolve().parents[3] / "docs" / "faults.md"
SAXPY = ("run", FOLDER / "saxpy.co", "--kernel", "saxpy", "--grid", "4", "--block", "256", "--record")
ARGUMENTS = "u32=1000", "f32=0.7", "in:f32[1000]=random:1", "inout:f32[1000]=random:2"


@pytest.fixture
def recorded(luthier: Luthier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert luthier(*SAXPY, "saxpy.lrec", *ARGUMENTS)[0] == 0
    gc.collect()  # its memory is where that of replays in this process is to be


def test_the_example(luthier: Luthier, recorded: None) -> None:
    """The page's tables are what the command prints; a fault of them, injected again, is what it was."""
    code, out, err = luthier("faults", "saxpy.lrec", "--faults", "100")
    (shown,) = re.findall(r"(?m)^    100 faults, (?:.*\n)*?(?=\n[^ \n])", PAGE.read_text())
    parts = dedent(shown).split("...\n")
    assert (code, err, len(parts)) == (0, "", 3) and all(part in out for part in parts)
    with open("faults/faults.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["number"]) for row in rows] == list(range(100))
    row = next(row for row in rows if row["effect"] == "sdc")
    gc.collect()
    code, out, _ = luthier(*row["again"].split()[1:], "--json")
    (again,) = json.loads(out)["replays"]
    hit, difference = again["report"]["hit"], again["differences"][0]["text"]
    assert code == 1 and difference == row["why"]
    assert (str(hit["pc"]), str(hit["before"]), str(hit["after"])) == (row["pc"], row["before"], row["after"])


def test_two_launches_and_data(luthier: Luthier, recorded: None) -> None:
    assert luthier(*SAXPY, "small.lrec", "u32=3", *ARGUMENTS[1:])[0] == 0
    gc.collect()
    given = "faults", "saxpy.lrec", "small.lrec", "--faults", "6", "--models", "value,zero", "-O", "INSTRUMENT=float"
    code, out, err = luthier(*given, "--json")
    facts = json.loads(out)
    assert (code, err, facts["faults"], facts["all"]["judged"]) == (0, "", 12, 12)
    assert facts["all"]["sdc"]["count"] == 12 and [row["name"] for row in facts["by"]["kernel"]] == ["saxpy"]
    again = luthier(*given)
    assert again[0] == 0 and again[1].startswith("12 faults, seed 1;")
    assert again[1].endswith("-> faults/faults.csv\n-> faults/summary.txt\n-> faults/summary.json\n")


def test_what_makes_no_sense(luthier: Luthier, recorded: None) -> None:
    for options, words in (
        (("--models", "flip,other"), "'other' is none; choose some of flip,flip_two,value,zero,stuck_0"),
        (("saxpy.lrec",), "saxpy.lrec is named twice"),
        (("-O", "INSTRUMENT=pc = 1"), "executes no instruction that was chosen and writes a register"),
        (("-O", "MODEL=zero"), "option MODEL: a campaign draws that; see its models"),
        (("--device", "hip"), "what a fault does is judged by the emulator"),
        (("none.lrec",), "No such file"),
    ):
        gc.collect()
        code, out, err = luthier("faults", "saxpy.lrec", "--faults", "1", *options)
        assert (code, out) == (1, "") or code == 2, (code, out)
        assert words in err, err
