"""What the last nightly run kept of each test and of each file of tests.

In: durations.json and reach.json beside this file, which tests/suite/nightly.py writes. Out: Durations and Reach.
Invariant: a test that took less than QUICK seconds, its part of shared fixtures included, started no process and ran
no kernel has no line of its own, and a test of which nothing is kept counts as one of these: a new test runs in
every tier.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DURATIONS, REACH = HERE / "durations.json", HERE / "reach.json"
QUICK = 0.02
"""Seconds."""
PROCESS, KERNEL = "p", "k"
"""Marks of a test that starts a process, or runs a kernel in its own."""
COMPILING = "compiles programs"
"""The thread that compiles programs for later tests (compiled_programs.py): what it starts is no test's."""
SOURCES = ("luthier_py", "tools", "intrinsics", "tests/data")  # these are luthier_py.samples
UNKNOWN_SECONDS = 5.0
"""What a test that is marked slow may take of which no duration is kept."""


class Kept(NamedTuple):
    """Of one test: seconds by itself, marks, and seconds of the fixtures that it shares with other tests."""

    seconds: float
    marks: str
    shared: float


QUICKLY = Kept(0.01, "", 0.0)


def split(nodeid: str) -> tuple[str, str]:
    """File and name of a test."""
    file, _, name = nodeid.partition("::")
    return file, name


@dataclass(frozen=True)
class Durations:
    """By file, and in it by name; ``quick``: how many tests of a file have no line of their own."""

    files: Mapping[str, Mapping[str, Kept]]
    quick: Mapping[str, int]
    date: str = ""

    def of(self, nodeid: str) -> Kept | None:
        """None for a quick test, and for one that was not there."""
        file, name = split(nodeid)
        return self.files.get(file, {}).get(name)

    @cached_property
    def _users(self) -> Mapping[str, Counter[float]]:
        return {file: Counter(kept.shared for kept in tests.values()) for file, tests in self.files.items()}

    @cached_property
    def _at_work(self) -> frozenset[str]:
        return frozenset(f"{file}::{name.partition('[')[0]}" for file, tests in self.files.items()
                         for name, kept in tests.items() if kept.marks)

    @cached_property
    def _of_cases(self) -> Mapping[str, float]:
        """What a case of each function takes, in the mean."""
        cases: dict[str, list[float]] = {}
        for file, tests in self.files.items():
            for name, kept in tests.items():
                cases.setdefault(f"{file}::{name.partition('[')[0]}", []).append(kept.seconds)
        return {function: sum(seconds) / len(seconds) for function, seconds in cases.items()}

    def works(self, nodeid: str) -> bool:
        """Whether a case of its function starts a process or runs a kernel: what one has done others may only read,
        and do themselves where that one does not run."""
        return nodeid.partition("[")[0] in self._at_work

    @cached_property
    def file_seconds(self) -> Mapping[str, float]:
        """What the tests of each file take together, but for quick ones."""
        return {file: sum(kept.seconds for kept in tests.values()) + sum({kept.shared for kept in tests.values()})
                for file, tests in self.files.items()}  # fmt: skip

    def seconds(self, nodeid: str, slow: bool = False) -> float:
        """What a test takes: shared fixtures are a part of each test that uses them. ``slow``: it is marked so, and
        takes what other cases of its function do where nothing is known of itself."""
        kept = self.of(nodeid)
        if kept is None:
            return self._of_cases.get(nodeid.partition("[")[0], UNKNOWN_SECONDS) if slow else QUICKLY.seconds
        return kept.seconds + kept.shared / self._users[split(nodeid)[0]][kept.shared]


def read_durations(path: Path = DURATIONS) -> Durations:
    """Empty where no nightly run has kept anything yet."""
    if not path.exists():
        return Durations({}, {})
    kept = json.loads(path.read_text())
    return Durations(
        {file: {name: Kept(*row) for name, row in tests.items()} for file, tests in kept["tests"].items()},
        kept["quick"], kept["date"])  # fmt: skip


def write_durations(durations: Durations, path: Path = DURATIONS) -> None:
    write_lines(path, {"date": durations.date, "quick": durations.quick, "tests": durations.files})


def write_lines(path: Path, value: Mapping[str, Any]) -> None:
    """JSON with a line for each member of the innermost tables, so that two runs can be compared."""
    draft = path.with_suffix(f".{os.getpid()}.part")  # two runs may end at once
    draft.write_text(_text(value) + "\n")
    draft.rename(path)


def _text(value: Any) -> str:
    if not isinstance(value, Mapping):
        return json.dumps(value, separators=(",", ":"))
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {_text(value[key])}" for key in sorted(value)) + "\n}"


def source_files() -> dict[str, str]:
    """Sources, tables, templates and all else that tests may reach: a short digest of what is in them now, by name."""
    found = {}
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.*")):
            if path.is_file() and "__pycache__" not in path.parts:
                found[path.relative_to(ROOT).as_posix()] = digest(path.read_bytes())
    return found


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


@dataclass(frozen=True)
class Reach:
    """``sources``: digests at the time of the run; ``tests``: for each file of tests the sources that it executed."""

    sources: Mapping[str, str]
    tests: Mapping[str, frozenset[str]]
    digests: Mapping[str, str]
    """Of the files of tests."""

    def changed(self, now: Mapping[str, str]) -> frozenset[str]:
        """Sources that are not as they were, new ones and those that are gone included. A file that no test executes
        stands for all that are executed in its folder; where none is, and it is no Python (a table, a template), for
        those of the next folder above."""
        names = self.sources.keys() | now.keys()
        files = {name for name in names if self.sources.get(name) != now.get(name)}
        executed = frozenset().union(*self.tests.values())
        rooms = {folder_of(name) for name in executed}
        folders = {_room(name, rooms) for name in files - executed}
        return frozenset(files | {name for name in executed if folder_of(name) in folders})


def folder_of(name: str) -> str:
    return name.rpartition("/")[0]


def _room(name: str, rooms: Set[str]) -> str:
    """The folder of a file; of one that is no Python the first from there up of these ``rooms``."""
    folder = folder_of(name)
    while folder and folder not in rooms and not name.endswith(".py"):
        folder = folder_of(folder)
    return folder


def read_reach(path: Path = REACH) -> Reach:
    """Empty where no nightly run has kept anything yet."""
    if not path.exists():
        return Reach({}, {}, {})
    kept = json.loads(path.read_text())
    names = list(kept["sources"])
    tests = {file: frozenset(names[place] for place in ranges(text)) for file, text in kept["tests"].items()}
    return Reach(kept["sources"], tests, kept["digests"])


def write_reach(reach: Reach, path: Path = REACH) -> None:
    places = {name: place for place, name in enumerate(sorted(reach.sources))}
    tests = {file: ranges_text(places[name] for name in names if name in places) for file, names in reach.tests.items()}
    write_lines(path, {"sources": reach.sources, "tests": tests, "digests": reach.digests})


def ranges(text: str) -> Iterator[int]:
    """Numbers of a text as ``0-3 7 9-12``."""
    for part in text.split():
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def ranges_text(numbers: Iterable[int]) -> str:
    """For :func:`ranges`."""
    rows: list[list[int]] = []
    for number in sorted(set(numbers)):
        if rows and rows[-1][1] == number - 1:
            rows[-1][1] = number
        else:
            rows.append([number, number])
    return " ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in rows)
