"""What HIP promises, case by case, on our HIP runtime: every case of the programs beside this file.

A program's cases run in one process of tests, which starts it once; different programs may run in different ones.
"""

from __future__ import annotations

import case_programs
import pytest

ALL = [case for source in case_programs.sources() for case in case_programs.cases_of(source)]


@pytest.mark.parametrize("case", [
    pytest.param(case, id=f"{case.program}-{case.name}") for case in ALL])
def test_case(case, outcomes) -> None:
    wrong = outcomes.of(case)
    if wrong:
        pytest.fail(wrong, pytrace=False)


def test_names_are_used_once() -> None:
    assert len(set(ALL)) == len(ALL)
