"""Which sources each file of tests executes: Python in all processes by coverage.py, C by gcov.

In: a folder in which a measured run leaves its data (``environment``). Out: for each file of tests the sources of
which it executed a line inside of a function; lines that run when a module is imported do not count. Invariant: each
C source has counters of its own, in a file with its object's name (``FOLDER-NAME.gcda``, host/native/build.py).
What a process executed that is killed, or does not have its parent's environment, is not known.
"""

from __future__ import annotations

import ast
import os
import struct
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from suite.kept import ROOT, SOURCES

FOLDER = "LUTHIER_REACH"
CONTEXT = "LUTHIER_REACH_CONTEXT"
_CONFIG = """[run]
branch = True
parallel = True
patch = _exit
sigterm = True
context = ${{{context}-}}
data_file = {folder}/python/data
source = {sources}
disable_warnings = no-data-collected, module-not-imported, couldnt-parse
"""
_COMPILER = """#!/bin/sh
exec cc --coverage -fprofile-update=atomic "$@"
"""
_MAGIC, _COUNTERS = 0x67636461, 0x01A10000


def environment(folder: Path) -> dict[str, str]:
    """What a measured run and all that it starts are to find: it has a cache of its own, with libraries that count."""
    for name in ("python", "c"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    config, compiler = folder / "coveragerc", folder / "cc"
    sources = ", ".join(str((ROOT / name).resolve()) for name in SOURCES)
    config.write_text(_CONFIG.format(context=CONTEXT, folder=folder, sources=sources))
    compiler.write_text(_COMPILER)
    compiler.chmod(0o755)
    return {FOLDER: str(folder), "COVERAGE_PROCESS_START": str(config), "CC": str(compiler),
            "LUTHIER_CACHE_DIR": str(folder / "cache"), "GCOV_PREFIX_STRIP": "99"}  # fmt: skip


def combine(folder: Path) -> Path:
    """One file of what all processes executed so far."""
    combined, parts = folder / "python" / "combined", [*(folder / "python").glob("data.*")]
    if parts:
        words = ["combine", f"--rcfile={folder / 'coveragerc'}", "--append", "--quiet", f"--data-file={combined}"]
        subprocess.run([sys.executable, "-m", "coverage", *words, *map(str, parts)], check=True)
    return combined


def folder_of(file: str) -> str | None:
    """Where C libraries count what a file of tests executes; None where nothing is measured."""
    folder = os.environ.get(FOLDER)
    return None if folder is None else str(Path(folder) / "c" / file.replace("/", "@"))


def executed(folder: Path) -> dict[str, set[str]]:
    """Sources by file of tests."""
    found: dict[str, set[str]] = defaultdict(set)
    for file, source in _python(folder / "python"):
        found[file].add(source)
    for place in (folder / "c").iterdir():
        file = place.name.replace("@", "/")
        sources = {c_source(data) for data in place.rglob("*.gcda") if counted(data.read_bytes())}
        found[file].update(source for source in sources if source)
    return dict(found)


def _python(folder: Path) -> Iterator[tuple[str, str]]:
    from coverage import CoverageData

    data = CoverageData(str(folder / "combined"))
    data.read()
    contexts = [context for context in data.measured_contexts() if context.startswith("tests/")]
    for context in contexts:
        data.set_query_contexts([f"^{context}$".replace(".", r"\.")])
        for path in filter(is_python, data.measured_files()):
            lines = data.lines(path)
            if lines and not function_lines(path).isdisjoint(lines):
                yield context, Path(path).relative_to(ROOT).as_posix()


def is_python(path: str) -> bool:
    """Templates of pages are measured as well, as what they are compiled to."""
    return path.endswith(".py")


@cache
def function_lines(path: str) -> frozenset[int]:
    """Lines inside of a module's functions."""
    found = set[int]()
    for node in ast.walk(ast.parse(Path(path).read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            body: Iterable[ast.AST] = node.body if isinstance(node.body, list) else [node.body]
            for part in body:
                found.update(range(part.lineno, (part.end_lineno or part.lineno) + 1))  # type: ignore[attr-defined]
    return frozenset(found)


@cache
def _c_sources() -> Mapping[str, str]:
    paths = [path.relative_to(ROOT) for path in (ROOT / "luthier_py").rglob("*.c")]
    return {f"{path.parent.name}-{path.stem}": path.as_posix() for path in paths}


def c_source(data: Path) -> str | None:
    """The source whose object left these counters; None for one that is generated."""
    return _c_sources().get(data.stem)


def counted(data: bytes) -> bool:
    """Whether one of the counters in a .gcda file is not zero (GCC, gcov-io.h: records of tag, bytes, data)."""
    if len(data) < 16 or struct.unpack_from("<I", data)[0] != _MAGIC:
        return False
    place = 16  # magic, version, stamp, checksum
    while place + 8 <= len(data):
        tag, length = struct.unpack_from("<Ii", data, place)
        if tag == _COUNTERS and length > 0:  # all zeros are a negative length without data
            return True
        place += 8 + max(length, 0)
        if tag == 0:
            break
    return False
