"""Programs that tests run: compiled once, and kept by content in the user's cache, where all checkouts find them.

In: sources of HIP and C, and how to compile them. Out: executables, each in a folder of its own with its code objects
(NAME.gfx90a.co) and its fat binary (NAME.hipfb).
Invariant: a program is there whole or not at all, and belongs to exactly these sources, headers and compilers. Two
processes never compile the same one; a process that is killed leaves nothing that anybody waits for, as its lock goes
with it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from program_builder import builder
from rocm_stack import lacking
from suite.kept import COMPILING

from luthier_py.host.hip import runtime_folder

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
HOST_PROGRAMS = HERE / "unit" / "host" / "worker"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "luthier-tests"
UNUSED = 30 * 24 * 3600  # s after which a program is thrown away
TARGET = "gfx90a"
COMPILERS = "clang++-22", "ld.lld-22", "cc", "ld"
FUNCTIONS = HERE.parent / "luthier_py" / "host" / "hip" / "functions.txt"  # programs are bound to their versions
HEADERS = {builder.hip_major(path): path for path in reversed(builder.header_folders())}
NO_HEADERS = "no HIP headers: install ROCm, or triton from PyPI, which has them, or set LUTHIER_HIP_INCLUDE"


class Recipe(NamedTuple):
    """``key``: of all that the program depends on; ``make(path)`` compiles it, and leaves other files beside it."""

    name: str
    key: str
    make: Callable[[Path], object]

    @property
    def path(self) -> Path:
        return CACHE / f"{self.name}-{self.key}" / self.name


def key_of(*parts: object) -> str:
    """Files by their content, all else by its text."""
    texts = [part.read_bytes() if isinstance(part, Path) else repr(part).encode() for part in parts]
    texts.append(compilers(*COMPILERS))
    return hashlib.sha256(b"\0".join(hashlib.sha256(text).digest() for text in texts)).hexdigest()[:16]


@cache
def compilers(*names: str) -> bytes:
    """Those of these that are installed now."""
    found = [Path(place).resolve() for name in names if (place := shutil.which(name))]
    return repr([(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in found]).encode()


@cache
def headers_key(headers: Path) -> str:
    """Of all files of a folder, and of the device library beside it."""
    files = sorted(path for path in headers.rglob("*") if path.is_file())
    return key_of([str(path.relative_to(headers)) for path in files], *files, builder.device_library(headers))


def compiled(recipe: Recipe, wait: bool = True) -> Path:
    """The program, made by one process; without ``wait`` it may not be there yet, if another process makes it."""
    if recipe.path.exists():
        with suppress(OSError):
            os.utime(recipe.path.parent)  # it is in use
        return recipe.path
    CACHE.mkdir(parents=True, exist_ok=True)
    place = recipe.path.parent
    with open(CACHE / f"{place.name}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return recipe.path
        if not recipe.path.exists():
            for left in CACHE.glob(f"{place.name}.*.part"):  # of a process that was killed
                shutil.rmtree(left, ignore_errors=True)
            part = Path(tempfile.mkdtemp(".part", f"{place.name}.", CACHE))
            try:
                recipe.make(part / recipe.name)
                part.chmod(0o755)
                part.rename(place)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    return recipe.path


def begin(recipes: Iterable[Recipe]) -> None:
    """Compile in the background, one after the other, what no other process compiles; in one process of the tests."""
    if os.environ.get("PYTEST_XDIST_WORKER", "gw0") != "gw0":
        return
    left = [recipe for recipe in recipes if not recipe.path.exists()]

    def compile_all() -> None:
        for recipe in left:
            with suppress(RuntimeError, OSError, subprocess.CalledProcessError):  # who needs it is told
                compiled(recipe, wait=False)

    if left:
        throw_away_unused()
        threading.Thread(target=compile_all, name=COMPILING, daemon=True).start()


def throw_away_unused() -> None:
    for path in CACHE.glob("*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > UNUSED:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def headers_of(major: int | None) -> Path:
    """Those of a HIP release, or the newest."""
    return HEADERS.get(major or 0) or HEADERS[max(HEADERS)]


def hip_recipe(
    name: str, major: int | None = None, targets: tuple[str, ...] = (TARGET,), compressed: int = 0, entry: str = "",
    extra: tuple[str, ...] = (),
) -> Recipe:
    """tests/programs/NAME.hip, linked with libamdhip64.so.MAJOR. See builder.build for the other parameters."""
    headers, source = headers_of(major), PROGRAMS / f"{name}.hip"
    how = {"abi": major or max(HEADERS), "compressed": compressed, "entry": entry, "extra": extra}
    where = str(source) if any(word.startswith("-g") for word in extra) else name  # lines name their file
    begun = headers_recipe(headers) if targets == (TARGET,) and not entry and not extra else None

    def make(path: Path) -> None:
        builder.build(source, path, headers, runtime_folder(), targets, **how, precompiled=begun and compiled(begun))

    parts = where, source, *_beside_programs(), FUNCTIONS, headers_key(headers)
    return Recipe(name, key_of(*parts, targets, how), make)


def headers_recipe(headers: Path, *extra: str, code_object: int = builder.CODE_OBJECT) -> Recipe:
    """HIP's headers, compiled for programs of the usual target; by where they lie, too, which the compiler checks."""
    key = key_of(str(HERE), str(headers), *_beside_programs(), headers_key(headers), extra, code_object)
    return Recipe("headers", key, lambda path: builder.precompile(headers, path, TARGET, extra, code_object))


def _beside_programs() -> list[Path]:
    return [*sorted(PROGRAMS.glob("*.h")), PROGRAMS / "build.py"]


def host_recipe(name: str, *flags: str, linked: bool = True) -> Recipe:
    """tests/unit/host/worker/NAME.c; ``linked``: with libamdhip64."""
    source = HOST_PROGRAMS / f"{name}.c"

    def make(path: Path) -> None:
        library = (f"-L{runtime_folder()}", "-l:libamdhip64.so.7") if linked else ("-ldl",)
        words = ["-Wall", *flags, source, "-o", path, *library, "-pthread"]
        subprocess.run(["cc", *words], check=True)

    return Recipe(name, key_of(source, FUNCTIONS, flags, linked), make)


def chosen_programs(items: Iterable[pytest.Item]) -> list[str]:
    """Those of tests/programs that the files of these tests name, or their parameters."""
    known = {path.stem for path in PROGRAMS.glob("*.hip")}
    named: set[object] = set()
    for path in {item.path for item in items if "program" in getattr(item, "fixturenames", ())}:
        named.update(re.findall(r'\bprogram\("(\w+)"\)', path.read_text()))
    for item in items:
        if hasattr(item, "callspec") and "program" in item.fixturenames:
            named.update(value for value in item.callspec.params.values() if isinstance(value, str))
    return sorted(known & named)


@pytest.fixture(scope="session")
def program(require_tool: Callable[[str], str]) -> Callable[..., Path]:
    """``program(name, major)``: tests/programs/NAME.hip as an executable; see :func:`hip_recipe`."""
    require_tool("clang++-22")
    require_tool("cc")
    if not HEADERS:
        lacking(NO_HEADERS)

    def make(name: str, major: int | None = None, **how: Any) -> Path:
        linked = builder.LINKED in (PROGRAMS / f"{name}.hip").read_text()
        if linked and builder.device_library(headers_of(major)) is None:
            lacking("no device library (ockl.bc): install ROCm, rocm-device-libs, or triton from PyPI")
        return compiled(hip_recipe(name, major, **how))

    return make


@pytest.fixture(scope="session")
def host_program(require_tool: Callable[[str], str]) -> Callable[..., Path]:
    """``host_program(name, *flags)``: tests/unit/host/worker/NAME.c as an executable; see :func:`host_recipe`."""
    require_tool("cc")
    return lambda *how, **more: compiled(host_recipe(*how, **more))
