"""A sample of all mutants of meanings: the campaign's cases catch them, on either side; ``make mutants`` tries all."""

from __future__ import annotations

import os
import random

import pytest
from each_target import sometimes
from meaning_mutants import mutants
from meaning_trials import Fate, batches, in_the_emulator, outcome, tried
from reference.campaign import instructions, rows
from reference.reader import read

from luthier_py.isa.semantics import Lanes, Scalar, find_meaning, lds
from luthier_py.isa.semantics.control import CrossLane
from luthier_py.isa.semantics.memory import Atomic, Load, Store

SEED = int(os.environ.get("LUTHIER_TEST_SEED", "1"))
TARGETS = sometimes(["gfx90a", "gfx1030/32"], ["gfx950", "gfx1201/32"])
ROWS = 3
WITHOUT = set("""BUFFER_INVL2 BUFFER_WBINVL1 BUFFER_WBINVL1_VOL BUFFER_WBL2 DS_NOP S_ATC_PROBE S_ATC_PROBE_BUFFER
S_DCACHE_INV S_DCACHE_INV_VOL S_DCACHE_WB S_DCACHE_WB_VOL S_DECPERFLEVEL S_ICACHE_INV S_INCPERFLEVEL S_MOV_B32 S_MOV_B64
S_NOP S_SETHALT S_SETPRIO S_TTRACEDATA S_WAITCNT S_WAKEUP V_CLREXCP V_NOP""".split())
"""They do nothing that a program sees, or copy a scalar."""
KINDS = (Lanes, Scalar, Load, Store, Atomic, CrossLane, lds.Permute)


@pytest.mark.parametrize("name", TARGETS)
def test_cases_tell_wrong_meanings(name: str) -> None:
    """Of rows at random next to none is alive."""
    isa = instructions(name)
    ops = rows(isa)
    random.Random(f"{name} {SEED}").shuffle(ops)
    trials = [trial for op in ops[:ROWS] for trial in tried(isa, op, SEED)]
    alive = [trial for trial in trials if trial.fate is Fate.ALIVE]
    assert len(trials) > 5 * ROWS and len(alive) <= 3, alive


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_mutant_in_the_emulator_is_caught_as_well(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    isa, generator = instructions("gfx90a"), random.Random(SEED)
    op = generator.choice([op for op in rows(isa) if isinstance(find_meaning(op), kind)])
    every = list(mutants(op, find_meaning(op)))
    batch = next(batch for batch in batches(isa, op, SEED) if batch.cases[0][0].exec_mask)
    right = read(batch.wave(), batch.code)
    told = [mutant for mutant in every if outcome(batch, mutant, right)]
    assert told
    for mutant in generator.sample(told, min(2, len(told))):
        assert in_the_emulator(batch, mutant, monkeypatch.setattr), (op.record, mutant.what)
    assert not list(batch.differences())


def test_what_no_case_can_tell() -> None:
    """Sources of a sum that change places are the same function; those of a difference are not."""
    isa = instructions("gfx90a")
    fates = {}
    for record in ("V_ADD_F32_e64_vi", "V_SUB_F32_e64_vi"):
        op = next(op for op in isa.ops if op.record == record)
        found = tried(isa, op, SEED, wanted=lambda each: each.what == "sources 0 and 1 swapped")
        fates[record] = [trial.fate for trial in found]
    assert fates == {"V_ADD_F32_e64_vi": [Fate.SAME], "V_SUB_F32_e64_vi": [Fate.CAUGHT]}


def test_there_are_mutants_of_every_meaning() -> None:
    isa = instructions("gfx90a")
    without = {op.base for op in rows(isa) if not any(True for _ in mutants(op, find_meaning(op)))}
    assert without == WITHOUT
