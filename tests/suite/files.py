"""Files of tests, and what of the tests' own folder each of them is made of.

In: the text below tests. Out: a digest for each file of tests, which changes with the file, with the conftest beside
it, with the modules of tests that it imports, those of packages too, with programs (tests/programs/NAME.hip, or
NAME.py anywhere below tests) that these name, and with what lies in its folder and is no Python (cases, goldens).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from suite.kept import ROOT, digest

TESTS = ROOT / "tests"
PROGRAMS = TESTS / "programs"
_IMPORTS = re.compile(r"^\s*(?:from|import) ([\w.]+)(?: import (\([^)]*\)|.*))?", re.MULTILINE)
_NAMES = re.compile(r"\w+")
_WORDS = re.compile(r"[\"'](\w+(?:\.py)?)[\"']")
_FUNCTIONS = re.compile(r"^\s*(?:async )?def (test_\w+)", re.MULTILINE)


def file_digests() -> dict[str, str]:
    """By name."""
    return {path.relative_to(ROOT).as_posix(): _digest(path) for path in sorted(TESTS.rglob("test_*.py"))}


def functions_in(text: str) -> Counter[str]:
    """Names of those in a file's text: two classes may have functions of one name."""
    return Counter(_FUNCTIONS.findall(text))


def _digest(path: Path) -> str:
    parts = sorted({*_made_of(path), *_beside(path.parent)})
    return digest(b"".join(_content(part) for part in parts))


@cache
def _beside(folder: Path) -> tuple[Path, ...]:
    if folder == TESTS:
        return ()
    return tuple(path for path in folder.rglob("*") if path.suffix not in (".py", ".pyc") and path.is_file())


def _made_of(path: Path) -> set[Path]:
    found, left = set[Path](), [path, *path.parent.glob("conftest.py")]
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            if one.suffix == ".py":
                left += _used(one)
    return found


@cache
def _used(path: Path) -> tuple[Path, ...]:
    text = path.read_text()
    modules = [folder / part for found in _IMPORTS.findall(text) for part in _candidates(*found)
               for folder in (path.parent, TESTS)]
    programs = [_programs()[word] for word in set(_WORDS.findall(text)) & _programs().keys()]
    return tuple(one for one in (*modules, *programs) if one.is_file())


def _candidates(module: str, names: str) -> Iterator[str]:
    """Files that an import may mean: a module, or modules of a package, with what packages begin with."""
    place = ""
    for part in module.split("."):
        yield f"{place}{part}.py"
        place += f"{part}/"
        yield f"{place}__init__.py"
    yield from (f"{place}{name}.py" for name in _NAMES.findall(names))


@cache
def _programs() -> Mapping[str, Path]:
    """By what a test calls them."""
    python = {path.name: path for path in TESTS.rglob("[!_]*.py") if not path.name.startswith(("test_", "conftest"))}
    return {**python, **{path.stem: path for path in PROGRAMS.glob("*.hip")}}


@cache
def _content(path: Path) -> bytes:
    return path.read_bytes()
