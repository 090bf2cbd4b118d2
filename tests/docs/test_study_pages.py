"""The numbers of the study pages: what the emulator counts itself, what their command prints, and hand calculations."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice, LaunchProfile
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented, run_original
from luthier_py.features.study.cells import cells_of
from luthier_py.features.study.spec import read_study
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import SAMPLES, sample

DOCS = Path(__file__).parents[2] / "docs"
STUDIES = sorted((DOCS / "studies").glob("*.toml"))
UNITS = ("VALU", "SALU", "SMEM", "VMEM", "LDS", "control")
ITEM = re.compile(r" +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)  (ds_\w+ .+?) +(\w+\.hip:\d+) +(\w+)")


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text()


def numbers(text: str, header: str) -> dict[str, list[float]]:
    """By name, the rows of the table that begins with these words."""
    lines = text.splitlines()
    at = next(n for n, line in enumerate(lines) if line.split() == header.split() and line.startswith("    "))
    rows = {}
    for line in lines[at + 1 :]:
        if not line.startswith("    "):
            break
        *values, name = line.split()
        rows[name] = [float(value) for value in values]
    return rows


def emulated(name: str) -> LaunchProfile:
    code = sample(name).path.read_bytes()
    device = EmulatorDevice(load(code).target)
    run_original(device, code, launch_of(sample(name)))
    assert device.profile is not None
    return device.profile


def unit(mnemonic: str) -> str:
    if mnemonic.startswith(("s_cbranch", "s_branch", "s_waitcnt", "s_barrier", "s_endpgm", "s_nop", "s_sleep")):
        return "control"
    starts = {"v_": "VALU", "s_load": "SMEM", "s_": "SALU", "ds_": "LDS", "global_": "VMEM", "buffer_": "VMEM"}
    return next(name for start, name in starts.items() if mnemonic.startswith(start))


def test_instruction_counts_are_the_emulators() -> None:
    text = page("instruction-counts")
    counts, lanes, units = numbers(text, "waves lanes"), numbers(text, "lanes"), numbers(text, " ".join(UNITS))
    assert len(counts) == 9 and counts.keys() == lanes.keys() == units.keys() <= {one.name for one in SAMPLES}
    for name, (by_wave, by_lane) in counts.items():
        profile = emulated(name)
        assert (by_wave, by_lane) == (profile.total, profile.total_lanes), name
        assert lanes[name] == [round(profile.total_lanes / profile.total, 2)], name
        sums = dict.fromkeys(UNITS, 0)
        for mnemonic, count in profile.opcodes().items():
            sums[unit(mnemonic)] += count
        assert units[name] == [round(100 * sums[one] / profile.total, 1) for one in UNITS], name


def test_saxpy_by_hand() -> None:
    assert numbers(page("instruction-counts"), "waves lanes")["saxpy"] == [16 * 25, 16 * 25 * 64 - 17 * 24]


def bank_counts(name: str) -> list[dict[str, int | str]]:
    code, tool = sample(name).path.read_bytes(), load_tool("lds_bank_conflicts", {"order": "pc"})
    made, device = instrument(code, tool), EmulatorDevice(load(code).target)
    ran = run_instrumented(device, made, tool, launch_of(sample(name)))
    return list(ran.report["instructions"])


@pytest.mark.parametrize("name", ["transpose", "transpose_padded", "reduce_strided", "reduce_padded"])
def test_bank_conflicts_are_what_the_tool_reports(name: str) -> None:
    text = page("bank-conflicts")
    keys = "accesses", "cycles", "conflict_free_cycles", "conflict_cycles", "worst_way", "instruction", "source"
    rows = bank_counts(name)
    shown = [match.groups() for match in map(ITEM.fullmatch, (line[4:] for line in text.splitlines())) if match]
    assert [row[:-1] for row in shown if row[-1] == name] == [tuple(str(row[key]) for key in keys) for row in rows]
    free, conflicts = (sum(int(row[key]) for row in rows) for key in ("conflict_free_cycles", "conflict_cycles"))
    assert numbers(text, "conflict-free conflict")[name] == [free, conflicts]


def test_strides_by_hand() -> None:
    """A group's lanes are so many words apart, and each wants so many: the most words of one bank, summed over groups.
    Lanes of 128 bits are served in two pieces of four neighbours, 20 lanes apart."""
    crossed = [[*range(a, a + 4), *range(b, b + 4)] for a, b in ((0, 20), (4, 16), (8, 28), (12, 24))]
    loads = {
        1: [list(range(32))] * 2,
        2: [list(range(16))] * 4,
        4: crossed * 2,
    }
    for stride, cycles in numbers(page("bank-conflicts"), "ds_read_b32 ds_read_b64 ds_read_b128").items():
        for (words, groups), cycle in zip(loads.items(), cycles, strict=True):
            assert cycle == sum(busiest([lane * int(stride) for lane in group], words) for group in groups), stride


def busiest(addresses: list[int], words: int) -> int:
    wanted = {address + word for address in addresses for word in range(words)}
    return max(sum(1 for word in wanted if word % 32 == bank) for bank in range(32))


@pytest.fixture(scope="module")
def studies() -> ModuleType:
    """docs/studies/run.py."""
    spec = importlib.util.spec_from_file_location("studies_run", DOCS / "studies" / "run.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_marked_blocks_are_what_their_commands_print(studies: ModuleType) -> None:
    """Of those that need no study before; `make studies` writes them."""
    blocks = [found for path in studies.pages() for found in studies.BLOCK.finditer(path.read_text())]
    assert sum(studies.BUILT.name in found[1] for found in blocks) >= 9
    commands = [found for found in blocks if found[1].startswith("luthier run")]
    assert len(commands) >= 2 and all(studies.block(found[1]) == found[0] for found in commands)


def test_what_cannot_be_made_again_stays(studies: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "before\n\n<!-- shown: {} -->\n\n    old\n\n<!-- end -->\n\nbehind\n"
    for name, command in (("good", "printf 'one\\n\\n  two\\n'"), ("bad", "false | cat"), ("table", "echo '| a |'")):
        (tmp_path / f"{name}.md").write_text(text.format(command))
    for name, value in (("DOCS", tmp_path), ("ROOT", tmp_path), ("HERE", tmp_path)):
        monkeypatch.setattr(studies, name, value)
    assert studies.main() == 1 and (tmp_path / "bad.md").read_text() == text.format("false | cat")
    assert "-->\n\n    one\n\n      two\n\n<!-- end -->\n\nbehind" in (tmp_path / "good.md").read_text()
    assert "-->\n\n| a |\n\n<!-- end -->" in (tmp_path / "table.md").read_text()


@pytest.mark.parametrize("study", STUDIES, ids=lambda path: path.stem)
def test_every_study_can_be_planned(study: Path) -> None:
    found = read_study(study)
    assert cells_of(found) and all(len(tool.tool or "") for tool in found.tools)
    pictures = re.findall(r"!\[.*\]\((.+\.png)\)", page(study.stem))
    assert pictures and {*pictures} <= {f"{study.stem}-{figure.name}.png" for figure in found.figures}
    assert all((DOCS / name).read_bytes().startswith(b"\x89PNG") for name in pictures)


@pytest.mark.slow
@pytest.mark.parametrize("study", STUDIES, ids=lambda path: path.stem)
def test_the_command_gives_the_page(study: Path, tmp_path: Path) -> None:
    main = "from luthier_py.cli import main; main()"
    command = [sys.executable, "-c", main, "study", str(study), "-o", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "summary.txt").read_text() in done.stdout
    tables = done.stdout.split("\n\n")[2:-1]  # without the title, times and the verdict
    text = page(study.stem)
    assert tables and all(f"    {line}\n" in text for table in tables for line in table.splitlines()[2:])
