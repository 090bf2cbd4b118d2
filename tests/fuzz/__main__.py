"""Fuzzing from the command line.

    python tests/fuzz [--seconds S | --mutants N] [--jobs J] [--seed K] [--only NAME ...] [--output FILE.md]
    python tests/fuzz again NAME FILE [--how WORD]           a saved mutant once more
    python tests/fuzz again NAME --seed K --number N         a mutant of a campaign once more

Exit code 1 if anything was found. Findings are kept in build/fuzz.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

FUZZ = Path(__file__).resolve().parent
sys.path.insert(0, str(FUZZ.parent))  # what other tests share

from campaign import SHARES, budget, fuzzer, run, table  # noqa: E402  (importable only now)
from findings import save  # noqa: E402
from fuzzer import Case  # noqa: E402
from trial import outcome_of  # noqa: E402

from luthier_py.base.storage import CACHE  # noqa: E402

FINDINGS = FUZZ.parents[1] / "build" / "fuzz"
ENDLESS = 1 << 40


def main() -> int:
    parser = argparse.ArgumentParser(prog="python tests/fuzz", description="fuzz Luthier-py")
    parser.add_argument("--seconds", type=float, help="shared by the fuzzers; without it and --mutants: 60")
    parser.add_argument("--mutants", type=int)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=SHARES, default=list(SHARES))
    parser.add_argument("--output", type=Path, help="write the table here, too")
    given = parser.parse_args()
    mutants = dict.fromkeys(given.only, ENDLESS) if given.mutants is None else budget(given.mutants, given.only)
    seconds = (given.seconds or 60) / len(given.only) if given.mutants is None else given.seconds
    tallies = []
    for name in given.only:
        tallies.append(run(name, given.seed, mutants[name], seconds, given.jobs))
        print(table(tallies[-1:]).splitlines()[-2], flush=True)
    print("\n" + table(tallies))
    if given.output:
        given.output.parent.mkdir(parents=True, exist_ok=True)
        given.output.write_text(table(tallies) + "\n")
    for tally in tallies:
        for path in save(tally, given.seed, FINDINGS):
            print(f"found: {path}")
    return int(any(tally.findings for tally in tallies))


def again() -> int:
    parser = argparse.ArgumentParser(prog="python tests/fuzz again", description="one mutant once more")
    parser.add_argument("name", choices=SHARES)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--how", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--number", type=int)
    given = parser.parse_args(sys.argv[2:])
    this = fuzzer(given.name)
    if given.number is not None:
        case = this.case(given.seed, given.number)
    elif given.file is not None:
        case = Case(given.file.read_bytes(), given.how)
    else:
        parser.error("give a file, or --number")
    this.ready()
    outcome = outcome_of(this, case)
    print(f"{outcome.word or outcome.finding}: {outcome.cpu_seconds:.1f} s, {outcome.peak_mb:.0f} MB")
    print(outcome.details)
    return int(bool(outcome.finding))


if __name__ == "__main__":
    os.environ.setdefault(CACHE, str(FINDINGS / "cache"))  # what mutants compile is of no use to anybody
    sys.exit(again() if sys.argv[1:2] == ["again"] else main())
