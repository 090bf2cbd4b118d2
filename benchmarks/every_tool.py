"""What does each registered tool cost? Executed instructions and the whole run of a few programs, side by side.

In: nothing; `--missing`: only tools that the page does not have yet; `--repeats N`. Out: a table on stdout, and in
programs.md. Instructions are the emulator's own count of what waves executed, without and with the tool: exact, the
same in each run, and what to compare. Times are medians, each beside the program alone in the same minutes; they are
mostly start. Needs clang-22 and HIP's headers, as the tests do.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from statistics import median

from programs import BUILT, EVERY, PAGE, STACKS, TARGET, builder, instructions, seconds
from ways import registered, way_of

from luthier_py.features.study.spec import BARE

PROGRAMS = ("histogram", "nbody", "scan")  # between them: atomics, LDS, barriers, loops, floating point
ROW = re.compile(r"^\| `([^`]+)` \|.*$", re.MULTILINE)
TEXT = """{heading}

`python benchmarks/every_tool.py` wrote this section: every registered tool on three of the programs, on the emulator
as {target}. The first columns: how many times as many wave instructions the program's kernels execute with the tool in
them (alone: {alone}), exact counts that repeat. *mean*: their
geometric mean. *whole run*: the geometric mean of how many times as long the runs took, caches warm, beside the
program alone in the same minutes: medians of {repeats} run(s) on a busy machine, of programs that mostly start. 1.00:
nothing is inserted, or there was nothing to count.
`--missing` adds tools that are new.

{table}
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one program under one tool; by itself where that is BARE."""

    instructions: int
    seconds: float


def measured(program: Path, ways: Iterable[str], repeats: int) -> dict[str, Cost]:
    """Those that end in time, in turn with the program alone."""
    found = {way: instructions(program, way) for way in (BARE, *ways)}  # and what can be cached is cached
    counted = {way: count for way, count in found.items() if count is not None}
    times: dict[str, list[float]] = defaultdict(list)
    for _ in range(repeats):
        for way, took in seconds(program, counted).items():
            times[way].append(took)
    return {way: Cost(counted[way], median(each)) for way, each in times.items()}


def row(way: str, costs: Mapping[str, Mapping[str, Cost]]) -> str:
    own = {name: (found[way], found[BARE]) for name, found in costs.items() if way in found}
    more = {name: cost.instructions / bare.instructions for name, (cost, bare) in own.items()}
    cells = [f"{more[name]:.2f}" if name in more else "late" for name in costs]
    longer = [cost.seconds / bare.seconds for cost, bare in own.values()]
    return f"| {' | '.join([f'`{way}`', *cells, mean(more.values()), mean(longer)])} |"


def mean(ratios: Iterable[float]) -> str:
    logs = [math.log(ratio) for ratio in ratios]
    return f"{math.exp(sum(logs) / len(logs)):.2f}" if logs else ""


def table(rows: Mapping[str, str]) -> str:
    header = ("tool", *(f"{name}, x" for name in PROGRAMS), "mean, x", "whole run, x")
    lines = (header, ("---", *["---:"] * (len(header) - 1)))
    return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), *(rows[way] for way in sorted(rows))])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--missing", action="store_true", help="only tools that the page does not have")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    make = builder()
    if which(make.COMPILER) is None or not make.header_folders():
        print(f"left out: building the programs needs {make.COMPILER} and HIP's headers")
        return
    before, _, rest = PAGE.read_text().partition(EVERY)
    section, heading, after = (rest or before).partition(STACKS)
    ways = list(map(way_of, registered()))
    rows = {found[1]: found[0] for found in ROW.finditer(section) if found[1] in ways} if given.missing else {}
    costs = {}
    for program in make.build_programs(PROGRAMS, BUILT, (TARGET,)):
        costs[program.name] = measured(program, [way for way in ways if way not in rows], given.repeats)
        print(program.name, file=sys.stderr)
    rows |= {way: row(way, costs) for way in ways if way not in rows}
    print(table(rows))
    alone = ", ".join(f"{name} {found[BARE].instructions:,}" for name, found in costs.items())
    text = TEXT.format(heading=EVERY, target=TARGET, alone=alone, repeats=given.repeats, table=table(rows))
    others = (before if rest else section).rstrip(), f"\n{heading}{after}" if heading else ""
    PAGE.write_text(f"{others[0]}\n\n{text}{others[1]}")


if __name__ == "__main__":
    main()
