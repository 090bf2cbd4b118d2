"""Programs of conformance cases: what is in them, how they are built, and how their cases are run.

In: the sources beside this file. Out: for each case an empty text, or what went wrong.
Invariant: names come from the sources alone, so that cases are known where nothing can be compiled. A case that crashes
or hangs costs itself only: the program is started again with the cases after it.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from compiled_programs import FUNCTIONS, Recipe, compiled, headers_key, headers_recipe, key_of
from program_builder import builder

from luthier_py.host.hip import runtime_folder

HERE = Path(__file__).parent
TARGET = "gfx90a"
SILENCE = float(os.environ.get("LUTHIER_CONFORMANCE_SECONDS", "600"))
"""A program that prints nothing for so long hangs."""
ENDING = 120.0
"""So long a program may take to end after its last word."""
UNABLE = 3  # exit code of a program whose device cannot go on after a case, see case.h
_CASE = re.compile(r"^(CASE|ALONE)\((\w+)\)", re.MULTILINE)
_OPTIONS = re.compile(r"^// Options: (.*)$", re.MULTILINE)
_RESULT = re.compile(r"^(ok|FAIL) (\w+) ?(.*)$")


class Case(NamedTuple):
    program: str
    name: str
    alone: bool


def sources() -> list[Path]:
    return sorted(HERE.glob("*.hip"))


def cases_of(source: Path) -> list[Case]:
    return [Case(source.stem, name, kind == "ALONE") for kind, name in _CASE.findall(source.read_text())]


def device_of(program: str) -> str:
    return f"emulator:{TARGET}*2" if program.endswith("_devices") else f"emulator:{TARGET}"


def recipe(source: Path, headers: Path, libraries: Path | None = None, **how: object) -> Recipe:
    """A program in which a function that the library lacks fails where it is called (lld).

    ``libraries``: another folder than that of our libamdhip64. ``how``: see builder.build.
    """
    found = _OPTIONS.search(source.read_text())
    extra = found[1].split() if found else []

    begun = None if extra or how else headers_recipe(headers)

    def make(path: Path) -> None:
        lazy = "-fuse-ld=lld", "-Wl,--unresolved-symbols=ignore-all", "-Wl,-z,lazy", "-ldl"
        builder.build(source, path, headers, libraries or runtime_folder(), (TARGET,), extra, link=lazy,
                      precompiled=begun and compiled(begun), **how)

    parts = source, *sorted(HERE.glob("*.h")), Path(__file__), Path(builder.__file__), *sorted(builder.HERE.glob("*.h"))
    return Recipe(source.stem, key_of(*parts, headers_key(headers), str(libraries or FUNCTIONS.read_text()), how), make)


def run(program: Path, names: Iterable[str], environment: Mapping[str, str]) -> dict[str, str]:
    """What went wrong with each case, "" where nothing did; in one process, as long as it lasts."""
    results: dict[str, str] = {}
    left = list(names)
    while left:
        found, end = run_once(program, left, environment)
        results.update(found)
        after = [name for name in left if name not in found]
        if end and (after or left):
            guilty = after[0] if after else left[-1]
            results[guilty] = f"{results.get(guilty, '')} {end}".strip()
            after = after[1:]
        elif len(after) == len(left):
            results.update(dict.fromkeys(left, "the program said nothing of it"))
            after = []
        left = after
    return results


def run_once(program: Path, names: Sequence[str], environment: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """Results by name, and how the program ended if not as it should."""
    found: dict[str, str] = {}
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [str(program), *names], env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=errors,
            stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        with process:
            assert process.stdout is not None
            hangs = True
            try:
                hangs = not read_results(process.stdout, found)
            finally:
                end_process(process, 0 if hangs else ENDING)
        errors.seek(0)
        said = " | ".join(errors.read().split("\n")[-12:])[-1500:].strip(" |")
    if hangs:
        return found, f"hangs: {SILENCE:.0f} s without a word; stderr: {said}"
    if process.returncode in (0, UNABLE):
        return found, ""
    how = signal.Signals(-process.returncode).name if process.returncode < 0 else f"code {process.returncode}"
    return found, f"the program ended with {how}; stderr: {said}"


def read_results(stream: IO[bytes], found: dict[str, str]) -> bool:
    """Until the stream ends; False where nothing comes for too long."""
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while selector.select(SILENCE):
            data = os.read(stream.fileno(), 1 << 16)
            if not data:
                return True
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                result = _RESULT.match(line.decode(errors="replace"))
                if result:
                    found[result[2]] = "" if result[1] == "ok" else result[3] or "failed"
    return False


def end_process(process: subprocess.Popen[bytes], patience: float) -> None:
    """The program and what it started: by itself within ``patience`` seconds, else by force."""
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
