"""The emulator against the reference reader: every row that has a meaning, on every target that is emulated.

A selection runs always, on targets of both families and sizes of a wave; those that are marked slow take another
selection for each target, and, as ``make test-reference``, every row, with every overlap of sources and results.
Results are equal bit for bit, but for what the manuals leave open:

| what | the manual's words |
|---|---|
| V_EXP, V_LOG, V_SIN, V_COS (f16, f32): 1 unit in the last place | "1ULP accuracy" (CDNA 3 ISA, 12.8) |
| a NaN that arithmetic gives: its sign and payload | none: "NAN", "QNAN" (CDNA 3 ISA, 12.8; MI200 ISA, 9.5.3) |
| float atomics that add a NaN or overflow: not tried | "NaN + NaN = SRC0's NaN", without saying which is SRC0 |
| lanes that store to overlapping places: not tried | none |

V_RCP, V_RSQ and V_SQRT have "1ULP accuracy", too (f64: 2**29 units); both readers take IEEE 754's division and root.
"""

from __future__ import annotations

import os
import random

import pytest

from luthier_py.base.storage import CACHE
from luthier_py.emulator.code import engine
from luthier_py.emulator.instructions import dpp, operands
from luthier_py.emulator.native import matrix_function
from luthier_py.isa import instruction_set, target
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.algebra import U32, Value, select
from luthier_py.isa.semantics.control import Action, Indexing, Switch
from luthier_py.isa.semantics.evidence import COMPARED, ELSEWHERE, instructions
from luthier_py.isa.semantics.refusals import refusal
from reference.campaign import rows, run_campaign

SHARE = 20  # one row of so many in the selection
ALWAYS = ("gfx90a", "gfx1030/32", "gfx1100")
PARTS = 8   # of a target's rows, to see how far it is
SEED = int(os.environ.get("LUTHIER_TEST_SEED", "1"))


def compare(name: str, ops: list, every: bool) -> None:
    outcome = run_campaign(name, SEED, ops, every)
    print(f"{name}: {outcome.cases} cases of {len(ops)} rows, {len(outcome.differences)} differ")
    assert not outcome.differences, "\n".join(outcome.differences[:20])
    assert not outcome.untried
    assert outcome.cases >= len(ops) > 50


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in ALWAYS else pytest.mark.slow)
                                  for name in COMPARED])
def test_selection(name: str) -> None:
    every = rows(instructions(name))
    random.Random(f"{name} {SEED}").shuffle(every)
    compare(name, every[: len(every) // SHARE], every=False)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", COMPARED)
def test_every_row(name: str, part: int) -> None:
    compare(name, rows(instructions(name))[part::PARTS], every=True)


def _old_clamp(value: Value) -> Value:
    return select(value > 0.0, select(value < 1.0, value, 1.0), 0.0)


def _old_addends(function: matrix_function.MatrixFunction) -> None:
    function.emitter.emit("%addends = bitcast ptr %c to ptr")


WRONG = {  # what the emulator once did, and where it shows
    "clamp of -0 gives +0": ("V_MUL_F32", operands, "clamp_float", _old_clamp),
    "D is written before all of C is read": (
        "V_MFMA_F32_16X16X4F32", matrix_function.MatrixFunction, "_keep_addends", _old_addends,
    ),
    "DPP forgets the half that stays": ("V_MAC_F16", operands.ResultWriter, "_merge_result",
                                        lambda result, chunk, word: word.to(U32)),
    "bound_ctrl is ignored": ("V_MOV_B32", dpp.Dpp, "compute_enabled_lanes", lambda controls, chunk: None),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_emulator_is_seen(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    base, owner, name, old = WRONG[wrong]
    monkeypatch.setattr(engine, "_ready", {})  # support functions are compiled once
    monkeypatch.setenv(CACHE, "off")           # and found by their names
    monkeypatch.setattr(owner, name, old)
    ops = [op for op in rows(instruction_set(target("gfx908"), 64)) if op.base == base]
    assert run_campaign("gfx908", SEED, ops, every=True).differences


def test_nothing_is_left_out() -> None:
    """What is not compared here is one of a few actions, each of which has tests elsewhere."""
    for name in COMPARED:
        isa = instructions(name)
        left = {op for op in isa.ops if find_meaning(op) is not None and refusal(op, isa.target) is None} - {*rows(isa)}
        assert {op.base for op in left if find_meaning(op) not in ELSEWHERE} <= {
            "S_CODE_END", "GLOBAL_LOAD_DWORD_ADDTID", "GLOBAL_STORE_DWORD_ADDTID"}
        assert len({op.record for op in left}) < 40
    assert all(isinstance(row, Action | Indexing | Switch) for row in ELSEWHERE)
