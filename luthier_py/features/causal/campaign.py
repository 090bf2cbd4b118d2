"""Campaigns of experiments: a recorded launch run again and again, each time as if some of its code were faster.

In: recorded launches, what is tried, a folder. Out: the folder's tables and pages, and the facts behind them.
Invariant: on the emulator the same campaign gives the same facts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from itertools import islice, product
from pathlib import Path

from luthier_py.base.errors import Invalid
from luthier_py.base.names import demangle
from luthier_py.base.records import dataclass
from luthier_py.base.storage import check_folder
from luthier_py.emulator.devices.record_file import read_record
from luthier_py.features.campaign.engine import Campaign, Variation, in_turn
from luthier_py.features.causal.bench import CausalBench, causal_bench
from luthier_py.features.causal.candidates import CONTROL, KINDS, Candidate, candidates, select_by_filters
from luthier_py.features.causal.report import causal_files, causal_summary
from luthier_py.features.settings.files import each_once, write_results
from luthier_py.features.settings.run_settings import EMULATOR, RunSettings
from luthier_py.report.names import FileNames
from luthier_py.report.plain import Json

__all__ = ["CausalCampaign", "parse_speedups", "run_causal"]
METHODS = "model", "delays"
MOST_DELAYED = 95  # percent: code that is so much faster in comparison makes other code 20 times as slow


@dataclass(frozen=True, slots=True)
class CausalCampaign:
    """``kind``: of candidates; ``tests``: filters, which then are the candidates. ``most``: how many are tried, those
    with most cycles. ``method``: "" is what the device can do best. ``repeats``: of each run with delays; the median
    counts."""

    speedups: tuple[int, ...]
    kind: str = "line"
    tests: tuple[str, ...] = ()
    most: int = 20
    method: str = ""
    repeats: int = 1

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise Invalid(f"--by {self.kind}: give {', '.join(KINDS)}")
        if self.method not in ("", *METHODS):
            raise Invalid(f"--method {self.method}: give {' or '.join(METHODS)}")


def parse_speedups(text: str) -> tuple[int, ...]:
    """Percents with commas between."""
    try:
        found = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        found = ()
    if not found or found[0] < 1 or found[-1] > 100:
        raise Invalid(f"--speedups {text}: give percents from 1 to 100 with commas between, as 25,50,75")
    return found


def run_causal(files: Sequence[Path], campaign: CausalCampaign, folder: Path, settings: RunSettings,
               ended: Callable[[], object]) -> list[Json]:
    """The facts of each launch, and the names of its files, which are written to ``folder``. ``ended`` is called for
    each run."""
    emulated = (settings.device or "").startswith(EMULATOR)
    method = campaign.method or ("model" if emulated else "delays")
    if method == "model" and not emulated:
        raise Invalid("--method model: only the emulator has a model of costs; give --method delays")
    if method == "delays" and campaign.speedups[-1] > MOST_DELAYED:
        raise Invalid(f"--speedups {campaign.speedups[-1]}: with delays at most {MOST_DELAYED}, since all other code "
                      "is made slower")
    check_folder(folder, f"--output {folder}")
    names = FileNames()  # of files in several folders, too
    return [_write_results(_facts(file, campaign, method, settings, ended), folder / names.of(file.stem))
            for file in each_once(files)]


def _write_results(facts: Json, base: Path) -> Json:
    base.parent.mkdir(parents=True, exist_ok=True)
    files = {base.with_name(f"{base.name}.{suffix}"): content for suffix, content in causal_files(facts).items()}
    return write_results(facts, base.with_name(f"{base.name}.json"), files)


def _facts(file: Path, campaign: CausalCampaign, method: str, settings: RunSettings,
           ended: Callable[[], object]) -> Json:
    record = read_record(file)
    with causal_bench(record, file, settings, method == "delays", campaign.repeats) as bench:
        bare = bench.cycles(CONTROL, 0)
        ended()
        found = _candidates(bench, campaign)
        if not found:
            what, other = ("nothing that was chosen", "--test") if campaign.tests else (f"no {campaign.kind}", "--by")
            raise Invalid(f"{file}: kernel {demangle(record.kernel)} executes {what}; give another {other}")
        tried = [*found[: campaign.most], *([CONTROL] if bench.delays else [])]
        rows = _curves(bench, tried, campaign.speedups, ended)
    return causal_summary({
        "file": str(file), "kernel": record.kernel, "target": record.target, "method": method, "cycles": bare,
        "candidates": rows, "left_out": [each.name for each in found[campaign.most :]]})


def _candidates(bench: CausalBench, campaign: CausalCampaign) -> list[Candidate]:
    if campaign.tests:
        return select_by_filters(bench.program, campaign.tests, bench.counts)
    return candidates(bench.program, campaign.kind, bench.counts)


def _curves(bench: CausalBench, tried: Sequence[Candidate], speedups: Sequence[int],
            ended: Callable[[], object]) -> list[Json]:
    """Facts of each candidate, and what the launch takes with it so much faster."""
    runs = Campaign([Variation(number, point, partial(_make_point, point[1]))
                     for number, point in enumerate(product(tried, speedups))])
    points = runs.run(in_turn(lambda point: bench.cycles(*point)), ended)
    return [{**asdict(each), "curve": [*islice(points, len(speedups))]} for each in tried]


def _make_point(speedup: int, cycles: float) -> Json:
    return {"speedup": speedup, "cycles": cycles}
