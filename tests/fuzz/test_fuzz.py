"""A minute of fuzzing: the same mutants each time. ``make fuzz`` goes on as long as one likes."""

from __future__ import annotations

import pytest
from campaign import SHARES, fuzzer, run

MUTANTS = {"loader": 400, "bundles": 200, "pipeline": 40, "arguments": 40, "tools": 80, "kernels": 25, "driver": 12,
           "edits": 10}
SEED = 8
WELL_FORMED = {"edits"}


@pytest.mark.parametrize("name", SHARES)
def test_nothing_is_found(name: str) -> None:
    tally = run(name, SEED, MUTANTS[name], None, 1)
    first = [numbers[0] for numbers in tally.findings.values()]
    again = [f"python tests/fuzz again {name} --seed {SEED} --number {number}" for number in first]
    assert not tally.findings, "\n".join([*again, *tally.findings, *tally.details.values()])
    assert tally.mutants == MUTANTS[name]
    assert len(tally.words) > (name not in WELL_FORMED), "mutants are refused in several ways, or not at all"


@pytest.mark.parametrize("name", SHARES)
def test_a_mutant_is_its_seed_and_number(name: str) -> None:
    cases = [fuzzer(name).case(3, number) for number in range(4)]
    assert cases == [fuzzer(name).case(3, number) for number in range(4)]
    assert len(set(cases)) > 1
