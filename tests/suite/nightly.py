"""`make nightly`: every test, whole or in parts, and what is kept of it for `make test` to choose by.

In: ``--part K/N``, ``--seconds S`` (tests at random, as many as fit), ``--left`` (tests that no part has run yet),
``--seed``, ``--jobs``; what else is given is pytest's. Two runs: all tests as they are, for results and durations; then
a case of each test function measured, for what files of tests reach (``--plain`` and ``--measure`` make one of them
alone). Out: results.jsonl and measured.jsonl in build/nightly, where parts add theirs (``--fresh`` begins a new round),
and durations.json and reach.json beside this file, from all parts so far. Invariant: a test that did not run keeps what
was kept of it, and a file of which some functions were not measured what it was known to reach; what a measured test
says is no result; a change since the last round is one until all tests have run in this one.
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
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from suite import kept, reach  # noqa: E402  (importable only now)
from suite.files import file_digests  # noqa: E402
from suite.kept import ROOT, Durations, Kept, Reach, split  # noqa: E402

FOLDER = ROOT / "build" / "nightly"
RESULTS, MEASURED, SOURCES = (FOLDER / name for name in ("results.jsonl", "measured.jsonl", "sources.json"))
RAN = FOLDER / "ran.txt"
PARTS = FOLDER / "durations.json"
"""Durations before the first part: all parts are divided by them, so that none lies between two."""

PLAIN_ENDS = (0, 1)
"""pytest's codes: all passed, some failed."""
UNSEEN = ""
"""The digest of what is new since the last round."""


def main() -> int:
    given, rest = arguments()
    if given.fresh and FOLDER.exists():
        before = FOLDER.with_name("nightly-before")
        shutil.rmtree(before, ignore_errors=True)
        FOLDER.rename(before)
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not SOURCES.exists():  # a change between two parts counts as one since the nightly run
        SOURCES.write_text(json.dumps([kept.source_files(), file_digests()]))
    if not PARTS.exists():
        kept.write_durations(kept.read_durations(), PARTS)
    RAN.write_text("".join(f"{test}\n" for test in read_rows(RESULTS)))
    code = 0 if given.measure else run(given, [f"--results={RESULTS}", *rest])
    if code not in PLAIN_ENDS:
        return code
    tests = collect()
    words = [f"--results={MEASURED}", "--cases=1", *rest]
    measured = 0 if given.plain else run(given, words, reach.environment(FOLDER / "reach"))
    if not given.plain and measured in PLAIN_ENDS:
        reach.combine(FOLDER / "reach")
        keep_reach(tests, read_rows(RESULTS).keys(), read_rows(MEASURED).keys())
    if not given.measure:
        keep_durations(tests, read_rows(RESULTS))
    return code if measured in PLAIN_ENDS else measured


def arguments() -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, text in (("part", "K/N"), ("seconds", "S"), ("seed", "N"), ("jobs", "N")):
        parser.add_argument(f"--{name}", metavar=text)
    parser.add_argument("--left", action="store_true", help="tests that no part of this round has run yet")
    parser.add_argument("--fresh", action="store_true", help="begin a round; results of the last are in nightly-before")
    parser.add_argument("--plain", action="store_true", help="do not measure what tests reach")
    parser.add_argument("--measure", action="store_true", help="measure what tests reach, and nothing else")
    return parser.parse_known_args()


def run(given: argparse.Namespace, words: Sequence[str], more: Mapping[str, str] | None = None) -> int:
    """pytest's exit code."""
    chosen = [f"--{name}={value}" for name, value in (("part", given.part), ("seconds", given.seconds)) if value]
    chosen += [f"--randomly-seed={given.seed}"] if given.seed else []
    chosen += [f"--but={RAN}"] if given.left else []
    command = ["-m", "pytest", "--tier=nightly", f"--kept={PARTS}", "-n", given.jobs or "2", "-q",
               "--continue-on-collection-errors", *chosen, *words]  # fmt: skip
    return subprocess.run([sys.executable, *command], cwd=ROOT, env={**os.environ, **(more or {})}).returncode


def read_rows(path: Path) -> dict[str, dict[str, Any]]:
    """The last row of each test. A line of which a run that was ended wrote a part is none."""
    rows = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        with suppress(ValueError):
            row = json.loads(line)
            rows[row["id"]] = row
    return rows


def collect() -> list[str]:
    """The names of all tests."""
    words = ["-m", "pytest", "--tier=nightly", "--collect-only", "-q", "-p", "no:randomly", "--disable-warnings"]
    plain = {**os.environ, "PYTEST_ADDOPTS": ""}  # with one more -q or -v their names are not shown
    done = subprocess.run([sys.executable, *words], cwd=ROOT, env=plain, capture_output=True, text=True, check=True)
    return sorted(line for line in done.stdout.splitlines() if "::" in line)


def keep_durations(tests: Sequence[str], results: Mapping[str, dict[str, Any]]) -> None:
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    kept.write_durations(durations_after(kept.read_durations(), tests, results, date))
    there = {test: results[test] for test in tests if test in results}
    outcomes = Counter(row["outcome"] for row in there.values())
    print(f"all parts so far: {outcomes['passed']} passed, {outcomes['failed']} failed, {outcomes['skipped']} skipped, "
          f"{len(tests) - len(there)} not run yet")  # fmt: skip
    print("".join(f"failed: {test}\n" for test, row in there.items() if row["outcome"] == "failed"), end="")


def durations_after(
    before: Durations, tests: Sequence[str], results: Mapping[str, dict[str, Any]], date: str
) -> Durations:
    rows = {test: row_of(results[test], before.of(test)) if test in results else before.of(test) for test in tests}
    sharing = Counter((split(test)[0], row.shared) for test, row in rows.items() if row is not None)
    files: dict[str, dict[str, Kept]] = {}
    quick = Counter[str]()
    for test, row in rows.items():
        file, name = split(test)
        if row is None:
            continue
        if row.marks or row.seconds + row.shared / sharing[file, row.shared] >= kept.QUICK:
            files.setdefault(file, {})[name] = row
        else:
            quick[file] += 1
    for file in {split(test)[0] for test in tests} & before.quick.keys():
        quick.setdefault(file, before.quick[file])
    return Durations(files, quick, date)


def row_of(result: Mapping[str, Any], before: Kept | None) -> Kept:
    """A test that was skipped, or failed early, takes as long as before where it does not."""
    row = Kept(round(result["seconds"], 2), result.get("marks", ""), round(result.get("shared", 0.0), 2))
    if before is not None and result["outcome"] != "passed" and before.seconds > row.seconds:
        return before
    return row


def keep_reach(tests: Iterable[str], ran: Set[str], measured: Set[str]) -> None:
    sources, digests = json.loads(SOURCES.read_text())
    found = reach.executed(FOLDER / "reach")
    kept.write_reach(reach_after(kept.read_reach(), tests, ran, measured, Reach(sources, found, digests)))


def reach_after(old: Reach, tests: Iterable[str], ran: Set[str], measured: Set[str], found: Reach) -> Reach:
    """``found``: what was executed, and all digests from before the round. Until all tests ran, of this round too, no
    change counts as seen: those that are left may be the ones that it reaches."""
    tests = list(tests)
    functions = {test.partition("[")[0] for test in measured}
    incomplete = {split(test)[0] for test in tests if test.partition("[")[0] not in functions}
    reached = {}
    for file in {split(test)[0] for test in tests}:
        before = old.tests.get(file, frozenset()) if file in incomplete else frozenset()
        reached[file] = before | found.tests.get(file, frozenset()) & found.sources.keys()
    left = {split(test)[0] for test in tests if test not in ran}
    sources = {**dict.fromkeys(found.sources, UNSEEN), **old.sources} if left else found.sources
    digests = {file: old.digests.get(file, UNSEEN) if file in left else now for file, now in found.digests.items()}
    return Reach(sources, reached, digests)


if __name__ == "__main__":
    sys.exit(main())
