"""Races between lanes of one wave, where a program relies on lanes in lockstep: told where that is asked for."""

from __future__ import annotations

from typing import Any

import pytest
from test_checks import BARRIER, END, LDS_READ, LDS_WRITE, PLACE, WAIT, made, run, store_at

from luthier_py.emulator.options.checks import ALL, Checks, FindingKind, parse_checks
from luthier_py.isa.model.registers import vgpr

NEIGHBOUR = ("v_xor_b32", vgpr(5), 4, vgpr(2))
OWN = ("v_mov_b32", vgpr(5), vgpr(2))
LANES_DIFFER = ("v_mov_b32", vgpr(3), vgpr(2))
LOAD_NEXT = made("global_load_dword", vgpr(4), vgpr(5), PLACE)


@pytest.mark.parametrize("rows, what", [
    ([LDS_WRITE, WAIT, LDS_READ], "a read and a write"), ([LDS_READ, WAIT, LDS_WRITE], "a write and a read"),
    ([store_at(), WAIT, LOAD_NEXT], "a read and a write"), ([LOAD_NEXT, WAIT, store_at()], "a write and a read"),
    ([LDS_WRITE, WAIT, made("ds_write_b32", vgpr(5), vgpr(3))], "two writes"),
    ([made("ds_add_u32", vgpr(2), vgpr(3)), WAIT, LDS_READ], "a read and a write"),
])
@pytest.mark.parametrize("waves", [1, 3])
def test_lanes_in_lockstep_race_where_that_is_asked_for(rows: list[Any], what: str, waves: int) -> None:
    ways = {"own": [LANES_DIFFER, OWN, *rows], "next": [LANES_DIFFER, NEIGHBOUR, *rows],
            "barrier": [LANES_DIFFER, NEIGHBOUR, *rows[:-2], BARRIER, rows[-1]]}
    found = {way: run([*each, WAIT, END], parse_checks("lockstep"), waves=waves).findings for way, each in ways.items()}
    (race,) = found["next"]
    assert what in race.what and "in no order but that in which the lanes of a wave go" in race.what
    assert (race.kind, race.who.wave, race.who.lane ^ 1) == (FindingKind.RACE, race.other_who.wave, race.other_who.lane)
    assert race.count == 64 * waves and not found["own"] and not found["barrier"]
    assert not run([*ways["next"], WAIT, END], Checks.RACES, waves=waves).findings and Checks.LOCKSTEP not in ALL


@pytest.mark.parametrize("rows", [
    [("v_mov_b32", vgpr(2), 0), LDS_WRITE, WAIT],  # lanes of one instruction
    [LDS_WRITE, WAIT, made("ds_write_b32", vgpr(5), vgpr(3))],  # of one value
    [made("ds_add_u32", vgpr(2), vgpr(3)), made("ds_add_u32", vgpr(5), vgpr(3))],
])
def test_lanes_that_rely_on_nothing(rows: list[Any]) -> None:
    assert not run([NEIGHBOUR, *rows, WAIT, END], parse_checks("lockstep")).findings
