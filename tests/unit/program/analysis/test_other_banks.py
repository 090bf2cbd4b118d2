"""gfx1250's vector operands that mean registers above the first 256: what is known where code chooses others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from assembled import assembled

from luthier_py.binary.loader import load
from luthier_py.isa import RegSet, instruction_set, target, vgpr
from luthier_py.program.analysis import Facts, analyse, collect_accessed_registers
from luthier_py.program.analysis.effects import effect as found_effect
from luthier_py.program.analysis.execution import START
from luthier_py.program.ir import Instr, Program, lift
from luthier_py.proof.effects import effect as proved_effect
from luthier_py.proof.modes import Modes

ISA = instruction_set(target("gfx1250"))
SWITCHES = (
    "s_set_vgpr_msb 0x40",
    "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 0, 8), 0x10f0",
    "s_setreg_b32 hwreg(HW_REG_WAVE_MODE, 0, 8), s4",
)


@pytest.fixture
def lifted(require_tool: Callable[[str], str], tmp_path: Path) -> Callable[[str], Program]:
    return lambda body: lift(load(assembled(require_tool("clang-22"), tmp_path, "gfx1250", body, vgprs=300)))


def solved(program: Program) -> tuple[Facts, list[Instr]]:
    return analyse(program), list(program.kernel("k").function.instrs)


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize("access", ["global_load_b32 v5, v[0:1], off", "ds_load_b32 v5, v0", "v_mov_b32 v5, v0"])
def test_what_is_written_in_another_bank_leaves_the_first_alone(
    lifted: Callable[[str], Program], switch: str, access: str
) -> None:
    """v5 as the kernel got it is stored at the end: no hook may have it before, and none with vector code goes between.
    v44 and v261 are read in the other bank, perhaps."""
    program = lifted(f"{switch}\n{access}\ns_nop 0\ns_set_vgpr_msb 0\nds_store_b32 v0, v5\ns_endpgm")
    facts, instrs = solved(program)
    for instr in instrs[:5]:
        assert vgpr(5) in facts.live_before(instr), instr
    assert vgpr(44) in facts.live_before(instrs[0]) and vgpr(261) in facts.live_before(instrs[1])
    assert [facts.obstacle(instr) is None for instr in instrs] == [True, False, False, False, True, True]
    assert "s_set_vgpr_msb, or s_setreg" in (facts.obstacle(instrs[1]) or "")
    assert RegSet.of(vgpr(299)) & collect_accessed_registers([program.kernel("k").function])


def test_what_keeps_the_first_bank_is_read_as_it_is(lifted: Callable[[str], Program]) -> None:
    program = lifted(
        "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 0, 8), 0xf0\nds_load_b32 v5, v0\nds_store_b32 v0, v5\ns_endpgm"
    )
    facts, instrs = solved(program)
    assert vgpr(5) not in facts.live_before(instrs[1]) and all(facts.obstacle(instr) is None for instr in instrs)
    assert not RegSet.of(vgpr(299)) & collect_accessed_registers([program.kernel("k").function])


@pytest.mark.parametrize(
    "text",
    [
        "v_mov_b32 v5, v0",
        "global_load_b32 v5, v[0:1], off",
        "ds_load_b32 v5, v0",
        "scratch_load_b32 v5, off, off",
        "buffer_load_b32 v5, off, s[4:7], null",
        "global_atomic_add_u32 v5, v[0:1], v2, off th:TH_ATOMIC_RETURN",
        "v_dual_mov_b32 v5, v0 :: v_dual_mov_b32 v6, v1",
        "ds_bpermute_b32 v5, v0, v1",
    ],
)
def test_no_vector_instruction_surely_writes_what_it_names(text: str) -> None:
    """Neither to those who look for free registers, nor to those who prove that they are."""
    inst, owned = ISA.parse(text), (1 << 4096) - 1
    found = found_effect(ISA, inst, START._replace(indexed=True), owned)
    proved = proved_effect(ISA, inst, Modes(-1, relative=True), owned)
    for reads, kills in ((found.reads, found.kills), (proved.reads, proved.kills)):
        assert not RegSet(kills).vgpr and not RegSet.of(vgpr(0), vgpr(261), vgpr(1023)) - RegSet(reads)
