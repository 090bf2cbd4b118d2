"""Apply each mutation to a copy of the tree and run the fast tests until one fails.

    python tests/mutations/run.py [--only TEXT] [--jobs J] [--output FILE.md]       make mutations

In: MUTATIONS. Out: a table of what caught each; the exit code is 1 if one survives. Invariant: the tree itself is
not touched, and a run that the unchanged tree fails counts for nothing: that is looked at first.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

sys.path.insert(0, str(Path(__file__).resolve().parent))

from mutations import MUTATIONS, ROOMS, Mutation  # noqa: E402  (importable only now)

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("luthier_py", "tests", "tools", "intrinsics", "pyproject.toml", "docs", "benchmarks", "Makefile")
SHARED = (("tests/golden", "tests/unit/pipeline", "tests/fuzz/test_damage.py"), ("tests/property", "tests/tools"))
"""What all rooms have in common, behind their own tests, the fast ones first."""
SLOW = ("test_wild_addresses.py", "test_counting_random.py")  # about the emulator
SECONDS = 600


@dataclass(frozen=True, slots=True)
class Outcome:
    """``caught``: by which test; empty if none did."""

    mutation: Mutation
    caught: str
    seconds: float


def tests_of(tree: Path, room: str) -> list[list[str]]:
    """Paths to give to pytest, one run after the other; the room's own first."""
    rooms = [room, *(other for other in ROOMS if other != room)]
    own = [f"tests/unit/{each}" for each in rooms if (tree / "tests/unit" / each).is_dir()]
    return [own[:1], [*own[1:], *SHARED[0]], [*SHARED[1]]]


def caught_by(tree: Path, room: str) -> str:
    """The first test that fails; a room's own ones come first."""
    for paths in tests_of(tree, room):
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", "--tb=no",
                   *paths]
        command += [f"--ignore=tests/property/{name}" for name in SLOW]
        try:
            done = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=SECONDS,
                                  env={**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"})
        except subprocess.TimeoutExpired:
            return "does not end"
        if done.returncode:
            found = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M)
            return found[1] if found else (done.stdout + done.stderr).strip()[-200:]
    return ""


def tried(trees: SimpleQueue[Path], mutation: Mutation) -> Outcome:
    tree, start = trees.get(), time.monotonic()
    file = tree / "luthier_py" / mutation.file
    text = file.read_text()
    assert text.count(mutation.before) == 1, f"{mutation.file}: not once: {mutation.before}"
    try:
        file.write_text(text.replace(mutation.before, mutation.after))
        return Outcome(mutation, caught_by(tree, mutation.room), time.monotonic() - start)
    finally:
        file.write_text(text)
        trees.put(tree)


def copied(folder: Path) -> Path:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    return folder


def table(outcomes: Sequence[Outcome]) -> str:
    """As Markdown."""
    lines = ["| file | line | instead | caught by |", "|---|---|---|---|"]
    for each in outcomes:
        lines.append(f"| {each.mutation.file} | {_cell(each.mutation.before)} | {_cell(each.mutation.after)} | "
                     f"{each.caught.rpartition('/')[2] or '**nothing**'} |")
    return "\n".join(lines)


def _cell(code: str) -> str:
    text = " ".join(code.split()).replace("|", "\\|")
    return f"`{text}`" if text else "(nothing)"


def main() -> int:
    parser = argparse.ArgumentParser(description="mutations of our own source")
    parser.add_argument("--only", default="", help="those whose file or line has this text")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    chosen = [each for each in MUTATIONS if given.only in each.file or given.only in each.before]
    with tempfile.TemporaryDirectory(prefix="luthier-mutations-") as folder:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(given.jobs):
            trees.put(copied(Path(folder) / str(number)))
        fails = caught_by(Path(folder) / "0", ROOMS[0])
        assert not fails, f"nothing is changed yet, but {fails} fails"
        outcomes = []
        with ThreadPoolExecutor(given.jobs) as pool:
            for each in pool.map(lambda mutation: tried(trees, mutation), chosen):
                outcomes.append(each)
                print(f"{each.seconds:4.0f} s  {each.mutation.file}: {_cell(each.mutation.after)}: "
                      f"{each.caught or 'SURVIVES'}", flush=True)
    print(table(outcomes))
    if given.output:
        given.output.write_text(table(outcomes) + "\n")
    return int(not all(each.caught for each in outcomes))


if __name__ == "__main__":
    sys.exit(main())
