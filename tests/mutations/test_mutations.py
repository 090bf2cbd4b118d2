"""The list of mutations fits the source; ``make mutations`` tries them."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest
from mutation import Mutation
from mutations import MUTATIONS, ROOMS
from nearest import NEAREST

PACKAGE = Path(__file__).resolve().parents[2] / "luthier_py"


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: f"{each.file}: {each.after[:30]}")
def test_each_stands_once_in_its_file_and_leaves_python(mutation: Mutation) -> None:
    text = (PACKAGE / mutation.file).read_text()
    assert text.count(mutation.before) == 1
    ast.parse(text.replace(mutation.before, mutation.after))


def test_there_are_enough_of_every_room() -> None:
    assert len(MUTATIONS) >= 60
    assert set(Counter(each.room for each in MUTATIONS)) == set(ROOMS)
    assert {each.file for each in MUTATIONS} <= NEAREST.keys()
