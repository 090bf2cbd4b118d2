"""The suite's part of a pytest run: which tests run, in which order, on which process, and what is kept of them.

In: ``--tier check|test|nightly`` (none: what was named, but for tests marked slow), ``--part K/N``, ``--but FILE``,
``--cases N``, ``--seconds``, ``--results``. Out: the chosen tests, long groups first and all others in random order; a
line of results for each. Invariant: every process of a run chooses and orders alike: all depends on the seed, the kept
files and the sources.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections import Counter
from collections.abc import Callable, Generator, Set
from pathlib import Path
from typing import Any, TypeVar

import pytest

from suite.choosing import choose, rank_files, some_cases
from suite.files import file_digests, functions_in
from suite.kept import DURATIONS, QUICKLY, REACH, Durations, Reach, read_durations, read_reach, source_files, split
from suite.order import order
from suite.tiers import Tier, tier_of

Kept = TypeVar("Kept", Durations, Reach)
CHOSEN_SECONDS = 100.0
"""Of tests, on one process, that `make test` chooses beside its own."""


def part(text: str) -> tuple[int, int]:
    number, _, parts = text.partition("/")
    if not (number.isdigit() and parts.isdigit() and 1 <= int(number) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{text!r} is no part: K/N, as 3/8")
    return int(number), int(parts)


def intact(read: Callable[[Path], Kept], path: Path) -> Kept:
    """A merge may leave a kept file in pieces."""
    try:
        return read(path)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise pytest.UsageError(f"{path} is damaged: {error!r}; take another version of it, or none") from error


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("suite")
    group.addoption("--tier", choices=[tier.name.lower() for tier in Tier], help="docs/testing.md")
    group.addoption("--part", type=part, metavar="K/N", help="of the nightly tests: this part of so many")
    group.addoption("--but", type=Path, metavar="FILE", help="of the nightly tests: not those whose names it has")
    group.addoption("--cases", type=int, metavar="N", help="at most so many cases of each test function, at random")
    group.addoption("--seconds", type=float, help="how long chosen tests may take on one process; nightly: no limit")
    group.addoption("--kept", type=Path, default=DURATIONS, help="durations that choice, order and parts go by")
    group.addoption("--chosen", action="store_true", help="of make test: what it chooses, without its own tests")
    group.addoption("--results", type=Path, help="add a line of JSON for each test to this file")


class Suite:
    """Mutable: one run."""

    def __init__(self, config: pytest.Config) -> None:
        self.config, self.options = config, config.option
        self.tier = Tier[self.options.tier.upper()] if self.options.tier else None
        self.durations: Durations = intact(read_durations, self.options.kept)
        self.chosen: list[float] | None = None
        """Numbers of the choice that `make test` made, here or in another process of the run."""

    @property
    def seed(self) -> int:
        """That of pytest-randomly, which prints it; 0 without it."""
        return int(getattr(self.options, "randomly_seed", 0) or 0)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, Any, Any]:
        """What is collected stays: to look for garbage among it took a third of the time."""
        gc.disable()
        try:
            return (yield)
        finally:
            gc.freeze()
            gc.enable()

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """For `make check` a file is not even imported in which no test is so quick, and none is new."""
        if self.tier is not Tier.CHECK or collection_path.suffix != ".py":
            return None
        file = collection_path.relative_to(self.config.rootpath).as_posix()
        known = {} if self.durations.quick.get(file) else self.durations.files.get(file, {})
        text = collection_path.read_text() if known else ""
        functions = {name.partition("[")[0] for name in known}
        new = functions_in(text) - Counter(name.rpartition("::")[2] for name in functions)
        return None if not known or new or "mark.check" in text else True

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Behind pytest-randomly, which shuffles, and pytest, which keeps tests of one fixture together."""
        marks = {item.nodeid: {mark.name for mark in item.iter_markers()} for item in items}
        wanted = self._wanted(marks)
        left = [item for item in items if item.nodeid not in wanted]
        if left:
            self.config.hook.pytest_deselected(items=left)
        kept = {item.nodeid: item for item in items if item.nodeid in wanted}
        items[:] = [kept[name] for name in order(list(kept), self.durations)]

    def _wanted(self, marks: dict[str, set[str]]) -> set[str]:
        slow = {test for test, names in marks.items() if "slow" in names}
        if self.tier is None:
            return marks.keys() - (set() if self.options.markexpr else slow)
        wanted = {test for test, names in marks.items() if tier_of(test, names, self.durations) <= self.tier}
        if self.tier is Tier.TEST:
            wanted = self._choose(marks.keys() - wanted, slow) | (set() if self.options.chosen else wanted)
        return self._part(sorted(wanted), slow) if self.tier is Tier.NIGHTLY else wanted

    def _choose(self, nightly: set[str], slow: set[str]) -> Set[str]:
        """Those of which something is known: a duration, or that their file was edited."""
        reach, files = intact(read_reach, REACH), file_digests()
        edited = {file for file, digest in files.items() if reach.digests.get(file) != digest}
        known = {test: test in slow for test in nightly
                 if self.durations.of(test) is not None or split(test)[0] in edited}  # fmt: skip
        ranks = rank_files(files, reach, reach.changed(source_files()), edited)
        seconds = CHOSEN_SECONDS if self.options.seconds is None else self.options.seconds
        choice = choose(known, self.durations, ranks, seconds, self.seed)
        self.chosen = choice.numbers
        return choice.tests

    def _part(self, tests: list[str], slow: set[str]) -> set[str]:
        """Of tests in the order of their names: the part that is asked for, as long as the others."""
        known = {test: test in slow for test in tests}
        seconds = [max(self.durations.seconds(test, slow), QUICKLY.seconds) for test, slow in known.items()]
        number, parts = self.options.part or (1, 1)
        found, before, total = set[str](), 0.0, sum(seconds)
        for test, one in zip(tests, seconds, strict=True):
            if number - 1 <= before / total * parts < number:
                found.add(test)
            before += one
        if self.options.but is not None:
            found -= set(self.options.but.read_text().splitlines())
        if self.options.cases is not None:
            found = some_cases(found, self.options.cases, self.seed)
        if self.options.seconds is not None:
            left = {test: known[test] for test in found}
            found &= choose(left, self.durations, {}, self.options.seconds, self.seed).tests
        return found

    def pytest_report_header(self) -> list[str]:
        if self.tier is None:
            return []
        kept = f"durations of {self.durations.date}" if self.durations.date else "no durations are kept yet"
        return [f"tier {self.tier.name.lower()}: {kept}"]

    def pytest_sessionfinish(self) -> None:
        """A process of xdist tells the one that reports."""
        if (output := getattr(self.config, "workeroutput", None)) is not None:
            output["chosen"] = self.chosen

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.chosen = getattr(node, "workeroutput", {}).get("chosen") or self.chosen

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.chosen is not None:
            reached, at_random, left, seconds = self.chosen
            terminalreporter.write_line(
                f"of the nightly tests {reached:.0f} that a change since {self.durations.date or 'the beginning'} can "
                f"reach and {at_random:.0f} at random (some {seconds:.0f} s); {left:.0f} that it can reach are left "
                f"to make nightly")  # fmt: skip

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        from suite.groups import Groups

        return Groups(config, log, self.durations)


def pytest_configure(config: pytest.Config) -> None:
    if config.option.tier and sys.flags.optimize:
        raise pytest.UsageError("python -O leaves assertions out")
    config.pluginmanager.register(Suite(config), "suite")
    if config.option.results is not None:
        from suite.measuring import Measuring

        config.pluginmanager.register(Measuring(config), "measuring")
