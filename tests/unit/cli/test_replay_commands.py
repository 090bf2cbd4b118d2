"""`luthier run --record`, and `luthier replay`: what they print, and their exit codes."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from luthier_py.samples import FOLDER

Luthier = Callable[..., tuple[int, str, str]]
ARGUMENTS = "u32=1000", "f32=0.7", "in:f32[4000]=random:1", "inout:f32[4000]=random:2"
HOW = "--kernel", "saxpy", "--grid", "8", "--block", "256"


@pytest.fixture
def recorded(luthier: Luthier, tmp_path: Path) -> Path:
    path = tmp_path / "it.lrec"
    code, out, err = luthier("run", FOLDER / "saxpy.co", *HOW, "--record", path, *ARGUMENTS)
    gc.collect()  # its memory is where that of replays in this process is to be
    assert (code, err) == (0, "") and f"report -> {path}" in out and path.stat().st_size < 20_000
    return path


def test_a_launch_again_under_a_tool_and_checks(luthier: Luthier, recorded: Path) -> None:
    code, out, err = luthier("replay", recorded, "-t", "instr_count", "--check", "all")
    assert code == 0 and err.endswith("nothing found in 1 launch\n"), err
    head, counted, executed, verdict, same = out.splitlines()
    assert head == f"{recorded}: saxpy, 8 x 1 x 1 work-groups of 256 x 1 x 1, on gfx90a"
    assert "kernel instructions 560, " in counted and "1 instrumented by instr_count" in verdict
    assert executed.endswith(" of them the tool's; the others as recorded")
    assert same == "  the same: 8192 bytes in 2 pages"


def test_cycles_of_the_model_are_those_of_the_run(luthier: Luthier, recorded: Path) -> None:
    code, out, _ = luthier("run", FOLDER / "saxpy.co", *HOW, "--clock", "model", *ARGUMENTS)
    (cycles,) = (line.strip() for line in out.splitlines() if "cycles by the model" in line)
    gc.collect()
    code, out, _ = luthier("replay", recorded, "--clock", "model")
    assert code == 0 and [line.strip() for line in out.splitlines() if "cycles by" in line] == [cycles]


def test_one_that_is_damaged_and_one_that_is_not(luthier: Luthier, recorded: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.lrec"
    damaged.write_bytes(recorded.read_bytes()[:-1])
    code, out, err = luthier("replay", damaged, tmp_path / "none.lrec", recorded, "--json")
    first, second, third = json.loads(out)["replays"]
    assert code == 1 and first.keys() == second.keys() == {"file", "error"} and third["same"]
    assert err == f"luthier: {first['error']}\nluthier: {second['error']}\n"
    assert "damaged or not complete" in first["error"] and "No such file" in second["error"]
    assert third["recorded_instructions"] == third["device_instructions"] == 560


def test_what_makes_no_sense(luthier: Luthier, recorded: Path, tmp_path: Path) -> None:
    for options, words in (
        (("replay", recorded, recorded, "-t", "none", "--report", tmp_path), "there is no tool that could take it"),
        (("replay", recorded, recorded, "-t", "instr_count", "--report", tmp_path), "give one FILE"),
        (("replay", recorded, "--device", "elsewhere"), "device elsewhere is not available"),
        (("run", FOLDER / "saxpy.co", *HOW, "-t", "none", "--record", tmp_path / "y", "--shuffle", "2", *ARGUMENTS),
         "leave out -t and --shuffle"),
        (("replay", recorded, "-t", "instr_count", "--lines", "nowhere"), "nowhere"),
        (("check", "--write", tmp_path / "budget.toml", "--json", "--", "true"), "--write has none"),
        (("record", "--launches", "3-5", "--", "true"), "--launches=3-5: give numbers of launches as A:B"),
        (("record", "--kernels", "(", "--", "true"), "--kernels=(: give a regular expression"),
        (("record", "--", "true"), "luthier: record: for kernels on the emulator; give a device, as --device emul"),
    ):
        code, _, err = luthier(*options)
        assert code in (1, 2) and words in err, err
    assert not (tmp_path / "y").exists()
