"""Seconds of fuzzing, the same mutants each time; with what is marked slow a minute. ``make fuzz`` goes on as long as
one likes."""

from __future__ import annotations

import pytest
from campaign import SHARES, fuzzer, run

MUTANTS = {"loader": 400, "bundles": 200, "pipeline": 40, "arguments": 40, "tools": 80, "kernels": 25, "driver": 12,
           "edits": 10}
PARTS = {name: 4 for name in SHARES} | {"arguments": 1}  # one of so many runs always
SEED = 8
WELL_FORMED = {"edits"}


@pytest.mark.parametrize(("name", "part"), [
    *PARTS.items(), *(pytest.param(name, 1, marks=pytest.mark.slow) for name, part in PARTS.items() if part > 1)])
def test_nothing_is_found(name: str, part: int) -> None:
    mutants = MUTANTS[name] // part
    tally = run(name, SEED, mutants, None, 1)
    first = [numbers[0] for numbers in tally.findings.values()]
    again = [f"python tests/fuzz again {name} --seed {SEED} --number {number}" for number in first]
    assert not tally.findings, "\n".join([*again, *tally.findings, *tally.details.values()])
    assert tally.mutants == mutants
    assert len(tally.words) > (name not in WELL_FORMED), "mutants are refused in several ways, or not at all"


@pytest.mark.parametrize("name", SHARES)
def test_a_mutant_is_its_seed_and_number(name: str) -> None:
    cases = [fuzzer(name).case(3, number) for number in range(4)]
    assert cases == [fuzzer(name).case(3, number) for number in range(4)]
    assert len(set(cases)) > 1
