"""The pages of the tools: the command of each is typed, and what it prints has the lines that the page shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample

ROOT = Path(__file__).parents[2]
PAGES = {page.parent.name: page for page in sorted((ROOT / "tools").glob("*/README.md"))}
BLOCK = re.compile(r"(?:^    .*\n)+", re.MULTILINE)
CHANGING = re.compile(r"0x[0-9a-f]{8,}")  # addresses in memory
HIP = ("compressibility",)


def shown(name: str) -> tuple[str, list[str]]:
    """The page's command, and the lines that it shows behind that."""
    blocks = BLOCK.findall(PAGES[name].read_text())
    [command, *rest] = [re.sub("^    ", "", block, flags=re.MULTILINE) for block in blocks]
    assert command.startswith("luthier run ")
    lines = [re.sub(r" ?\.\.\.$", "", line) for block in rest for line in block.splitlines()]
    return command, [line for line in lines if line and not line.startswith("luthier ")]


@pytest.mark.parametrize("name", sorted(PAGES.keys() - {"none"}))
def test_the_command_prints_what_the_page_shows(
    name: str, typed: Callable[[str], Any], require_tool: Callable[[str], str]
) -> None:
    if name in HIP:
        require_tool("clang++-22")
    command, lines = shown(name)
    here = command.replace(f"-t {name} ", f"-t {PAGES[name].parent} ")  # not one that happens to be installed
    assert here != command
    done = typed(here)
    assert done.code == 0, done.err
    printed = CHANGING.sub("", done.out + done.err).splitlines()
    for line in lines:
        wanted = CHANGING.sub("", line).rstrip()
        assert any(each.startswith(wanted) for each in printed), f"{line}\nis not in\n" + "\n".join(printed[:40])


def test_pages_show_lines() -> None:
    assert sum(len(shown(name)[1]) for name in PAGES.keys() - {"none"}) > 8


def test_what_counts_once_is_what_the_table_says() -> None:
    """instr_count's table, by its two options."""
    rows = re.findall(r"^\| ([01]) \| ([01]) \| .* \| (\d+) \|$", PAGES["instr_count"].read_text(), re.MULTILINE)
    code, launch = sample("saxpy").path.read_bytes(), launch_of(sample("saxpy"))
    assert len(rows) == 4
    for by_wave, without_off, shown in rows:
        tool = load_tool("instr_count", {"COUNT_WARP_LEVEL": by_wave, "EXCLUDE_PRED_OFF": without_off})
        made = instrument(code, tool)
        ran = run_instrumented(EmulatorDevice(made.obj.target), made, tool, launch)
        assert ran.report["instructions"] == int(shown)
