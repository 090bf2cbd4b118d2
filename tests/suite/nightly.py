"""`make nightly`: every test, whole or in parts, and what is kept of it for `make test` to choose by.

In: ``--part K/N``, ``--seconds S`` (tests at random, as many as fit), ``--seed``, ``--jobs``; build/nightly, where
parts add their results. Out: results.jsonl there, and, from all parts so far, durations.json and reach.json beside
this file. Invariant: a test that did not run in this round keeps what was kept of it; a file of which some tests did
not run keeps what it was known to reach. ``--fresh`` begins a new round. ``--plain`` measures no reach, and takes
less time. What else is given is pytest's.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from suite import kept, reach  # noqa: E402  (importable only now)
from suite.files import file_digests  # noqa: E402
from suite.kept import ROOT, Durations, Kept, Reach, split  # noqa: E402
from suite.reach import combine  # noqa: E402

FOLDER = ROOT / "build" / "nightly"
RESULTS, SOURCES = FOLDER / "results.jsonl", FOLDER / "sources.json"


def main() -> int:
    given = arguments()
    if given.fresh:
        shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not SOURCES.exists():  # a change between two parts counts as one since the nightly run
        SOURCES.write_text(json.dumps([kept.source_files(), file_digests()]))
    code = 0 if given.keep else run(given)
    if code in (0, 1):  # pytest's: all passed, some failed
        keep(read_results(), not given.plain)
    return code


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, text in (("part", "K/N"), ("seconds", "S"), ("seed", "N"), ("jobs", "N")):
        parser.add_argument(f"--{name}", metavar=text)
    parser.add_argument("--fresh", action="store_true", help="forget the results of earlier parts")
    parser.add_argument("--plain", action="store_true", help="do not measure what tests reach")
    parser.add_argument("--keep", action="store_true", help="run nothing: keep what parts have left")
    given, rest = parser.parse_known_args()
    given.rest = rest  # pytest's: files, -m, -k
    return given


def run(given: argparse.Namespace) -> int:
    """pytest's exit code."""
    chosen = [f"--{name}={value}" for name, value in (("part", given.part), ("seconds", given.seconds)) if value]
    seed = [f"--randomly-seed={given.seed}"] if given.seed else []
    words = ["-m", "pytest", "--tier=nightly", f"--results={RESULTS}", "-n", given.jobs or "2", "-q",
             *chosen, *seed, *given.rest]  # fmt: skip
    measured = {} if given.plain else reach.environment(FOLDER / "reach")
    code = subprocess.run([sys.executable, *words], cwd=ROOT, env={**os.environ, **measured}).returncode
    if measured:
        combine(FOLDER / "reach")
    return code


def read_results() -> dict[str, dict[str, Any]]:
    """The last result of each test."""
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    return {row["id"]: row for row in map(json.loads, lines)}


def keep(results: Mapping[str, dict[str, Any]], measured: bool) -> None:
    before = kept.read_durations()
    collected = collect()
    rows = {test: row_of(results[test]) for test in collected if test in results}
    files: dict[str, dict[str, Kept]] = {}
    quick = Counter[str]()
    for test in collected:
        row = rows[test] if test in rows else before.of(test)
        file, name = split(test)
        if row is not None and (row.marks or row.seconds >= kept.QUICK):
            files.setdefault(file, {})[name] = row
        elif row is not None or test in rows:
            quick[file] += 1
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    kept.write_durations(Durations(files, quick, today))
    if measured:
        keep_reach(results, collected)
    failed = sorted(test for test, row in results.items() if row["outcome"] == "failed")
    left = len(collected) - len(rows)
    outcomes = Counter(row["outcome"] for row in results.values())
    print(f"all parts so far: {outcomes['passed']} passed, {outcomes['failed']} failed, "
          f"{outcomes['skipped']} skipped, {left} not run yet")  # fmt: skip
    print("".join(f"failed: {test}\n" for test in failed), end="")


def row_of(result: Mapping[str, Any]) -> Kept:
    return Kept(round(result["seconds"], 2), result.get("marks", ""), round(result.get("shared", 0.0), 2))


def collect() -> list[str]:
    """The names of all tests."""
    words = ["-m", "pytest", "--tier=nightly", "--collect-only", "-q", "-p", "no:randomly"]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return sorted(line for line in done.stdout.splitlines() if "::" in line)


def keep_reach(results: Mapping[str, Any], collected: Iterable[str]) -> None:
    old, found = kept.read_reach(), reach.executed(FOLDER / "reach")
    sources, digests = json.loads(SOURCES.read_text())
    incomplete = {split(test)[0] for test in collected if test not in results}
    tests = {}
    for file in sorted({split(test)[0] for test in collected}):
        before = old.tests.get(file, frozenset()) if file in incomplete else frozenset()
        tests[file] = before | found.get(file, set()) & sources.keys()
    kept.write_reach(Reach(sources, tests, digests))


if __name__ == "__main__":
    sys.exit(main())
