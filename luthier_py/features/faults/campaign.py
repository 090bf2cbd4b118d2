"""Campaigns of faults: launches or programs run again and again with one register wrong, and what became of each.

In: recorded launches or a program, how many faults, a seed, a folder. Out: the folder's tables, and the facts behind
them. Invariant: a fault that was judged is on disk before the next one is injected, so a campaign goes on where it was
left.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from luthier_py.base.errors import Invalid
from luthier_py.base.storage import write_file
from luthier_py.emulator.devices.record_file import read_record
from luthier_py.features.faults.bench import RecordedSubject
from luthier_py.features.faults.drawing import Campaign, draw_fault
from luthier_py.features.faults.judging import Bench, JudgedFault, judge_fault
from luthier_py.features.faults.report import fault_files, fault_summary
from luthier_py.features.faults.store import FaultStore, campaign_identity
from luthier_py.features.settings.files import each_once
from luthier_py.features.settings.run_settings import EMULATOR, RunSettings
from luthier_py.report.plain import Json


class Subject(Protocol):
    """What faults are injected into. ``stem``: of files' names."""

    @property
    def name(self) -> str: ...

    @property
    def stem(self) -> str:
        """How files of its faults begin; two subjects may share it, since each has an identity as well."""

    def content(self) -> object:
        """What decides, beside the campaign, what becomes of a fault."""

    def bench(self, options: Mapping[str, str], settings: RunSettings) -> AbstractContextManager[Bench]:
        """Ready for faults, with these options of the tool beside theirs."""

    def again(self, options: Mapping[str, str], settings: RunSettings, launch: int) -> str:
        """The command that injects one once more."""


def read_recorded_subjects(files: Sequence[Path], tolerance: float) -> list[RecordedSubject]:
    """Read the recorded launches. Invalid where a file is named twice; Malformed, Unsupported or OSError as of
    `read_record`. ``tolerance``: relative, of floats."""
    return [RecordedSubject(file, read_record(file), tolerance) for file in each_once(files)]


def run_campaign(subjects: Sequence[Subject], campaign: Campaign, folder: Path, settings: RunSettings,
                 ended: Callable[[], object]) -> Json:
    """Inject what is not judged yet, and write what all of it says; the summary's facts, with the files' names.
    ``ended`` is called for each fault."""
    require_emulator(settings)
    rows = [row for subject in subjects for row in faults_of(subject, campaign, folder, settings, ended)]
    facts = fault_summary(rows, campaign.seed)
    paths = []
    for name, content in {**fault_files(rows, facts), "summary.json": json.dumps(facts, indent=2).encode()}.items():
        paths.append(folder / name)
        write_file(paths[-1], content)
    return {**facts, "files": [str(path) for path in paths]}


def require_emulator(settings: RunSettings) -> None:
    """Invalid unless the settings name an emulator."""
    if not (settings.device or "").startswith(EMULATOR):
        raise Invalid("what a fault does is judged by the emulator, which knows of each launch how it ended: give "
                      "--device emulator, and for a program emulator:TARGET")


def faults_of(subject: Subject, campaign: Campaign, folder: Path, settings: RunSettings,
              ended: Callable[[], object]) -> list[Json]:
    """A row for each fault of a launch or program, by number."""
    identity = campaign_identity(subject.content(), campaign.drawing, settings)
    store = FaultStore(folder, subject.stem, identity)
    rows = store.rows()
    waiting = [number for number in campaign.numbers if number not in rows]
    for _ in range(campaign.faults - len(waiting)):
        ended()
    if waiting:
        with subject.bench(campaign.options, settings) as bench, store.open_for_appending() as add:
            check_there_are_some(subject, bench)
            for number in waiting:
                fault = draw_fault(number, campaign.seed, campaign.models, bench.written)
                found = judge_fault(bench, fault, campaign.options, campaign.every_lane)
                again = subject.again({**campaign.options, **found.options}, settings, fault.launch)
                rows[number] = row_of(subject.name, bench.kernel(fault.launch), found, again)
                add(rows[number])
                ended()
    return [rows[number] for number in campaign.numbers]


def check_there_are_some(subject: Subject, bench: Bench) -> None:
    """Invalid where no wave executes a chosen instruction that writes a register, so that no fault can be drawn."""
    if not any(map(sum, bench.written)):
        kernels = ", ".join(dict.fromkeys(bench.kernel(launch) for launch in range(len(bench.written))))
        raise Invalid(f"{subject.name}: kernel {kernels} executes no instruction that was chosen and writes a "
                      "register; choose others with -O INSTRUMENT or --lines")


def row_of(name: str, kernel: str, found: JudgedFault, again: str) -> Json:
    """One fault as data. Facts of the place are None where the fault hit nothing. ``again``: the command that repeats
    it."""
    fault, injection = found.fault, found.injection
    hit = injection.hit or {}
    of_hit = ("pc", "instruction", "line", "group", "register", "workgroup", "lane", "before", "after")
    row: dict[str, Any] = {"number": fault.number, "file": name, "kernel": kernel, "effect": injection.effect.value,
                           "model": fault.model, "launch": fault.launch, "wave": fault.wave}
    side = None if injection.side is None else injection.side.value
    return {**row, **{each: hit.get(each) for each in of_hit}, "why": injection.why, "side": side, "again": again}
