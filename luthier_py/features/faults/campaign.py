"""Campaigns of faults: launches or programs run again and again with one register wrong, and what became of each.

In: recorded launches or a program, how many faults, a seed, a folder. Out: the folder's tables, and the facts behind
them. Invariant: a fault that was judged is on disk before the next one is injected, so a campaign continues where it
was stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from luthier_py.base.errors import Invalid
from luthier_py.emulator.devices.record_file import read_record
from luthier_py.features.campaign.engine import Campaign, Ended, Variation, in_turn
from luthier_py.features.campaign.store import RowStore
from luthier_py.features.faults.bench import RecordedSubject
from luthier_py.features.faults.drawing import TOOL, FaultCampaign, draw_fault
from luthier_py.features.faults.judging import Bench, JudgedFault, judge_fault
from luthier_py.features.faults.report import fault_files, fault_summary
from luthier_py.features.settings.contents import our_content, tool_content
from luthier_py.features.settings.files import each_once, write_results
from luthier_py.features.settings.run_settings import EMULATOR, RunSettings
from luthier_py.report.plain import Json

KernelFault = tuple[str, JudgedFault]
"""The name of the kernel that had the fault, and what became of it."""


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


def run_campaign(subjects: Sequence[Subject], campaign: FaultCampaign, folder: Path, settings: RunSettings,
                 ended: Callable[[], object]) -> Json:
    """Inject what is not judged yet, and write what all of it says; the summary's facts, with the files' names.
    ``ended`` is called for each fault."""
    require_emulator(settings)
    rows = [row for subject in subjects for row in faults_of(subject, campaign, folder, settings, ended)]
    facts = fault_summary(rows, campaign.seed)
    files = {folder / name: content for name, content in fault_files(rows, facts).items()}
    return write_results(facts, folder / "summary.json", files)


def require_emulator(settings: RunSettings) -> None:
    """Invalid unless the settings name an emulator."""
    if not (settings.device or "").startswith(EMULATOR):
        raise Invalid("what a fault does is judged by the emulator, which knows of each launch how it ended: give "
                      "--device emulator, and for a program emulator:TARGET")


def faults_of(subject: Subject, campaign: FaultCampaign, folder: Path, settings: RunSettings,
              ended: Callable[[], object]) -> list[Json]:
    """A row for each fault of a launch or program, by number."""
    def inject(waiting: Sequence[Variation[int, KernelFault]]) -> Ended[int, KernelFault]:
        with subject.bench(campaign.options, settings) as bench:
            check_there_are_some(subject, bench)
            yield from in_turn(partial(_inject_fault, bench, campaign))(waiting)

    def make_row(judged: KernelFault) -> Json:
        kernel, found = judged
        again = subject.again({**campaign.options, **found.options}, settings, found.fault.launch)
        return row_of(subject.name, kernel, found, again)

    identity = campaign_identity(subject.content(), campaign.drawing, settings)
    store = RowStore(folder / f"{subject.stem}-{identity[:16]}.ndjson", "number")
    faults = Campaign([Variation(number, number, make_row) for number in campaign.numbers], store)
    for _ in faults.rows:
        ended()
    return [*faults.run(inject, ended)]


def _inject_fault(bench: Bench, campaign: FaultCampaign, number: int) -> KernelFault:
    fault = draw_fault(number, campaign.seed, campaign.models, bench.written)
    return bench.kernel(fault.launch), judge_fault(bench, fault, campaign.options, campaign.every_lane)


def campaign_identity(subject: object, drawing: object, settings: RunSettings) -> str:
    """A digest of all that decides what becomes of fault N; how many there are does not."""
    given = repr((subject, drawing, settings.device, settings.stack, settings.launch, our_content(),
                  tool_content(TOOL)))
    return sha256(given.encode()).hexdigest()


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
