"""Apply each mutation to a copy of the tree and run the fast tests until one fails.

    python tests/mutations/run.py [--only TEXT] [--again] [--runs N] [--jobs J]       make mutations

In: MUTATIONS, and README.md beside this file, which says what caught each the last time: that test runs first. Out:
README.md again; the exit code is 1 if a mutation survives.
Invariant: the tree itself is not touched, and a test that fails without the mutation, too, counts for nothing.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue

import hypothesis  # noqa: F401  (here and now, so that no run has to)
import llvmlite.binding  # noqa: F401
import numpy  # noqa: F401
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from mutation import ROOMS, Mutation  # noqa: E402  (importable only now)
from mutations import MUTATIONS  # noqa: E402
from nearest import NEAREST  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
README = Path(__file__).resolve().parent / "README.md"
COPIED = ("luthier_py", "tests", "tools", "intrinsics", "pyproject.toml", "docs", "benchmarks", "Makefile")
SHARED = (
    ("tests/golden", "tests/unit/rewrite/pipeline", "tests/fuzz/test_damage.py"), ("tests/property", "tests/tools"))
"""What all rooms have in common, behind their own tests, the fast ones first."""
SLOW = ("test_wild_addresses.py", "test_counting_random.py")  # about the emulator
OPTIONS = "-x -q -p no:cacheprovider -p no:randomly --tb=no --tier=test --seconds=0".split()
"""Those tests alone that `make test` runs whatever was changed."""
SECONDS = 1200
PASSES, GONE = (0, 5), 4  # pytest's codes: all passed; no such test; it is not there any more, or cannot begin
NOTHING = "**nothing**"
INTRODUCTION = """# Lines made wrong

Written by `make mutations`, which changes each of these lines of `luthier_py` as it says here, one at a time in a copy
of the tree, and runs the fast tests until one fails. `mutations.py` and `mutations_of_proof.py` have the list.

"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """``caught``: by which test; empty if none did."""

    mutation: Mutation
    caught: str
    seconds: float


def tests_of(tree: Path, mutation: Mutation, last: str) -> Iterator[list[str]]:
    """Paths to give to pytest, one run after the other: those that concern the line most first."""
    if last and (tree / last.partition("::")[0]).is_file():
        yield [last]
    yield [f"tests/{path}" for path in NEAREST[mutation.file]]
    yield [f"tests/unit/{mutation.room}"]
    yield [*(f"tests/unit/{room}" for room in ROOMS if room != mutation.room), *SHARED[0]]
    yield list(SHARED[1])


class Failure:
    """A plugin of pytest. Mutable: the first test that failed, or could not be collected."""

    def __init__(self) -> None:
        self.test = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.test = self.test or report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.test = self.test or report.nodeid


def fails(tree: Path, paths: Sequence[str]) -> str:
    """The first test that does; empty if none. In a process that has the installed packages already, not ours."""
    reading, writing = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_tests, args=(tree, paths, writing))
    child.start()
    writing.close()
    try:
        if not reading.poll(SECONDS):
            return f"{paths[0]} does not end"
        return str(reading.recv())
    except EOFError:
        child.join()
        return f"{paths[0]} ends the process with {child.exitcode}"
    finally:
        child.kill()
        child.join()


def _tests(tree: Path, paths: Sequence[str], writing: Connection) -> None:
    os.setpgrp()
    os.chdir(tree)
    nothing = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nothing, stream)
    sys.dont_write_bytecode = True
    os.environ |= {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    ours = [path for path in sys.path if path.startswith(str(ROOT)) and not path.startswith(sys.prefix)]
    sys.path[:] = [str(tree), *(path for path in sys.path if path not in ours)]
    found = Failure()
    ignored = [f"--ignore=tests/property/{name}" for name in SLOW]
    code = pytest.main([*OPTIONS, *paths, *ignored], [found])
    gone = code == GONE and "::" in paths[0]
    writing.send(found.test or ("" if code in PASSES or gone else f"{paths[0]} ends with {code}"))
    os._exit(0)


def tried(
    trees: SimpleQueue[Path], last: Mapping[tuple[str, ...], str], runs: int | None, mutation: Mutation
) -> Outcome:
    tree, start = trees.get(), time.monotonic()
    file = tree / "luthier_py" / mutation.file
    text = file.read_text()
    assert text.count(mutation.before) == 1, f"{mutation.file}: not once: {mutation.before}"
    try:
        file.write_text(text.replace(mutation.before, mutation.after))
        every = islice(tests_of(tree, mutation, last.get(_key(mutation), "")), runs)
        caught = next((found for paths in every if (found := fails(tree, paths))), "")
        file.write_text(text)
        if "::" in caught:
            assert not fails(tree, [caught]), f"nothing is changed, but {caught} fails"
        return Outcome(mutation, caught, time.monotonic() - start)
    finally:
        file.write_text(text)
        trees.put(tree)


def copied(folder: Path) -> Path:
    """With bytecode that is compared with the source's content: times do not tell what was changed for seconds."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    subprocess.run([sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "luthier_py"],
                   cwd=folder, check=True)
    return folder


def known(text: str) -> dict[tuple[str, ...], str]:
    """Of README.md: what caught each."""
    rows = [line[2:-2].split(" | ") for line in text.splitlines() if line.startswith("| ") and line.count(" | ") == 3]
    return {tuple(row[:3]): "" if row[3] == NOTHING else row[3] for row in rows[1:]}


def table(caught: Mapping[tuple[str, ...], str]) -> str:
    """As Markdown, in the list's order; what was never tried is left out."""
    lines = ["| file | line | instead | caught by |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(key)} | {caught[key] or NOTHING} |" for key in map(_key, MUTATIONS) if key in caught]
    return "\n".join(lines) + "\n"


def _key(mutation: Mutation) -> tuple[str, ...]:
    return mutation.file, _cell(mutation.before), _cell(mutation.after)


def _cell(code: str) -> str:
    text = " ".join(code.split()).replace("|", "\\|")
    return f"`{text}`" if text else "(nothing)"


def main() -> int:
    parser = argparse.ArgumentParser(description="mutations of our own source")
    parser.add_argument("--only", default="", help="those whose file or line has this text")
    parser.add_argument("--again", action="store_true", help="those that nothing is known to catch")
    parser.add_argument("--runs", type=int, help="only the first few runs of tests: near ones")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    caught = known(README.read_text()) if README.exists() else {}
    chosen = [each for each in MUTATIONS if (given.only in each.file or given.only in each.before)
              and not (given.again and caught.get(_key(each)))]
    survivors = 0
    with tempfile.TemporaryDirectory(prefix="luthier-mutations-") as folder:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(given.jobs):
            trees.put(copied(Path(folder) / str(number)))
        with ThreadPoolExecutor(given.jobs) as pool:
            for each in pool.map(partial(tried, trees, dict(caught), given.runs), chosen):
                caught[_key(each.mutation)] = each.caught
                survivors += not each.caught
                README.write_text(INTRODUCTION + table(caught))
                print(f"{each.seconds:4.0f} s  {each.mutation.file}: {_cell(each.mutation.after)}: "
                      f"{each.caught or 'SURVIVES'}", flush=True)
    print(f"{len(chosen)} tried, {survivors} survive")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main())
