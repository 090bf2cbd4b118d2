"""instr_count counts loops by a register that comes round to what it was before them, and ways past them."""

from __future__ import annotations

import pytest
from emulated import code_object
from synthetic import Row

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.run.launch import Launch, run_instrumented, run_original
from luthier_py.features.run.specs import parse_argument
from luthier_py.isa import sgpr
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool

LAUNCH = Launch("k", (2, 1, 1), (64, 1, 1), (parse_argument("out:u32[1]"),) * 3)
COUNTER = sgpr(10)


@pytest.mark.parametrize(("first", "move"), [
    (0, ("s_addk_i32", COUNTER, 1 << 14)), (5, ("s_addk_i32", COUNTER, -(1 << 14))),
    (0, ("s_addk_i32", COUNTER, 1 << 13)),
])
@pytest.mark.parametrize("around", [False, True])
def test_all_turns_are_counted(first: int, move: Row, around: bool) -> None:
    """As many as there are numbers that far apart."""
    rows: list[Row] = [
        ("s_mov_b32", COUNTER, first), ("s_cmp_eq_u32", sgpr(6), 1), *[("s_cbranch_scc1", "end")] * around,
        ("s_nop", 0), "loop:", move, ("s_cmp_lg_u32", COUNTER, first), ("s_cbranch_scc1", "loop"), "end:",
        ("s_endpgm",)]
    code = code_object({"k": rows})
    device, tool = EmulatorDevice(load(code).target), load_tool("instr_count")
    counted = run_original(device, code, LAUNCH).counted
    ran = run_instrumented(device, instrument(code, tool, kernels=["k"]), tool, LAUNCH)
    assert ran.report["instructions"] == counted
    assert ran.inserted < counted // 1000  # nothing in the loop
