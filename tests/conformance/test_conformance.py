"""What HIP promises, case by case, on our HIP runtime: every case of the programs beside this file."""

from __future__ import annotations

import case_programs
import pytest

ALL = [case for source in case_programs.sources() for case in case_programs.cases_of(source)]


@pytest.mark.parametrize("case", ALL, ids=[f"{case.program}-{case.name}" for case in ALL])
def test_case(case, outcomes) -> None:
    wrong = outcomes.of(case)
    if wrong:
        pytest.fail(wrong, pytrace=False)


def test_names_are_used_once() -> None:
    assert len(set(ALL)) == len(ALL)
