"""The proof that EXEC comes back: idioms of compilers pass, slips do not."""

from __future__ import annotations

from typing import Any

import pytest

from luthier_py.isa import EXEC, VCC, Inst, instruction_set, sgpr, target, vgpr
from luthier_py.rewrite.jit.exec_mask import ExecProof, follow_exec

E, V = sgpr(EXEC, 2), sgpr(VCC, 2)
COMPARE = ("v_cmp_eq_u32_e32", V, 0, vgpr(0))
SAVE = ("s_and_saveexec_b64", sgpr(2, 2), V)
RESTORE = ("s_or_b64", E, E, sgpr(2, 2))
WORK = ("v_mov_b32_e32", vgpr(1), 0)

LOOP = [
    ("s_mov_b64", sgpr(4, 2), 0),
    COMPARE,
    ("s_or_b64", sgpr(4, 2), V, sgpr(4, 2)),
    ("s_andn2_b64", E, E, sgpr(4, 2)),
    ("s_cbranch_execnz", -4),
]
COUNTED = [  # a loop whose condition is the carry of its counter, one for all lanes, and a comparison
    ("s_mov_b64", sgpr(4, 2), 0),
    ("v_subrev_co_u32_e64", vgpr(1), sgpr(8, 2), 1, vgpr(1)),
    ("s_cselect_b64", sgpr(6, 2), -1, 0),
    ("s_or_b64", sgpr(6, 2), sgpr(6, 2), sgpr(8, 2)),
    ("s_and_b64", sgpr(6, 2), E, sgpr(6, 2)),
    ("s_or_b64", sgpr(4, 2), sgpr(6, 2), sgpr(4, 2)),
    ("s_andn2_b64", E, E, sgpr(4, 2)),
    ("s_cbranch_execnz", -8),
    ("s_or_b64", E, E, sgpr(4, 2)),
]
BALLOTS = [("v_cmp_eq_u32_e64", sgpr(2 * i, 2), 0, vgpr(i)) for i in range(4, 40)]
IF_ELSE = [
    COMPARE, SAVE, ("s_xor_b64", sgpr(2, 2), E, sgpr(2, 2)), WORK,
    ("s_or_saveexec_b64", sgpr(4, 2), sgpr(2, 2)), ("s_xor_b64", E, E, sgpr(4, 2)), WORK,
    ("s_or_b64", E, E, sgpr(4, 2)),
]


def made(*lines: tuple[Any, ...]) -> list[Inst]:
    isa = instruction_set(target("gfx90a"), 64)
    return [isa.make(*line) for line in lines]


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [WORK],
        [COMPARE, SAVE, WORK, RESTORE],
        [COMPARE, SAVE, ("s_cbranch_execz", 1), WORK, RESTORE],
        [*LOOP, ("s_or_b64", E, E, sgpr(4, 2))],
        [COMPARE, SAVE, *LOOP, ("s_or_b64", E, E, sgpr(4, 2)), RESTORE],
        IF_ELSE,
        [("s_mov_b64", sgpr(2, 2), E), ("s_mov_b64", E, -1), WORK, ("s_mov_b64", E, sgpr(2, 2))],
        [("s_not_b64", E, E), WORK, ("s_not_b64", E, E)],
        [COMPARE, SAVE, ("s_cbranch_execz", 1), WORK, ("s_mov_b64", E, sgpr(2, 2))],
        COUNTED,
        [COMPARE, SAVE, *BALLOTS, ("s_and_b64", sgpr(8, 2), sgpr(8, 2), sgpr(10, 2)), RESTORE],
    ],
    ids=["nothing", "no write", "if", "if with branch", "loop", "loop in if", "if else", "all lanes", "not", "move",
         "counted loop", "many masks"],
)
def test_what_compilers_do_restores_exec(lines: list[tuple[Any, ...]]) -> None:
    assert follow_exec(made(*lines), 64).restored


@pytest.mark.parametrize(
    "lines",
    [
        [("s_mov_b64", E, 1)],
        [COMPARE, SAVE, WORK],
        [COMPARE, SAVE, ("s_mov_b32", sgpr(2), 7), RESTORE],
        [COMPARE, SAVE, ("s_cbranch_execz", 2), WORK, RESTORE],
        LOOP,
        COUNTED[:-1],
        [line for line in COUNTED if line[0] != "s_and_b64"],
        [*LOOP, ("s_or_b64", E, E, sgpr(2, 2))],
        IF_ELSE[:-1],
        [("s_or_b64", E, E, V)],
        [("s_add_u32", sgpr(EXEC), sgpr(EXEC), 0)],
        [("s_not_b64", E, E), WORK],
    ],
    ids=["one", "not restored", "clobbered", "branch over", "loop", "counted loop", "carry",
         "wrong mask", "if else", "vcc", "add", "not"],
)
def test_slips_are_seen(lines: list[tuple[Any, ...]]) -> None:
    assert not follow_exec(made(*lines), 64).restored


def test_a_lost_high_half_is_seen() -> None:
    lost = [("s_mov_b32", sgpr(EXEC + 1), 0)]
    assert not follow_exec(made(*lost), 64).restored and follow_exec(made(*lost), 32).restored
    assert not follow_exec(made(COMPARE, SAVE, ("s_mov_b32", sgpr(3), 7), RESTORE), 64).restored


def test_where_more_lanes_run() -> None:
    everything = made(("s_mov_b64", sgpr(2, 2), E), ("s_mov_b64", E, -1), WORK, ("s_mov_b64", E, sgpr(2, 2)), WORK)
    assert follow_exec(everything, 64) == ExecProof(True, frozenset({2, 3}))
    assert follow_exec(made(*IF_ELSE), 64) == ExecProof(True, frozenset())
    one = made(("s_mov_b64", sgpr(2, 2), E), ("s_mov_b64", E, 1), WORK, ("s_mov_b64", E, sgpr(2, 2)))
    assert follow_exec(one, 64) == ExecProof(True, frozenset({2, 3}))
