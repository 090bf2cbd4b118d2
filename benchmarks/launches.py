"""What does a launch cost a program on the emulator: in a row, with events, fills and copies, waited for, under a tool?

In: `--before FOLDER`, a checkout to compare with; `--count N` launches of each step, `--repeats N`. Out: a table on
stdout, and in launches.md. One program (launches.c), one run at a time, checkouts and tools in turn; figures are the
best of the repeats, since whatever else the computer does can only add to them. Needs a C compiler.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from luthier_py.samples import sample

HERE = Path(__file__).resolve().parent
PAGE = HERE / "launches.md"
TARGET = "gfx90a"
SECONDS = 900
START = "from the first call to the end of the first launch"
TOOLS = {
    "bare": {},
    "instr_count, all together": {"LUTHIER_TOOL": "instr_count", "LUTHIER_TOOL_OPTIONS": "per_launch=0"},
    "instr_count, each launch": {"LUTHIER_TOOL": "instr_count"},
}
FOLDERS = """
from luthier_py.host.hip import runtime_folder
from luthier_py.host.preload import tool_library
print(runtime_folder(), tool_library(), sep="\\n")
"""
TEXT = """# What launches cost

`python benchmarks/launches.py` wrote this page: {machine}, the emulator as {target}. `benchmarks/launches.c` launches
`vector_add` with one work-group of one wave {count} times for each of the first three rows, {few} times for each of
those below; microseconds for each launch with what goes with it, until all of it is done, the best of {repeats} runs
in turn with each other{before}. Load when the page was written: {load} on {cores} cores.

{table}

A launch that is like one before goes from the program to the emulator through a ring in memory that both have, and is
begun, run and told in native code. With *all together* a tool's variables grow from launch to launch; with *each
launch* they are copied behind each one to memory that the tool's worker sees, and the tool prints a line of it.
"""


def folders(checkout: Path) -> tuple[str, str]:
    """Of a checkout: its HIP runtime, its tool library."""
    done = subprocess.run([sys.executable, "-c", FOLDERS], cwd=checkout, check=True, capture_output=True,
                          text=True, env={**os.environ, "PYTHONPATH": str(checkout)})
    library, tool = done.stdout.split()
    return library, tool


def run(program: Path, checkout: tuple[str, str], tool: str, count: int) -> dict[str, float]:
    library, preloaded = checkout
    chosen = TOOLS[tool]
    more = {"LD_PRELOAD": preloaded, **chosen} if chosen else {}
    environment = {**os.environ, "LUTHIER_DEVICE": f"emulator:{TARGET}", "LD_LIBRARY_PATH": library, **more}
    done = subprocess.run([program, sample("vector_add").path, str(count)], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, timeout=SECONDS)
    if done.returncode:
        sys.exit(f"under {tool}: exit code {done.returncode}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def shown(seconds: Sequence[float], unit: float) -> str:
    return " -> ".join(f"{each * unit:,.1f}" for each in seconds)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--before", type=Path, help="a checkout to compare with")
    parser.add_argument("--count", type=int, default=15_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    checkouts = [*([options.before.resolve()] if options.before else []), HERE.parent]
    found: dict[tuple[str, str], list[list[float]]] = defaultdict(lambda: [[] for _ in checkouts])
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "launches"
        libraries = [folders(checkout) for checkout in checkouts]
        subprocess.run(["cc", "-O2", HERE / "launches.c", "-o", program, f"-L{libraries[-1][0]}",
                        "-l:libamdhip64.so.7"], check=True)
        for _ in range(options.repeats):
            for tool in TOOLS:
                for number, library in enumerate(libraries):
                    for step, seconds in run(program, library, tool, options.count).items():
                        found[step, tool][number].append(seconds)
    rows = ["| " + " | ".join(["step", *TOOLS]) + " |", "| --- |" + " ---: |" * len(TOOLS)]
    for step in dict.fromkeys(step for step, _ in found):
        unit, name = (1e3, f"{step}, ms") if step == START else (1e6, step)
        cells = [shown([min(each) for each in found[step, tool]], unit) for tool in TOOLS]
        rows.append("| " + " | ".join([name, *cells]) + " |")
    table = "\n".join(rows)
    before = "; *before -> now* where another checkout was measured as well" if options.before else ""
    text = TEXT.format(machine=f"{platform.machine()}, Python {platform.python_version()}", target=TARGET, table=table,
                       count=f"{options.count:,}", few=f"{options.count // 15:,}", repeats=options.repeats,
                       before=before, load=f"{os.getloadavg()[0]:.1f}", cores=os.cpu_count())
    print(text)
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
