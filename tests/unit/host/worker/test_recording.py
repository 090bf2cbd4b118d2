"""Launches of programs and of an installed library, recorded as they run and replayed alone."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from rocm_stack import lacking
from stand_ins import stand_in
from test_execute import Program, luthier

from luthier_py.base.errors import Invalid
from luthier_py.host.hip import runtime_folder
from luthier_py.host.worker.device.recording import LaunchRecorder, RecordSettings, parse_launches, record_settings

HERE = Path(__file__).parent
TARGETS = ("gfx90a", "gfx942", "gfx1100", "gfx1201")
PROGRAMS = (
    "bitonic_sort", "grid_sync", "graphs", "histogram", "lud_diagonal", "managed_memory", "nbody", "pointers", "pools",
    "registered", "scan", "softmax", "symbols", "transpose",
)  # fmt: skip
WAITING = 1_000_000  # instructions of the launch of grid_sync that has many work-groups; the others have fewer
Rows = list[dict[str, Any]]


def replayed(files: list[Path], *options: str | Path, code: int = 0, **variables: str) -> Rows:
    done = luthier("replay", *files, "--json", *options, **variables)
    assert done.returncode == code, done.stderr + done.stdout
    rows: Rows = json.loads(done.stdout)["replays"]
    assert not any("error" in row for row in rows), rows
    return rows


def recorded(folder: Path, target: str, *command: str | Path, **variables: str) -> tuple[list[Path], list[int]]:
    """Files, and the instructions that the emulator counted in a run of its own."""
    done = luthier("record", "-o", folder, "--device", f"emulator:{target}", "--", *command, **variables)
    assert (done.returncode, done.stdout) == (0, "PASSED\n"), done.stderr
    files = sorted(folder.iterdir())
    assert len(done.stderr.splitlines()) == len(files)
    profile = folder.parent / f"{folder.name}.profile"
    alone = luthier("exec", "--device", f"emulator:{target}", "--", *command, LUTHIER_DEVICE_PROFILE=str(profile),
                    **variables)
    assert alone.returncode == 0, alone.stderr
    return files, [json.loads(line)["instructions"] for line in profile.read_text().splitlines()]


@pytest.mark.parametrize(("name", "target"), [("pointers", "gfx1201"), *(
    pytest.param(name, target, marks=pytest.mark.slow) for name in PROGRAMS for target in TARGETS)])
def test_programs(name: str, target: str, program: Program, tmp_path: Path) -> None:
    """Each launch of it, alone and under a tool: counts are those of a run that nobody records, but where many
    work-groups wait for each other, which several processors run: how often they look is another number each time."""
    files, counted = recorded(tmp_path / "kept", target, program(name, targets=(target,)))
    bare, tooled = replayed(files), replayed(files, "-t", "instr_count")
    found = zip(counted, *([row[which] for row in bare] for which in ("device_instructions", "recorded_instructions")),
                [row["report"]["instructions"] for row in tooled], strict=True)
    assert all(len(set(counts)) == 1 for counts in found if name != "grid_sync" or max(counts) < WAITING), name
    assert all(row["same"] and row["compared_bytes"] for row in bare + tooled)


def test_some_of_the_launches(program: Program, tmp_path: Path) -> None:
    pointers = program("pointers")
    device, folder = ("--device", "emulator:gfx90a"), tmp_path / "kept"
    done = luthier("record", "-o", folder, "--launches", "3:6", "--kernels", "^co", *device, "--", pointers)
    assert done.returncode == 0, done.stderr
    assert sorted(path.stem for path in folder.iterdir()) == ["00003-consume", "00004-count", "00005-count"]
    one = luthier("record", "-o", tmp_path / "one.lrec", *device, "--", pointers)
    assert one.returncode == 0 and one.stderr.startswith("luthier: launch 0 of through(unsigned int): ")
    nothing = luthier("record", "-o", tmp_path / "none", "--kernels", "other", *device, "--", pointers)
    assert nothing.returncode == 3 and "no launch was recorded" in nothing.stderr and not (tmp_path / "none").exists()


@pytest.mark.slow
def test_launches_that_need_the_host_are_not_kept(program: Program, tmp_path: Path) -> None:
    done = luthier("record", "-o", tmp_path / "kept", "--device", "emulator:gfx90a", "--", program("printing"))
    assert done.returncode == 1 and done.stderr.count("is not recorded: it called the host") == 2, done.stderr
    assert [path.stem for path in (tmp_path / "kept").iterdir()] == ["00000-checked"]


def test_on_another_device_arguments_are_moved(program: Program, tmp_path: Path) -> None:
    """The emulator's HIP runtime stands for that of a GPU: memory is where it gives some."""
    luthier("record", "-o", tmp_path, "--launches", ":3", "--device", "emulator:gfx90a", "--", program("pointers"))
    luthier("record", "-o", tmp_path, "--launches", "0", "--device", "emulator:gfx90a", "--", program("symbols"))
    files = sorted(path for path in tmp_path.iterdir() if "00001" not in path.name)
    rows = replayed(files, "--device", "hip", code=1, LUTHIER_DEVICE="emulator:gfx90a",
                    LD_LIBRARY_PATH=str(runtime_folder()))
    different = {Path(row["file"]).stem: [each["buffer"] for each in row["differences"]] for row in rows}
    stored = ["argument 0", "argument 1"]  # addresses
    assert different == {"00000-polynomial": [], "00000-through": [], "00002-publish": stored}
    assert all(row["compared_bytes"] and row["device_instructions"] is None for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_bitsandbytes(target: str, tmp_path: Path) -> None:
    """Kernels that nobody here compiled: all that the program launches, again, under a tool. See gemm_4bit.lrec."""
    spec = importlib.util.find_spec("bitsandbytes")
    if spec is None or spec.origin is None:
        lacking("no bitsandbytes: pip install --no-deps bitsandbytes")
    library = Path(spec.origin).parent / "libbitsandbytes_rocm715.so"
    stand_in(library, tmp_path)
    path = os.pathsep.join([str(runtime_folder()), str(tmp_path)])
    command = sys.executable, HERE / "bitsandbytes_program.py", library, "few"
    files, counted = recorded(tmp_path / "kept", target, *command, LD_LIBRARY_PATH=path)
    rows = [row for first in range(0, len(files), 4) for row in replayed(files[first : first + 4], "-t", "instr_count")]
    assert all(row["same"] for row in rows) and len(files) == len(counted) > 30
    assert [row["report"]["instructions"] for row in rows] == counted == [row["recorded_instructions"] for row in rows]


def test_what_is_chosen_is_said_in_the_environment() -> None:
    given = RecordSettings(Path("/somewhere"), "k.*", range(3, 9), Path("/journal"))
    assert record_settings(given.environment()) == given and record_settings({}) is None
    assert [parse_launches("it", text) for text in ("4", "4:", ":4", "2:4")] == [
        range(4, 5), range(4, 1 << 63), range(4), range(2, 4)]
    for wrong in ("-1", "a", "1:b", "1:2:3", ":x", "5:2"):
        with pytest.raises(Invalid, match="LUTHIER_RECORD_LAUNCHES="):
            record_settings({"LUTHIER_RECORD": "x", "LUTHIER_RECORD_LAUNCHES": wrong})


@pytest.mark.parametrize("with_journal", [False, True])
def test_no_two_take_one_name(with_journal: bool, tmp_path: Path) -> None:
    """Sixteen at once, each for four launches; an earlier run's files keep their names from those without a journal."""
    (run := tmp_path / "run").mkdir()
    settings = RecordSettings(tmp_path / "kept", journal=run / "journal" if with_journal else None)
    LaunchRecorder(settings)._path(0, "k")
    (tmp_path / "kept" / "00001-k.lrec").write_bytes(b"earlier")

    def taken(_: int) -> list[Path]:
        recorder = LaunchRecorder(settings)
        return [recorder._path(number, "k") for number in range(4)]

    with ThreadPoolExecutor(16) as pool:
        paths = [path for each in pool.map(taken, range(16)) for path in each]
    assert len({*paths}) == 64 and tmp_path / "kept" / "00000-k.lrec" not in paths
    assert (tmp_path / "kept" / "00001-k.lrec" in paths) is with_journal
    assert (tmp_path / "kept" / "00001-k.lrec").read_bytes() == b"earlier"
