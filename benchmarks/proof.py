"""What the proof refuses, and what it lets pass: single damages of instrumented copies.

    python benchmarks/proof.py [--count N] [--seed K] [--jobs J] [--further] [--output FILE.md]     make damage
    python benchmarks/proof.py again NUMBER [--seed K]                                  one trial once more

Trials are kept in build/damage, a line of JSON each; the exit code is 1 if something harmful was passed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "fuzz")]

import conftest  # noqa: E402, F401  (makes samples importable)
import damage  # noqa: E402
from damage import CLASSES, Trial, campaign, trial  # noqa: E402
from damage_subjects import RANDOM, TOOLS, names, subject  # noqa: E402

from luthier_py.isa import target  # noqa: E402

COUNT, SEED = 50_000, 1
GENERATIONS = (8, 9, 10, 11, 12)
TITLES = {
    "bytes": "Bytes damaged", "insertion": "Harm inserted and claimed, and links damaged: 57 classes",
    "payload": "Harm in a payload, which injection copies in good faith",
}
assert TITLES.keys() == CLASSES.keys()


def main() -> int:
    parser = argparse.ArgumentParser(description="damage instrumented copies")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--every", type=int, default=1, help="only each so manieth subject")
    parser.add_argument("--part", type=int, default=0, help="the first of them; so several processes do it all")
    parser.add_argument("--judged", type=float, default=damage.JUDGED, help="share of refused ones that are run, too")
    parser.add_argument("--further", action="store_true", help="only what is not in build/damage yet")
    parser.add_argument("--output", type=Path, help="write the tables here, too")
    given = parser.parse_args()
    kept = ROOT / "build" / "damage" / f"{given.seed}.jsonl"
    kept.parent.mkdir(parents=True, exist_ok=True)
    trials = damage.read(kept) if given.further and kept.exists() else []
    known, start = {each.number for each in trials}, time.monotonic()
    with kept.open("a" if given.further else "w", buffering=1) as file:
        chosen = names()[given.part :: given.every]
        for each in campaign(given.seed, given.count, given.jobs, chosen, given.judged, known):
            trials.append(each)
            file.write(json.dumps(asdict(each)) + "\n")
            if each.missed or each.refused.startswith("crash"):
                why = each.how or each.reason
                print(f"{each.number}: {each.name} ({each.family}, {each.subject}): {why}", flush=True)
    text = tables(trials)
    print(f"{text}\n{time.monotonic() - start:.0f} s")
    if given.output:
        given.output.write_text(text + "\n")
    return int(any(each.missed for each in trials))


def again() -> int:
    parser = argparse.ArgumentParser(prog="python benchmarks/proof.py again", description="one trial once more")
    parser.add_argument("number", type=int)
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args(sys.argv[2:])
    every = names()
    one = subject(every[given.number % len(every)])
    assert one is not None
    again = trial(given.seed, given.number, one, 1.0)
    print(again)
    return int(again is not None and again.missed)


def tables(trials: Iterable[Trial]) -> str:
    """As Markdown."""
    trials = list(trials)
    parts = [_table(title, [each for each in trials if each.family == family], CLASSES[family])
             for family, title in TITLES.items()]
    return "\n\n".join([*parts, _targets(trials), _tried(trials)])


HEAD = "tried | refused | shown to be harmful | of these refused | missed | refused of what is harmless"


def _table(title: str, trials: list[Trial], classes: Iterable[str]) -> str:
    lines = [f"### {title}", "", f"| what is damaged | {HEAD} |", "|---|--:|--:|--:|--:|--:|--:|"]
    lines += [_row(name, [each for each in trials if each.name == name]) for name in classes]
    return "\n".join([*lines, _row("all", trials)])


def _row(name: str, trials: list[Trial]) -> str:
    """The last column is an estimate: of the refused ones only some were run."""
    refused = [each for each in trials if each.refused]
    harmful = [each for each in trials if each.harmful]
    missed = sum(each.missed for each in trials)
    known = [each for each in refused if each.harmful is not None]
    needless = sum(not each.harmful for each in known) / len(known) * len(refused) if known else 0
    passed = sum(not each.refused and each.harmful is False for each in trials)
    strict = f"{needless / (needless + passed):.0%}" if known and needless + passed else ""
    cells = name, len(trials), len(refused), len(harmful), len(harmful) - missed, missed, strict
    return "| " + " | ".join(f"{cell:,}" if isinstance(cell, int) else cell for cell in cells) + " |"


def _targets(trials: list[Trial]) -> str:
    """By family of targets; where nothing runs them, only how many were refused."""
    lines = ["### Targets", "", f"| target | {HEAD} |", "|---|--:|--:|--:|--:|--:|--:|"]
    gpus = sorted({each.subject.split("/")[1] for each in trials}, key=lambda gpu: (len(gpu), gpu))
    for gpu in gpus:
        own = [each for each in trials if each.subject.split("/")[1] == gpu]
        lines.append(_row(gpu + ("" if own[0].emulated else ", not run"), own))
    return "\n".join(lines)


def _tried(trials: list[Trial]) -> str:
    """How often each class of harm was tried, by generation of the target and by tool."""
    columns = [*(f"gfx{generation}" for generation in GENERATIONS), *TOOLS, RANDOM]
    lines = ["### Where each class of harm was tried", "", f"| class | {' | '.join(columns)} |",
             "|---|" + "--:|" * len(columns)]
    for name in CLASSES["insertion"]:
        own = [each.subject.split("/") for each in trials if each.name == name and each.family != "bytes"]
        counts = Counter([target(gpu).generation for _, gpu, _ in own]), Counter([tool for _, _, tool in own])
        cells = [*map(counts[0].__getitem__, GENERATIONS), *map(counts[1].__getitem__, (*TOOLS, RANDOM))]
        lines.append(f"| {name} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(again() if sys.argv[1:2] == ["again"] else main())
