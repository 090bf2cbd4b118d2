"""Programs of conformance cases: what is in them, how they are built, and how their cases are run.

In: the sources beside this file. Out: for each case an empty text, or what went wrong.
Invariant: names come from the sources alone, so that cases are known where nothing can be compiled. A case that crashes
or hangs costs itself only: the program is started again with the cases after it.
"""

from __future__ import annotations

import hashlib
import os
import re
import selectors
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from program_builder import builder

HERE = Path(__file__).parent
TARGET = "gfx90a"
SILENCE = float(os.environ.get("LUTHIER_CONFORMANCE_SECONDS", "60"))
"""A program that prints nothing for so long hangs."""
ENDING = 20.0
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


def build(source: Path, folder: Path, headers: Path, libraries: Path, key: str = "", **how: object) -> Path:
    """The program, compiled unless this very one was; a function that the library lacks fails where it is called (lld).

    ``key``: what else the result depends on. ``how``: see builder.build.
    """
    text = source.read_text()
    parts = [*sorted(HERE.glob("*.h")), Path(__file__), Path(builder.__file__), builder.HERE / "device_library.h"]
    content = b"\0".join([text.encode(), *(part.read_bytes() for part in parts), f"{key}{headers}{how}".encode()])
    output = folder / f"{source.stem}-{hashlib.sha256(content).hexdigest()[:16]}"
    if not output.exists():
        found = _OPTIONS.search(text)
        extra = found[1].split() if found else []
        made = folder / f"{output.name}.{os.getpid()}.part"
        lazy = "-fuse-ld=lld", "-Wl,--unresolved-symbols=ignore-all", "-Wl,-z,lazy", "-ldl"
        builder.build(source, made, headers, libraries, (TARGET,), extra, link=lazy, **how)
        made.rename(output)
    return output


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
