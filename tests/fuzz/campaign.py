"""Many trials, counted: what ran, what was refused and how, what was found, and the largest figures.

In: fuzzers by name, a seed, a budget of mutants or of seconds. Out: a Tally for each, as a table. Invariant: mutant
``number`` of ``seed`` is the same whatever ran before it and however many jobs there are.
"""

from __future__ import annotations

import importlib
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context

from fuzzer import Fuzzer
from trial import ACCEPTED, outcome_of

SHARES = {"loader": 40, "bundles": 20, "pipeline": 15, "arguments": 10, "tools": 8, "kernels": 5, "driver": 2,
          "edits": 5}
"""Fuzzers, and how many of some hundred mutants are theirs."""
EXAMPLES = 3  # of a finding


def fuzzer(name: str) -> Fuzzer:
    """Imported only when it is needed: what others import would count as its memory."""
    found: Fuzzer = importlib.import_module(f"fuzz_{name}").FUZZER
    return found


@dataclass
class Tally:
    """Mutable: what trials of one fuzzer came to."""

    name: str
    mutants: int = 0
    words: Counter[str] = field(default_factory=Counter)
    findings: dict[str, list[int]] = field(default_factory=dict)
    """Numbers of the first mutants that show each; how many there were is in ``found``."""
    found: Counter[str] = field(default_factory=Counter)
    details: dict[str, str] = field(default_factory=dict)
    cpu_seconds: float = 0.0
    peak_mb: float = 0.0

    def add(self, other: Tally) -> None:
        self.mutants += other.mutants
        self.words += other.words
        self.found += other.found
        for finding, numbers in other.findings.items():
            self.findings[finding] = sorted([*self.findings.get(finding, []), *numbers])[:EXAMPLES]
            self.details.setdefault(finding, other.details[finding])
        self.cpu_seconds = max(self.cpu_seconds, other.cpu_seconds)
        self.peak_mb = max(self.peak_mb, other.peak_mb)


def share(name: str, seed: int, numbers: range, seconds: float | None) -> Tally:
    """Trials of ``numbers`` until the time is over."""
    this, tally = fuzzer(name), Tally(name)
    this.ready()
    start = time.monotonic()
    for number in numbers:
        if seconds is not None and time.monotonic() - start > seconds:
            break
        outcome = outcome_of(this, this.case(seed, number))
        tally.mutants += 1
        tally.cpu_seconds = max(tally.cpu_seconds, outcome.cpu_seconds)
        tally.peak_mb = max(tally.peak_mb, outcome.peak_mb)
        if outcome.word:
            tally.words[outcome.word] += 1
            continue
        tally.found[outcome.finding] += 1
        examples = tally.findings.setdefault(outcome.finding, [])
        examples += [number] * (len(examples) < EXAMPLES)
        tally.details.setdefault(outcome.finding, outcome.details)
    return tally


def run(name: str, seed: int, mutants: int, seconds: float | None, jobs: int) -> Tally:
    """One fuzzer's mutants 0 to ``mutants``, each job with every ``jobs``-th."""
    total = Tally(name)
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        shares = [pool.submit(share, name, seed, range(job, mutants, jobs), seconds) for job in range(jobs)]
        for each in shares:
            total.add(each.result())
    return total


def table(tallies: Iterable[Tally]) -> str:
    """As Markdown."""
    head = ("fuzzer", "mutants", "accepted", "refused, by class", "findings", "longest CPU time", "peak memory")
    lines = ["| " + " | ".join(head) + " |", "|---|--:|--:|---|--:|--:|--:|"]
    everything = Tally("all")
    for tally in tallies:
        everything.add(tally)
        lines.append(_row(tally))
    return "\n".join([*lines, _row(everything)])


def _row(tally: Tally) -> str:
    refused = ", ".join(f"{word} {count:,}" for word, count in tally.words.most_common() if word != ACCEPTED)
    cells = (tally.name, f"{tally.mutants:,}", f"{tally.words[ACCEPTED]:,}", refused, f"{sum(tally.found.values()):,}",
             f"{tally.cpu_seconds:.1f} s", f"{tally.peak_mb:.0f} MB")
    return "| " + " | ".join(cells) + " |"


def budget(mutants: int, names: Iterable[str] = tuple(SHARES)) -> Mapping[str, int]:
    """How many mutants each of the fuzzers gets, at least one."""
    shares = {name: SHARES[name] for name in names}
    return {name: max(mutants * part // sum(shares.values()), 1) for name, part in shares.items()}
