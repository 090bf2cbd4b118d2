"""Which nightly tests `make test` runs besides its own: those that a change can reach, and a few at random.

In: nightly tests, what the last nightly run kept, what changed since, seconds, a seed. Out: a Choice. Invariant: it
depends on nothing else, so every process of a run makes the same; how many did not fit is reported.

A file of tests is reached by a change of itself (files.py) or of a source that it executed then. Files come first
that execute little beside what was changed: of these the change decides most.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from suite.kept import Durations, Reach, split

RANDOM_PART = 0.25
"""Of the time, for tests that nothing reaches."""


@dataclass(frozen=True)
class Choice:
    """Tests, by why they were chosen, and those that are reached and did not fit."""

    reached: frozenset[str]
    at_random: frozenset[str]
    left: int
    seconds: float

    @property
    def numbers(self) -> list[float]:
        """Reached tests, those at random, reached ones that did not fit, seconds: what a process reports to another."""
        return [len(self.reached), len(self.at_random), self.left, self.seconds]

    @property
    def tests(self) -> frozenset[str]:
        return self.reached | self.at_random


def rank_files(files: Iterable[str], reach: Reach, changed: Set[str], edited: Set[str]) -> dict[str, float]:
    """What part of the sources that a file of tests executes was changed; 1 for those that were themselves edited."""
    ranks = {}
    for file in files:
        executed = reach.tests.get(file, frozenset())
        if file in edited:
            ranks[file] = 1.0
        elif executed & changed:
            ranks[file] = len(executed & changed) / len(executed)
    return ranks


def choose(
    nightly: Mapping[str, bool], durations: Durations, ranks: Mapping[str, float], seconds: float, seed: int
) -> Choice:
    """``nightly``: tests, and whether they are marked slow. ``ranks``: of reached files, the highest first, and equal
    ones at random."""
    random_order = random.Random(seed)
    tests = sorted(nightly)
    random_order.shuffle(tests)
    by_file: dict[str, list[str]] = {}
    for test in tests:
        by_file.setdefault(split(test)[0], []).append(test)
    ranked = sorted((file for file in by_file if file in ranks), key=lambda file: -ranks[file])
    reached = take_turns([by_file[file] for file in ranked])
    others = [test for test in tests if split(test)[0] not in ranks]
    budget = seconds * (1 - RANDOM_PART) if reached else 0.0
    chosen, spent = fit(reached, nightly, durations, budget)
    extra, more = fit([*others, *(test for test in reached if test not in chosen)], nightly, durations, seconds - spent)
    at_random = frozenset(extra)
    return Choice(frozenset(chosen), at_random, len(set(reached) - set(chosen) - at_random), spent + more)


def some_cases(tests: Iterable[str], most: int, seed: int) -> set[str]:
    """At most so many cases of each test function."""
    order = sorted(tests)
    random.Random(seed).shuffle(order)
    taken = Counter[str]()
    found = set()
    for test in order:
        function = test.partition("[")[0]
        if taken[function] < most:
            taken[function] += 1
            found.add(test)
    return found


def take_turns(files: Sequence[Sequence[str]]) -> list[str]:
    """One test of each file, a second one of each, and so on: no file takes all the time."""
    longest = max((len(tests) for tests in files), default=0)
    return [tests[place] for place in range(longest) for tests in files if place < len(tests)]


def fit(
    tests: Iterable[str], slow: Mapping[str, bool], durations: Durations, seconds: float
) -> tuple[list[str], float]:
    """Those that fit into the time, in this order, and what they take; a shared fixture is paid by the first one."""
    chosen, spent, paid = list[str](), 0.0, set[tuple[str, float]]()
    for test in tests:
        kept = durations.of(test)
        cost = durations.seconds(test, slow[test]) if kept is None else kept.seconds
        fixtures = (split(test)[0], kept.shared if kept else 0.0)
        if fixtures not in paid:
            cost += fixtures[1]
        if spent + cost <= seconds:
            chosen.append(test)
            spent += cost
            paid.add(fixtures)
    return chosen, spent
