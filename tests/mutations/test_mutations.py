"""The list of mutations fits the source; ``make mutations`` tries them."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from mutation import ROOMS, Mutation
from mutations import MUTATIONS
from nearest import NEAREST
from seeds import SEEDED

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "luthier_py"


def fault(mutation: Mutation, text: str) -> str:
    """Why it cannot be tried on the file with this text."""
    if (count := text.count(mutation.before)) != 1:
        return f"stands {count} times"
    try:
        ast.parse(text.replace(mutation.before, mutation.after))
    except SyntaxError as error:
        return str(error)
    return ""


def test_each_stands_once_in_its_file_and_leaves_python() -> None:
    texts = {file: (PACKAGE / file).read_text() for file in {each.file for each in MUTATIONS}}
    faults = {f"{each.file}: {each.after[:30]}": fault(each, texts[each.file]) for each in MUTATIONS}
    assert not {name: why for name, why in faults.items() if why}


def test_seeded_changes_stand_once_and_name_a_test_that_is_there() -> None:
    for seed in SEEDED:
        assert (ROOT / seed.file).read_text().count(seed.before) == 1, seed
        file, _, name = seed.known_by.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text(), seed
    assert len({seed.file for seed in SEEDED}) == len(SEEDED) >= 10


def test_there_are_enough_of_every_room() -> None:
    assert len(MUTATIONS) >= 60
    assert set(Counter(each.room for each in MUTATIONS)) == set(ROOMS)
    assert {each.file for each in MUTATIONS} <= NEAREST.keys()
    assert [path for paths in NEAREST.values() for path in paths if not (ROOT / "tests" / path).exists()] == []
