"""Are kernels served whose registers are all in use? Every tool on samples, kernels of libraries, and crowded ones.

In: `--kernels N` of libraries, `--seed`, `--jobs`, `--seconds` for one instrumentation, `--tools N`: each kernel under
so many of the tools. Out: build/pressure/SEED.jsonl, a line for each kernel and tool, and tables, in pressure.md with
`--page`. Each copy is proved, as always; where the emulator has the target and a launch is known, original and copy
run: buffers are compared bit by bit, counts with the emulator's own. `--further` goes on where a run was left,
`--again` repeats what was not in order.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import chain
from pathlib import Path
from shutil import which
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "property"), str(HERE.parent)]

import conftest  # noqa: E402, F401  (makes samples importable)
from page import TEXT, tables  # noqa: E402
from released import of_release  # noqa: E402
from subjects import Subject, subjects  # noqa: E402
from truth import TRUTHS, wrong  # noqa: E402
from ways import completed, parsed  # noqa: E402

from luthier_py.base.errors import LuthierError  # noqa: E402
from luthier_py.binary.loader import load  # noqa: E402
from luthier_py.emulator import EmulatorDevice, LaunchProfile  # noqa: E402
from luthier_py.features.run.launch import Launch, Ran, run_instrumented, run_original  # noqa: E402
from luthier_py.features.run.specs import parse_argument  # noqa: E402
from luthier_py.rewrite.clang.search import CLANG  # noqa: E402
from luthier_py.rewrite.pipeline import Instrumented, instrument  # noqa: E402
from luthier_py.rewrite.tool import Tool, load_tool  # noqa: E402

PAGE = HERE.parent / "pressure.md"
LATE = "took too long"
WAYS = completed(TRUTHS)


class Late(Exception):
    """An instrumentation has had its time."""


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one kernel under one tool. ``outcome``: nothing where all is well; ``ran``: it was run, too."""

    corpus: str
    target: str
    name: str
    tool: str
    outcome: str = ""
    where: str = ""
    ran: bool = False
    sites: int = 0
    schemes: dict[str, int] = field(default_factory=dict)
    private_bytes: int = 0
    vgprs: tuple[int, int] = (0, 0)
    waves: tuple[int, int] = (0, 0)
    code_bytes: tuple[int, int] = (0, 0)
    seconds: float = 0.0


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    def late(*_: object) -> None:
        raise Late

    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def tried(task: tuple[Subject, list[str], float]) -> list[Row]:
    """One kernel under all tools that are asked for."""
    subject, tools, seconds = task
    return [_row(subject, how, seconds) for how in tools]


def _row(subject: Subject, how: str, seconds: float) -> Row:
    begin = Row(subject.corpus, subject.target, subject.name, how)
    start = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            with limited(seconds):
                found = _tried(subject, how)
        except Late:
            found = {"outcome": LATE}
        except LuthierError as error:
            found = {"outcome": f"{type(error).__name__}: {error.message}", "where": str(error.where or "")}
        except Exception as error:  # not one of ours: a finding
            found = {"outcome": f"crash: {type(error).__name__}: {error}"}
    return Row(**{**asdict(begin), **found, "seconds": time.process_time() - start})


def _tried(subject: Subject, how: str) -> dict[str, Any]:
    tool = load_tool(*parsed(how))
    data = subject.path.read_bytes()
    made = instrument(data, tool, kernels=[subject.kernel])
    found: dict[str, Any] = {}
    for row in made.patched.report:
        found = {"sites": row.sites, "schemes": dict(row.schemes), "private_bytes": row.private_bytes,
                 "vgprs": (row.before.vgprs, row.after.vgprs), "waves": (row.before.waves, row.after.waves),
                 "code_bytes": (row.bytes_before, row.bytes_after)}
    if subject.arguments and found:
        found |= {"ran": True, "outcome": _differs(subject, how, tool, made)}
    return found


def _differs(subject: Subject, how: str, tool: Tool, made: Instrumented) -> str:
    """What is not as it was, or counted wrong."""
    device, before, profile = _original(subject)
    after = run_instrumented(device, made, tool, _launch(subject))
    if any(before.outputs[n].tobytes() != after.outputs[n].tobytes() for n in before.outputs):
        return "wrong: the application's memory differs"
    what = wrong(how, after, profile, device.target)
    return f"wrong: {what}" if what else ""


@lru_cache(maxsize=1)
def _original(subject: Subject) -> tuple[EmulatorDevice, Ran, LaunchProfile]:
    """The same for all tools."""
    data = subject.path.read_bytes()
    device = EmulatorDevice(load(data).target)
    ran = run_original(device, data, _launch(subject))
    assert device.profile is not None
    return device, ran, device.profile


def _launch(subject: Subject) -> Launch:
    return Launch(subject.kernel, subject.grid, subject.block, tuple(map(parse_argument, subject.arguments)))


def main() -> int:
    given = options()
    folder = ROOT / "build" / "pressure"
    (folder / "kernels").mkdir(parents=True, exist_ok=True)
    kept = folder / f"{given.release}-{given.seed}.jsonl" if given.release else folder / f"{given.seed}.jsonl"
    known = _read(kept) if kept.exists() and (given.further or given.again or given.tables) else {}
    refused = {key[:3] for key, row in known.items() if row.outcome}
    if given.again:
        known = {key: row for key, row in known.items() if not row.outcome}
    every = of_release(folder / "kernels", given.release, given.kernels, given.seed) if given.release else \
        list(subjects(folder / "kernels", given.libraries, given.kernels, given.seed))
    there = {(subject.corpus, subject.target, subject.name) for subject in every}
    known = {key: row for key, row in known.items() if key[:3] in there}
    if not given.tables:
        chosen = [s for s in every if not given.corpus or s.corpus == given.corpus]
        left = [(s, [tool for tool in drawn(s, given) if (s.corpus, s.target, s.name, tool) not in known])
                for s in chosen]
        tasks = [(subject, tools, given.seconds) for subject, tools in left if tools]
        random.Random(given.seed).shuffle(tasks)  # so that what is there of a run that was ended stands for the rest
        tasks.sort(key=lambda task: (task[0].corpus, task[0].target, task[0].name) not in refused)
        with kept.open("w", buffering=1) as file:
            for row in chain(list(known.values()), campaign(tasks, given.jobs)):
                known[key_of(row)] = row
                file.write(json.dumps(asdict(row)) + "\n")
    text = tables(list(known.values()))
    print(text)
    if given.page:
        PAGE.write_text(TEXT.format(kernels=given.kernels, seed=given.seed, seconds=given.seconds, tables=text,
                                    done=len(known), all=len(every) * len(WAYS)))
    return int(any(row.outcome for row in known.values()))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=300, help="of libraries, half of them hand-written")
    parser.add_argument("--release", metavar="NAME", help="kernels of the libraries of this fetched release alone")
    parser.add_argument("--libraries", type=Path, default=ROOT / "build" / "libraries")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60, help="of a processor, for one kernel under one tool")
    parser.add_argument("--corpus", help="only this one")
    parser.add_argument("--tool", action="append", choices=WAYS, help="only these")
    parser.add_argument("--tools", type=int, default=0, metavar="N", help="each kernel under so many of them")
    parser.add_argument("--further", action="store_true", help="what is in build/pressure stays")
    parser.add_argument("--again", action="store_true", help="what is in order there stays")
    parser.add_argument("--tables", action="store_true", help="only tables of what is there")
    parser.add_argument("--page", action="store_true", help="write pressure.md")
    return parser.parse_args()


def drawn(subject: Subject, given: argparse.Namespace) -> list[str]:
    """The tools for one kernel."""
    tools = list(given.tool or WAYS)
    few = random.Random(f"{given.seed} {subject.target} {subject.name}").sample(tools, min(given.tools, len(tools)))
    return few or tools


def campaign(tasks: list[tuple[Subject, list[str], float]], jobs: int) -> Iterator[Row]:
    if compiler := which("clang++-22"):
        os.environ.setdefault(CLANG, compiler)
    with multiprocessing.Pool(jobs, maxtasksperchild=8) as pool:
        for row in chain.from_iterable(pool.imap_unordered(tried, tasks)):
            if row.outcome:
                print(f"{row.corpus}, {row.target}, {row.name}, {row.tool}: {row.outcome} {row.where}", flush=True)
            yield row


def key_of(row: Row) -> tuple[str, str, str, str]:
    return row.corpus, row.target, row.name, row.tool


def _read(path: Path) -> dict[tuple[str, str, str, str], Row]:
    rows = [Row(**json.loads(line)) for line in path.read_text().splitlines()]
    return {key_of(row): row for row in rows}


if __name__ == "__main__":
    sys.exit(main())
