"""Injectors that are wrong in one of many ways, on all generations: what they make is refused, or does no harm.

Harm is another memory of the application, or other counts, on the emulator; where hardware does what the emulator does
not show (waits, groups of memory instructions), passing is harm unless the table says why it is none.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from injectors import calls, objects, pieces, ways
from injectors.judge import Court, Outcome, Patch
from injectors.subjects import SUBJECTS, TARGETS, compiled

TABLES = {"calls": calls.TABLE, "ways": ways.TABLE, "objects": objects.TABLE}
WRONG: dict[str, tuple[tuple[str, ...], Patch]] = {
    f"{room}: {name}": row for room, table in TABLES.items() for name, row in table.items()}
ALWAYS = {("gfx1100", "ways: something stands in a hook's group"), ("gfx1100", "calls: SCC is set by a bit")}
HARMLESS = {
    "calls: SCC comes back first": "what comes back behind it are moves, which leave it",
    "calls: SCC comes back before the hook": "where the hook leaves it alone",
    "calls: SCC comes back before the results": "results are moved, which leaves it",
    "calls: what is live is what is so behind the instruction": "where that is the same",
    "calls: EXEC is kept in VCC": "where nobody needs that",
    "calls: EXEC is kept where a return address is": "where nobody needs that",
    "calls: EXEC is kept in s[0:1]": "where nobody needs these",
    "calls: arguments are read where they are kept no more": "where nothing has been put there yet",
    "calls: half of a result is moved": "where the other half is what it was",
    "calls: SCC gets its result twice": "it is the same result",
    "calls: of two scalars the upper one is copied": "waves of 32 lanes have nothing in it",
    "calls: half of EXEC is set": "waves of 32 lanes have no other half",
    "calls: of two scalars the lower one is copied": "waves of 32 lanes have nothing in the other",
    "ways: skips what puts registers back": "where nothing is to be put back",
    "objects: a wave's begin is the other way round": "variables are cleared in any order",
    "objects: the last thing at a wave's begin is left out": "where nothing reads the id that would be moved",
    "objects: a wave begins twice": "the second time it finds what the first has left where it was",
    "objects: private memory begins at the application's": "where that has none",
    "objects: one granule of scalar registers is missing": "hardware rounds up to what there was",
    "objects: what moved up is moved back from the last on": "where none is overwritten before it is moved",
    "objects: what moved up is moved back twice": "where what was moved is still there",
}


def cases(always: set[tuple[str, str]]) -> Iterator[object]:
    for target in TARGETS:
        for name in WRONG:
            yield pytest.param(target, name, id=f"{target}-{name}",
                               marks=() if (target, name) in always else pytest.mark.slow)


@pytest.fixture(scope="module")
def courts(require_tool, tmp_path_factory):
    """By target, made when somebody asks."""
    folder, found = tmp_path_factory.mktemp("wrong"), dict[str, Court]()

    def court(target: str) -> Court:
        if target not in found:
            found[target] = Court(compiled(require_tool("clang-22"), target, folder))
        return found[target]

    return court


@pytest.mark.parametrize(("target", "name"), list(cases(ALWAYS)))
def test_what_is_wrong_does_not_pass(courts, target: str, name: str) -> None:
    subjects, wrong = WRONG[name]
    for subject in subjects:
        judged = courts(target).judge(SUBJECTS[subject], wrong)
        fine = judged.outcome in (Outcome.REFUSED, Outcome.NOT_MADE, Outcome.SAME)
        assert fine or judged.outcome is Outcome.HARMLESS and name in HARMLESS, f"{subject}: {judged}"


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("change", pieces.CHANGES)
def test_no_inserted_instruction_can_be_wrong_unseen(courts, target: str, change: str) -> None:
    """Some of those that a clone has, one at a time."""
    chosen = random.Random(f"{target} {change}")
    for subject in ("marked", "ways"):
        for which in chosen.sample(range(pieces.MOST_KINDS), 8):
            judged = courts(target).judge(SUBJECTS[subject], pieces.wrong(change, which))
            assert judged.outcome is not Outcome.HARMFUL, f"{subject}, {which}: {judged}"
