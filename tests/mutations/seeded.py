"""Does `make test` choose the tests that see a change? Changes of which only a test of the nightly tier knew before.

    python tests/mutations/seeded.py [--only TEXT] [--seed N] [--jobs J]       make seeded

In: SEEDED. Out: a table; the exit code is 1 if more than one in ten is not caught. For each, in a copy of the tree as a
nightly run leaves it (the map of what tests reach is of these sources): the test that knows fails; then what
`make test` always runs of the files nearest to the change, and, where that passes, what it chooses because of it.
Invariant: the tree itself is not touched, and a failure counts if the test passes without the change.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]

from run import copied  # noqa: E402  (importable only now)
from seeds import SEEDED, Seed  # noqa: E402
from suite import kept  # noqa: E402
from suite.choosing import rank_files  # noqa: E402
from suite.files import file_digests  # noqa: E402

NEAR = 10
"""Files of tests."""


class Row(NamedTuple):
    seed: Seed
    always: str
    chosen: str

    @property
    def caught(self) -> bool:
        return bool(self.always or self.chosen)


def tried(tree: Path, seed: Seed, number: int, jobs: int) -> Row:
    file = tree / seed.file
    text = file.read_text()
    assert text.count(seed.before) == 1, f"{seed.file}: not once: {seed.before}"
    file.write_text(text.replace(seed.before, seed.after))
    try:
        assert failures(tree, [seed.known_by, "--tier=nightly"]), f"{seed.known_by} does not know of {seed}"
        always = failures(tree, [*nearest(seed.file), "--tier=test", "--seconds=0", f"-n{jobs}"])
        options = ["--tier=test", "--chosen", f"--randomly-seed={number}", f"-n{jobs}"]
        chosen = [] if always else failures(tree, options)
    finally:
        file.write_text(text)
    for test in (*always, *chosen):
        assert not failures(tree, [test, "--tier=nightly"]), f"nothing is changed, but {test} fails"
    return Row(seed, "".join(always), "".join(chosen))


def nearest(source: str) -> list[str]:
    """Files of tests that execute this source and little else."""
    reach = kept.read_reach()
    ranks = rank_files(reach.tests, reach, {source}, set())
    return sorted(ranks, key=lambda test: (-ranks[test], test))[:NEAR]


def failures(tree: Path, words: Sequence[str]) -> list[str]:
    """The first test that fails, if one does."""
    results = tree / "results.jsonl"
    results.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", f"--results={results}", *words]
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
    rows = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    failed = [row["id"] for row in rows if row["outcome"] == "failed"][:1]
    assert done.returncode in (0, 5) or failed, done.stdout + done.stderr
    return failed


def fresh_map(tree: Path) -> None:
    """As a nightly run of these sources would leave it."""
    path = tree / kept.REACH.relative_to(kept.ROOT)
    reach = replace(kept.read_reach(), sources=kept.source_files(), digests=file_digests())
    kept.write_reach(reach, path)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="those whose file or line has this text")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="luthier-seeded-") as folder:
        tree = copied(Path(folder))
        fresh_map(tree)
        print("| file | instead of | by a test that always runs | by one that was chosen |\n|---|---|---|---|")
        for seed in SEEDED:
            if given.only in seed.file or given.only in seed.before:
                row = tried(tree, seed, given.seed, given.jobs)
                rows.append(row)
                print(f"| {seed.file} | `{seed.before.strip()}` | {row.always} | {row.chosen} |", flush=True)
    caught = sum(row.caught for row in rows)
    print(f"{len(rows)} changes, {caught} caught")
    return int(caught * 10 < len(rows) * 9)


if __name__ == "__main__":
    sys.exit(main())
