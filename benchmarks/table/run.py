"""Samples and programs, compiled for every generation at every level: right bare, and under every tool?

In: `--targets`, `--levels`, `--jobs`, `--tools N` for each cell, `--seed`, `--only` samples or programs, `--names`.
Out: build/table/rows.jsonl, a line for each run, and with `--page` table.md. What is there is not run again, unless it
was not in order and our sources are others by now; `--fresh` repeats whatever other sources have run, `--tables` runs
nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from shutil import which
from types import ModuleType

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(HERE), str(HERE.parent), str(HERE.parent / "pressure")]

import conftest  # noqa: E402, F401  (makes samples importable)
import tried_programs  # noqa: E402
import tried_samples  # noqa: E402
from cells import (  # noqa: E402
    BARE,
    CRASH,
    LATE,
    LEVELS,
    NOT_COMPILED,
    REFUSED,
    SAMPLE,
    TARGETS,
    WRONG,
    Cell,
    Row,
    chosen_tools,
    digest,
    every_cell,
    source_of,
)
from narrowed import RECORDS  # noqa: E402
from table_page import page  # noqa: E402
from truth import TRUTHS  # noqa: E402
from ways import completed  # noqa: E402

from luthier_py.base.errors import DeviceError, LuthierError  # noqa: E402
from luthier_py.base.storage import CACHE  # noqa: E402
from luthier_py.features.study.cells import our_content  # noqa: E402
from luthier_py.rewrite.clang.search import CLANG  # noqa: E402

FOLDER = ROOT / "build" / "table"
PAGE = HERE.parent / "table.md"
HOWS = completed((*(way for way in TRUTHS if not way.startswith(RECORDS)), RECORDS))
LONGEST = 1000  # of an outcome's characters
Task = tuple[Cell, list[str]]
Key = tuple[Cell, str, str]


@cache
def version() -> str:
    """A hash of our sources, those of the tools and of what judges them."""
    files = sorted(path for folder in (ROOT / "tools", HERE, HERE.parent / "pressure") for path in folder.rglob("*")
                   if path.suffix in (".py", ".hip"))
    return digest([our_content().encode(), *(file.read_bytes() for file in files)])


def tried(task: Task) -> list[Row]:
    """One cell, under all tools that are asked for; if it is not right without one, no other."""
    cell, tools = task
    module = tried_samples if cell.kind == SAMPLE else tried_programs
    rows: list[Row] = []
    for tool in tools:
        start, observed = time.monotonic(), True
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            try:
                outcome = not_compiled(module, cell)
                if not outcome:
                    outcome, observed = module.tried(cell, tool)
            except Exception as error:  # whatever it is, it is a line of the table
                outcome = named(error)
        rows.append(Row(cell, tool, outcome[:LONGEST], observed, source_of(cell.kind, cell.name), version(),
                        time.monotonic() - start))
        if outcome.startswith(NOT_COMPILED) or (not tool and outcome):
            break
    return rows


def not_compiled(module: ModuleType, cell: Cell) -> str:
    """Why, by the compiler's first error; nothing where it is compiled."""
    try:
        module.compiled(cell)
    except RuntimeError as error:
        lines = str(error).strip().splitlines()
        return f"{NOT_COMPILED}: {next((line for line in lines if 'error:' in line), lines[-1])}"
    return ""


def named(error: Exception) -> str:
    """What became of a run, of the error that ended it."""
    if isinstance(error, subprocess.TimeoutExpired) or "time limit" in str(error):
        return LATE
    if isinstance(error, DeviceError):
        return f"{WRONG}: {error}"
    if isinstance(error, LuthierError):
        return f"{REFUSED}: {error}"
    return f"{CRASH}: {type(error).__name__}: {error}"


def main() -> int:
    given = options()
    FOLDER.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault(CACHE, str(FOLDER / "cache"))
    if compiler := which("clang++-22"):
        os.environ.setdefault(CLANG, compiler)
    kept = FOLDER / "rows.jsonl"
    known = {key_of(row): row for row in read(kept)} if kept.exists() else {}
    cells = every_cell(given.targets, given.levels, given.seed)
    there = set(every_cell([target for target, _ in TARGETS], LEVELS, given.seed))
    known = {key: row for key, row in known.items() if row.tool in (BARE, *HOWS) and row.cell in there
             and row.source == source_of(row.cell.kind, row.cell.name)}
    if not given.tables:
        good = {key: row for key, row in known.items()
                if row.version == version() or not (row.outcome or given.fresh)}
        tasks = [(cell, left_of(cell, good, given)) for cell in cells
                 if given.only in (None, cell.kind + "s") and (not given.names or cell.name in given.names)]
        with kept.open("a", buffering=1) as file:  # the last line of a run holds; several campaigns may write
            for row in campaign([task for task in tasks if task[1]], given.jobs):
                known[key_of(row)] = row
                file.write(json.dumps(asdict(row)) + "\n")
    text = page(list(known.values()), HOWS, version())
    print(text)
    if given.page:
        PAGE.write_text(text)
    return int(any(row.sort in (WRONG, CRASH) for row in known.values()))


def left_of(cell: Cell, known: Mapping[Key, Row], given: argparse.Namespace) -> list[str]:
    """Tools that are still to run; none where there is nothing to run them on."""
    source = source_of(cell.kind, cell.name)
    bare = known.get((cell, BARE, source))
    if bare is not None and bare.outcome:
        return []
    return [tool for tool in chosen_tools(cell, HOWS, given.tools, given.seed) if (cell, tool, source) not in known]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    every = list(dict.fromkeys(target for target, _ in TARGETS))
    parser.add_argument("--targets", nargs="+", choices=every, default=every)
    parser.add_argument("--levels", nargs="+", type=int, choices=LEVELS, default=list(LEVELS), help="in this order")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--tools", type=int, default=len(HOWS), help="for each cell so many, by lot")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=("samples", "programs"))
    parser.add_argument("--names", nargs="+", help="only these samples and programs")
    parser.add_argument("--fresh", action="store_true", help="repeat what other sources have run")
    parser.add_argument("--tables", action="store_true", help="only tables of what is there")
    parser.add_argument("--page", action="store_true", help="write table.md")
    return parser.parse_args()


def campaign(tasks: list[Task], jobs: int) -> Iterator[Row]:
    with multiprocessing.Pool(jobs, maxtasksperchild=8) as pool:
        for number, rows in enumerate(pool.imap_unordered(tried, tasks)):
            for row in rows:
                if row.outcome:
                    print(f"{number} of {len(tasks)}: {row.cell}, {row.tool or 'bare'}: {row.outcome}", flush=True)
                yield row


def key_of(row: Row) -> Key:
    return row.cell, row.tool, row.source


def read(path: Path) -> list[Row]:
    found = (json.loads(line) for line in path.read_text().splitlines())
    return [Row(**{**row, "cell": Cell(**row["cell"])}) for row in found]


if __name__ == "__main__":
    sys.exit(main())
