"""What was found, made small and kept: the mutant, what it showed, and the command that shows it again.

In: a finding of a campaign. Out: a folder. Invariant: the smaller mutant shows the same finding.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from campaign import Tally, fuzzer
from fuzzer import Case, Fuzzer
from trial import outcome_of

TRIES = 100


def smaller(data: bytes, shows: Callable[[bytes], bool]) -> bytes:
    """Pieces taken out, halves first, then ever smaller ones, as long as it still shows."""
    kept = _fewest(list(range(len(data))), lambda places: shows(bytes(data[at] for at in places)))
    return bytes(data[at] for at in kept)


def restored(data: bytes, seed: bytes, shows: Callable[[bytes], bool]) -> bytes:
    """What differs from the seed put back, a dword at a time in the end, as long as it still shows."""

    def changed(places: list[int]) -> bytes:
        made = bytearray(seed[: len(data)] + data[len(seed) :])
        for at in places:
            made[at : at + 4] = data[at : at + 4]
        return bytes(made)

    differing = [at for at in range(0, min(len(data), len(seed)), 4) if data[at : at + 4] != seed[at : at + 4]]
    return changed(_fewest(differing, lambda places: shows(changed(places))))


def _fewest(places: list[int], shows: Callable[[list[int]], bool]) -> list[int]:
    """Few of the places with which it shows; after TRIES, what is left then."""
    size, tries = len(places), TRIES
    while size and tries > 0:
        at = 0
        while at < len(places) and tries > 0:
            without = places[:at] + places[at + size :]
            tries -= 1
            if shows(without):
                places = without
            else:
                at += size
        size //= 2
    return places


def minimised(this: Fuzzer, case: Case, finding: str) -> Case:
    def shows(data: bytes) -> bool:
        return outcome_of(this, Case(data, case.how)).finding == finding

    data = case.data
    if this.like is not None:
        data = restored(data, this.like(data), shows)
    if this.divisible:
        data = smaller(data, shows)
    return Case(data, case.how)


def save(tally: Tally, seed: int, folder: Path) -> list[Path]:
    """A folder for each finding."""
    this, made = fuzzer(tally.name), []
    for finding, numbers in tally.findings.items():
        path = folder / f"{tally.name}-{re.sub(r'[^A-Za-z0-9]+', '-', finding).strip('-')[:60]}"
        path.mkdir(parents=True, exist_ok=True)
        case = minimised(this, this.case(seed, numbers[0]), finding)
        mutant = path / "mutant"
        mutant.write_bytes(case.data)
        how = f" --how {case.how}" if case.how else ""
        mutants = "".join(f"    python tests/fuzz again {tally.name} --seed {seed} --number {n}\n" for n in numbers)
        (path / "README.md").write_text(
            f"{finding} ({tally.found[finding]} times)\n\n    python tests/fuzz again {tally.name} {mutant}{how}\n\n"
            f"made smaller from the first of\n\n{mutants}\n{tally.details[finding]}\n")
        made.append(path)
    return made
