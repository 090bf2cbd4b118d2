"""Seconds of the campaign of damage: the same trials each time. ``make damage`` does 50,000."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from damage import CLASSES, ONCE, PAYLOADS, damaged, harm, trial, turn
from damage_bytes import DAMAGES
from damage_copy import Damaged, check, copy_of
from damage_harms import HARMS, assembled
from damage_subjects import names, subject, unharmed

from luthier_py.base.errors import LuthierError
from luthier_py.proof import prove

SUBJECTS = ("random0/gfx90a/random", "random5/gfx908/blocks", "device_call/gfx90a/active", "histogram/gfx90a/banks",
            "gfx1100-function_pointers/gfx1100/opcodes")
WAITING = "gfx1010-lds_widths/gfx1010/banks"  # with waits in inserted code
SEED = 4


def test_there_are_57_classes_of_harm() -> None:
    assert len(HARMS) == 57


def test_each_target_has_subjects() -> None:
    gpus = {name.split("/")[1] for name in names()}
    assert len(gpus) == 44


@pytest.mark.parametrize("name", SUBJECTS)
def test_what_is_not_damaged_is_accepted(name: str) -> None:
    one = subject(name)
    assert one is not None
    check(one, Damaged(one.made.data, one.made.patched))
    if one.run is not None:
        unharmed(one)


@pytest.mark.parametrize("name", SUBJECTS)
def test_what_only_moves_code_is_accepted_and_does_no_harm(name: str) -> None:
    """So that what is inserted is refused for what it does, and not because something was not moved with it."""
    one, rng = subject(name), random.Random(SEED)
    assert one is not None
    copy, code = copy_of(one), assembled(one.isa, "s_nop 0")
    assert code is not None
    for line in rng.sample(copy.inserted, 4):
        moved = copy.with_code(line, code)
        assert moved.data != copy.data
        assert one.run is None or not harm(one, moved.data)


def test_a_trial_is_its_seed_and_number() -> None:
    one = subject(SUBJECTS[0])
    assert one is not None
    made = [damaged(SEED, number, one) for number in range(6)]
    assert made == [damaged(SEED, number, one) for number in range(6)]
    assert len({each[1] for each in made if each}) > 1


@pytest.mark.parametrize("name", SUBJECTS)
def test_what_is_kept_of_the_original_changes_nothing(name: str) -> None:
    one = subject(name)
    assert one is not None
    for number in range(60, 72):
        made = damaged(SEED, number, one)
        assert made is not None
        assert _said(lambda: check(one, made[2])) == _said(  # noqa: B023
            lambda: prove(one.made.obj.data, made[2].data, made[2].patched.claim))  # noqa: B023


def _said(proof: Callable[[], None]) -> str:
    try:
        proof()
    except LuthierError as error:
        return str(error)
    return ""


def test_each_subject_gets_every_class_in_turn() -> None:
    every = len(names())
    found = {turn(number) for number in range(0, every * (len(ONCE) + PAYLOADS), every)}
    assert found >= set(ONCE)
    assert {turn(number) for number in range(every * 20)} == {
        (family, name) for family, known in CLASSES.items() for name in known}


def test_every_kind_of_damage_is_possible() -> None:
    found = set()
    for name in (*SUBJECTS, WAITING):
        one, rng = subject(name), random.Random(SEED)
        assert one is not None
        for kind, damage in {**DAMAGES, **HARMS}.items():
            if kind not in found and any(damage(copy_of(one), rng) is not None for _ in range(12)):
                found.add(kind)
    assert {*DAMAGES, *HARMS} - found == set()


@pytest.mark.parametrize("name", SUBJECTS)
def test_nothing_harmful_is_missed(name: str) -> None:
    one = subject(name)
    assert one is not None
    trials = [each for number in range(12) if (each := trial(SEED, number, one)) is not None]
    assert not [each for each in trials if each.missed or each.refused.startswith("crash")]
