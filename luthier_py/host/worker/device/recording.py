"""Launches of a program that are saved in files.

In: what the environment says, launches as they come and end. Out: a file for each chosen one, and a line of JSON for it
in the journal, if the environment names one. Invariant: launches count from 0 in each process, chosen or not; what
cannot be saved stops no launch, and is reported.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

from luthier_py.base.errors import Invalid, LuthierError, how_many, one_line
from luthier_py.base.names import demangle
from luthier_py.base.records import dataclass
from luthier_py.host.worker.error_boundary import say

if TYPE_CHECKING:
    from luthier_py.emulator import EmulatorDevice
    from luthier_py.emulator.interface.device import KernelHandle
    from luthier_py.emulator.launches.ready import LoadedLaunch

OUTPUT = "LUTHIER_RECORD"
"""A folder for recorded launches, or a file that ends in .lrec for the first that is chosen."""
KERNELS, LAUNCHES = "LUTHIER_RECORD_KERNELS", "LUTHIER_RECORD_LAUNCHES"
"""Which: a regular expression, for names mangled or not; A:B from launch A up to B, which is not one of them."""
JOURNAL = "LUTHIER_RECORDED"
"""A file that gets a line of JSON for each chosen launch."""
SUFFIX = ".lrec"
_EVER = 1 << 63
_LONGEST_NAME = 60


@dataclass(frozen=True, slots=True)
class RecordSettings:
    """``output``: a folder, or a file with SUFFIX. ``launches``: their numbers."""

    output: Path
    kernels: str = ""
    launches: range = range(_EVER)
    journal: Path | None = None

    def environment(self) -> dict[str, str]:
        """By which :func:`record_settings` gives the same again."""
        texts = {OUTPUT: str(self.output.absolute()), KERNELS: self.kernels,
                 LAUNCHES: f"{self.launches.start}:{self.launches.stop}"}
        return {**texts, **({} if self.journal is None else {JOURNAL: str(self.journal)})}


def record_settings(environment: Mapping[str, str]) -> RecordSettings | None:
    """None where nothing is to be recorded; Invalid names what is wrong."""
    if not environment.get(OUTPUT):
        return None
    journal = environment.get(JOURNAL)
    kernels = parse_kernels(KERNELS, environment.get(KERNELS, ""))
    return RecordSettings(Path(environment[OUTPUT]), kernels, parse_launches(LAUNCHES, environment.get(LAUNCHES, "")),
                          Path(journal) if journal else None)


def parse_kernels(name: str, text: str) -> str:
    """``name``: of the option or variable, for errors."""
    try:
        re.compile(text)
    except re.error as error:
        raise Invalid(f"{name}={text}: give a regular expression: {error}") from None
    return text


def parse_launches(name: str, text: str) -> range:
    """``A:B``, ``A:``, ``:B``, or ``A`` for one; all for nothing."""
    match = re.fullmatch(r"(\d{0,18})(:?)(\d{0,19})", text.strip())
    if match is None or match[3] and not match[2]:
        raise Invalid(f"{name}={text}: give numbers of launches as A:B, from A up to B, which is not one of them")
    first, colon, last = match.groups()
    start = int(first or 0)
    found = range(start, min(int(last), _EVER) if last else start + 1 if first and not colon else _EVER)
    if not found:
        raise Invalid(f"{name}={text}: there is no launch from {start} up to {found.stop}")
    return found


class LaunchRecorder:
    """Mutable: of one process."""

    def __init__(self, settings: RecordSettings) -> None:
        self._settings = settings
        self._launches = 0
        self._kept = 0

    def wants(self, kernel: str) -> bool:
        """Whether to save the launch that is about to begin; to be called once for each."""
        number, settings = self._launches, self._settings
        self._launches += 1
        if number not in settings.launches or self._kept and settings.output.suffix == SUFFIX:
            return False
        return any(re.search(settings.kernels, name) for name in (kernel, demangle(kernel)))

    def keep(self, device: EmulatorDevice, kernel: KernelHandle, ready: LoadedLaunch) -> None:
        """Save the ended launch for which `wants` was last called."""
        from luthier_py.emulator.devices.record_file import write_record  # nor are these
        from luthier_py.emulator.devices.recorded_launch import capture_launch

        number = self._launches - 1
        row: dict[str, object] = {"launch": number, "kernel": kernel.name, "process": os.getppid()}
        path = None
        try:
            launch = capture_launch(device, kernel, ready)
            path = self._path(number, kernel.name)
            size = write_record(path, launch)
        except (LuthierError, OSError) as error:
            say(f"launch {number} of {kernel.name} is not recorded: {one_line(error)}")
            self._note({**row, "reason": one_line(error)})
            if path is not None and path.exists() and not path.stat().st_size:
                path.unlink()  # which had but the name
            return
        self._kept += 1
        self._note({**row, "file": str(path), "bytes": size, "pages": len(launch.pages),
                    "code_bytes": len(launch.code), "allocated_bytes": sum(each.size for each in launch.allocations),
                    "instructions": launch.instructions})

    def _path(self, number: int, kernel: str) -> Path:
        """A name that no other process of this run has taken."""
        output = self._settings.output
        if output.suffix == SUFFIX:
            return output
        output.mkdir(parents=True, exist_ok=True)
        words = re.sub(r"\W+", "_", demangle(kernel).partition("(")[0].removeprefix("void ")).strip("_")
        name, process = f"{number:05}-{words[:_LONGEST_NAME]}", os.getppid()
        more = chain(("", f"-{process}"), (f"-{process}-{again}" for again in count(1)))
        return next(path for each in more if self._takes(path := output / f"{name}{each}{SUFFIX}"))

    def _takes(self, path: Path) -> bool:
        """Whether no recording has the name: of one run with a journal, whose folder has a file for each name, since
        those of earlier runs are replaced; otherwise of all."""
        journal = self._settings.journal
        place = path if journal is None else journal.with_name(path.name)
        try:
            os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        except FileExistsError:
            return False
        return True

    def _note(self, row: Mapping[str, object]) -> None:
        if self._settings.journal is not None:
            with self._settings.journal.open("a") as file:
                file.write(json.dumps(row) + "\n")


def describe_recorded_launch(row: Mapping[str, object]) -> str:
    """A line of the journal on a saved launch, as text for the user."""
    what = f"launch {row['launch']} of {demangle(str(row['kernel']))}"
    pages = how_many(int(str(row["pages"])), "page")
    return f"{what}: {row['file']}, {row['bytes']} bytes for {pages} of memory and {row['code_bytes']} bytes of code"
