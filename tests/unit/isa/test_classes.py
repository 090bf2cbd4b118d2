"""Classes of instructions: scalar_alu has what hardware's counter of scalar instructions counts."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from luthier_py.isa import OpFlag, instruction_set, target
from luthier_py.isa.properties.classes import InstructionClass, class_of

TARGETS = "gfx803", "gfx900", "gfx90a", "gfx950", "gfx1030", "gfx1100", "gfx1201", "gfx1250"
NOT_COUNTED = OpFlag.BRANCH | OpFlag.INDIRECT | OpFlag.CALL | OpFlag.END | OpFlag.BARRIER | OpFlag.WAIT

# Scalar instructions of a wave, and SQ_INSTS_SALU of it: measured in tinygrad's repository, extra/sqtt/examples.
MEASURED = [
    ("gfx1100", {"s_lshl_b32": 1, "s_mov_b32": 1, "s_add_i32": 1, "s_ashr_i32": 1, "s_lshl_b64": 1, "s_add_u32": 1,
                 "s_addc_u32": 1, "s_delay_alu": 13, "s_clause": 1, "s_waitcnt": 8, "s_cbranch_execz": 1,
                 "s_endpgm": 1, "s_load_b128": 1}, 7),
    ("gfx950", {"s_lshl_b32": 1, "s_and_saveexec_b64": 1, "s_add_i32": 1, "s_ashr_i32": 1, "s_lshl_b64": 1,
                "s_add_u32": 1, "s_addc_u32": 1, "s_nop": 1, "s_waitcnt": 7, "s_cbranch_execz": 1, "s_endpgm": 1}, 7),
    ("gfx1200", {"s_mov_b32": 81, "s_min_i32": 40, "s_mul_i32": 40, "s_add_co_i32": 8, "s_cmp_eq_i32": 8,
                 "s_cbranch_scc0": 8, "s_endpgm": 1}, 177),
    ("gfx1200", {"s_clause": 2, "s_wait_kmcnt": 1, "s_wait_loadcnt": 1, "s_nop": 1, "s_sendmsg": 1, "s_endpgm": 1}, 0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "executed", "counted"), MEASURED)
def test_scalar_instructions_are_those_that_hardware_counts(
    name: str, executed: Mapping[str, int], counted: int
) -> None:
    classes = {op.mnemonic: class_of(op) for op in instruction_set(target(name)).ops}
    assert sum(n for mnemonic, n in executed.items() if classes[mnemonic] is InstructionClass.SCALAR_ALU) == counted


@pytest.mark.parametrize("name", TARGETS)
def test_what_computes_in_a_scalar_unit_is_scalar_alu(name: str) -> None:
    """Hints, idling, messages and priorities have the same encoding (SOPP), and compute nothing."""
    for op in instruction_set(target(name)).ops:
        if OpFlag.SALU in op.flags and not op.flags & NOT_COUNTED:
            expected = InstructionClass.OTHER if op.format == "SOPP" else InstructionClass.SCALAR_ALU
            assert class_of(op) is expected, op.base


@pytest.mark.parametrize("name", ["gfx1100", "gfx1201", "gfx1250"])
def test_dual_instructions_are_of_two_opcodes(name: str) -> None:
    isa = instruction_set(target(name), 32)
    dual = isa.parse("v_dual_mul_f32 v0, v1, v2 :: v_dual_add_f32 v3, v4, v5")
    assert dual.op.mnemonics == ("v_dual_mul_f32", "v_dual_add_f32")
    for op in isa.ops:
        both = op.base.startswith("V_DUAL_")
        assert len(op.mnemonics) == 1 + both and op.mnemonics[0] == op.mnemonic
        assert not both or all(mnemonic.startswith("v_dual_") for mnemonic in op.mnemonics)
