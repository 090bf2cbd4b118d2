"""Campaigns of faults: recorded launches run again and again with one register wrong, and what became of each.

In: recorded launches, how many faults, a seed, a folder. Out: the folder's tables, and the facts behind them.
Invariant: a fault that was judged is on disk before the next one is injected, so a campaign goes on where it was left.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from luthier_py.emulator.devices.record_file import read_record
from luthier_py.errors import Invalid
from luthier_py.report.faults import fault_files, fault_summary
from luthier_py.report.plain import Json
from luthier_py.session.faults.bench import FaultBench, JudgedFault, fault_bench
from luthier_py.session.faults.drawing import MODELS, drawn, replay_options
from luthier_py.session.faults.store import FaultStore, campaign_identity
from luthier_py.session.run_settings import EMULATOR, RunSettings
from luthier_py.storage import write_file

DRAWN = "MODEL", "WAVE", "WHEN", "BIT", "MASK", "COUNT", "LANE", "UNIT"
"""Options of the tool that say which fault it is."""

__all__ = ["Campaign", "parse_models", "run_campaign"]


@dataclass(frozen=True, slots=True)
class Campaign:
    """``faults``: of each launch. ``options``: of the tool, which instructions, for example."""

    faults: int
    seed: int
    models: tuple[str, ...]
    options: Mapping[str, str]
    tolerance: float = 0.0


def parse_models(text: str) -> tuple[str, ...]:
    """Names with commas between."""
    models = tuple(dict.fromkeys(text.split(",")))
    if unknown := [each for each in models if each not in MODELS]:
        raise Invalid(f"--models {text}: {unknown[0]!r} is none; choose some of {','.join(MODELS)}")
    return models


def run_campaign(files: Sequence[Path], campaign: Campaign, folder: Path, settings: RunSettings,
                 ended: Callable[[], object]) -> Json:
    """Inject what is not judged yet, and write what all of it says; the summary's facts, with the files' names.
    ``ended`` is called for each fault."""
    if doubled := [name for name in map(str, files) if list(map(str, files)).count(name) > 1]:
        raise Invalid(f"{doubled[0]} is named twice")
    if drawn_ones := [name for name in campaign.options if name.upper() in DRAWN]:
        raise Invalid(f"option {drawn_ones[0]}: a campaign draws that; see --models")
    if not (settings.device or "").startswith(EMULATOR):
        raise Invalid("faults are judged by all memory of a device, which is known of the emulator's alone: "
                      "give --device emulator")
    rows = [row for file in files for row in faults_of(file, campaign, folder, settings, ended)]
    facts = fault_summary(rows, campaign.seed)
    paths = []
    for name, content in {**fault_files(rows, facts), "summary.json": json.dumps(facts, indent=2).encode()}.items():
        paths.append(folder / name)
        write_file(paths[-1], content)
    return {**facts, "files": [str(path) for path in paths]}


def faults_of(file: Path, campaign: Campaign, folder: Path, settings: RunSettings,
              ended: Callable[[], object]) -> list[Json]:
    """A row for each fault of a launch, by number."""
    record = read_record(file)
    identity = campaign_identity(record, campaign.seed, campaign.models, campaign.options, campaign.tolerance,
                                 settings)
    store = FaultStore(folder, file.stem, identity)
    rows = store.rows()
    waiting = [number for number in range(campaign.faults) if number not in rows]
    for _ in range(campaign.faults - len(waiting)):
        ended()
    if waiting:
        with fault_bench(record, file, campaign.options, settings, campaign.tolerance) as bench:
            check_there_are_some(file, bench)
            with store.appending() as add:
                for number in waiting:
                    found = bench.judged(drawn(number, campaign.seed, campaign.models, bench.written))
                    rows[number] = row_of(file, record.kernel, found, campaign.options)
                    add(rows[number])
                    ended()
    return [rows[number] for number in range(campaign.faults)]


def check_there_are_some(file: Path, bench: FaultBench) -> None:
    if not sum(bench.written):
        raise Invalid(f"{file}: kernel {bench.launch.kernel} executes no instruction that was chosen and writes a "
                      "register; choose others with -O INSTRUMENT or --lines")


def row_of(file: Path, kernel: str, judged: JudgedFault, options: Mapping[str, str]) -> Json:
    fault, hit = judged.fault, judged.hit or {}
    names = ("pc", "instruction", "line", "group", "register", "workgroup", "lane", "before", "after")
    found: dict[str, Any] = {"number": fault.number, "file": str(file), "kernel": kernel, "effect": judged.effect.value,
                             "model": fault.model, "wave": fault.wave}
    return {**found, **{name: hit.get(name) for name in names}, "why": judged.why,
            "again": f"luthier replay {file} -t fault_injection {replay_options(fault, options)}"}
