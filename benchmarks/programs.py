"""What does a tool cost a whole program, from its start to its end? Every HIP program of the tests, on the emulator.

In: nothing, or names of programs; `--repeats N`. Out: a table on stdout, and all programs' in programs.md. Each program
runs bare, under the empty tool and under counting tools, as `luthier exec` runs it, one run at a time, all of them in
turn, so that what is compared ran at the same time; times are medians. Instructions are the emulator's own count of
what its waves executed. Needs clang-22 and HIP's headers, as the tests do.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from statistics import median
from types import ModuleType

from ways import parsed

from luthier_py.features.study.cells import cells_of
from luthier_py.features.study.runs import RunStatus, run_cell
from luthier_py.features.study.spec import BARE, StudiedProgram, Study, ToolUse
from luthier_py.host.hip import runtime_folder

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parent / "tests" / "programs"
BUILT = HERE.parent / "build" / "programs"
PAGE = HERE / "programs.md"
EVERY, STACKS = "# Every tool", "# Both stacks"  # the page's other sections, which every_tool.py and stacks.py write
TARGET = "gfx90a"
NOT_TIMED = {"errors", "faults"}  # they do what goes wrong
BANKS = "lds_bank_conflicts"
TOOLS = (BARE, "none", "instr_count", "opcode_histogram", BANKS)
COLD, CACHED = "instr_count, cold", "instr_count, cached"
SECONDS = 120
TEXT = """# Programs under tools

`python benchmarks/programs.py` wrote this page: {where}, the emulator as {target}, medians of {repeats} runs, in turn
with each other. The programs are those of `tests/programs`: small, so that their start is most of their time.

{table}

* *bare*: the program on the emulator, without a tool. The columns beside it: how many times as long the whole run takes
  under a tool, with what can be cached in the cache. `lds_bank_conflicts` runs where there is LDS.
  An empty place: that, or no end within {limit} seconds.
* *instructions*: wave instructions that the program's kernels execute, as the emulator counts them. The columns beside
  it: how many times as many they execute with a tool in them.
* *cold*: seconds with an empty cache: hooks are compiled, kernels are instrumented and made into code of this computer.
  *cached*: the same program and tool again.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """``seconds`` and ``instructions`` by tool; COLD among the seconds."""

    program: str
    seconds: Mapping[str, float]
    instructions: Mapping[str, int]

    def cells(self) -> list[str]:
        bare, counted = self.seconds[BARE], self.instructions[BARE]
        times = (f"{self.seconds[tool] / bare:.2f}" if tool in self.seconds else "" for tool in TOOLS[1:])
        more = (f"{self.instructions[tool] / counted:.2f}" if tool in self.seconds else "" for tool in TOOLS[2:])
        start = (f"{self.seconds[tool]:.2f}" for tool in (COLD, "instr_count"))
        return [self.program, f"{bare:.2f}", *times, f"{counted:,}", *more, *start]


HEADER = (
    "program", "bare, s", *(f"{tool}, x" for tool in TOOLS[1:]), "instructions", *(f"{tool}, x" for tool in TOOLS[2:]),
    COLD + ", s", CACHED + ", s",
)  # fmt: skip


def builder() -> ModuleType:
    """tests/programs/build.py."""
    spec = importlib.util.spec_from_file_location("program_builder", SOURCES / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def seconds(program: Path, ways: Iterable[str], **environment: str) -> dict[str, float]:
    """Of one run with each tool, one after the other; without those that take too long."""
    uses = tuple(ToolUse(way, *((None, {}) if way == BARE else parsed(way))) for way in ways)
    one = StudiedProgram(program.name, (str(program),), {"": ()}, environment)
    study = Study(program.name, BUILT, (f"emulator:{TARGET}",), 1, 1, SECONDS, (one,), uses, (), ())
    found = {}
    for cell in cells_of(study):
        outcome = run_cell(cell)
        if outcome["status"] == RunStatus.TIMEOUT.value:
            continue
        if outcome["exit_code"] != 0:
            sys.exit(f"{program.name} under {cell.tool}: {outcome['status']} {outcome['said']}")
        found[cell.tool] = outcome["seconds"]
    return found


def instructions(program: Path, tool: str) -> int | None:
    """Of all launches of a run, as the emulator counts them; None if it takes too long."""
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "profile"
        if not seconds(program, [tool], LUTHIER_DEVICE_PROFILE=str(profile)):
            return None
        return sum(json.loads(line)["instructions"] for line in profile.read_text().splitlines())


def cold_seconds(program: Path, tool: str) -> float:
    """With an empty cache but for the C libraries, which an installation builds once."""
    with tempfile.TemporaryDirectory() as folder:
        native = runtime_folder().parent
        (Path(folder) / "luthier").mkdir()
        (Path(folder) / "luthier" / native.name).symlink_to(native)
        return seconds(program, [tool], XDG_CACHE_HOME=folder)[tool]


def measure(program: Path, repeats: int) -> Row:
    """Every tool once, then every tool again."""
    has_lds = "__shared__" in (SOURCES / f"{program.name}.hip").read_text()
    tools = [tool for tool in TOOLS if has_lds or tool != BANKS]
    found = {tool: instructions(program, tool) for tool in tools}  # and what can be cached is cached
    counted = {tool: count for tool, count in found.items() if count is not None}
    timed: dict[str, list[float]] = defaultdict(list)
    for _ in range(repeats):
        for tool, took in {**seconds(program, counted), COLD: cold_seconds(program, "instr_count")}.items():
            timed[tool].append(took)
    medians = {tool: median(times) for tool, times in timed.items()}
    return Row(program.name, medians, counted)


def table(rows: list[Row]) -> str:
    lines = [HEADER, ("---", *("---:" for _ in HEADER[1:])), *(row.cells() for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(rows: list[Row], repeats: int) -> str:
    where = f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
    return TEXT.format(where=where, target=TARGET, repeats=repeats, limit=SECONDS, table=table(rows))


def main() -> None:
    known = sorted(path.stem for path in SOURCES.glob("*.hip") if path.stem not in NOT_TIMED)
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", nargs="*", default=known)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    make, rows = builder(), []
    if which(make.COMPILER) is None or not make.header_folders():
        print(f"left out: building the programs needs {make.COMPILER} and HIP's headers")
        return
    for name in given.programs:
        [program] = make.build_programs([name], BUILT, (TARGET,))
        rows.append(measure(program, given.repeats))
        print(" ".join(rows[-1].cells()), file=sys.stderr)
    print(table(rows))
    if given.programs == known:
        _, heading, rest = PAGE.read_text().partition(EVERY)
        PAGE.write_text(page(rows, given.repeats) + (f"\n{heading}{rest}" if heading else ""))


if __name__ == "__main__":
    main()
