"""EXEC: constants, stretches; and registers of functions and of a wave's start."""

from __future__ import annotations

import pytest
from synthetic import Row, build

from luthier_py.binary.loader import KernelDescriptor
from luthier_py.isa import EXEC, M0, VCC, RegSet, agpr, instruction_set, sgpr, target, vgpr
from luthier_py.isa.model.registers import SCALARS
from luthier_py.program.analysis import Facts, analyse, collect_accessed_registers, initial_registers
from luthier_py.program.analysis.registers import compute_allocated_registers
from luthier_py.program.ir import Instr, Program, lift
from luthier_py.rewrite.inject.resources import grow_register_counts

END: Row = ("s_endpgm",)
NOP: Row = ("s_nop", 0)
E, V = sgpr(EXEC, 2), sgpr(VCC, 2)
FULL = (1 << 64) - 1


def lifted(*rows: Row, **functions: list[Row]) -> Program:
    return lift(build({"k": list(rows), **functions}))


def solved(*rows: Row) -> tuple[Facts, list[Instr]]:
    program = lifted(*rows)
    return analyse(program), list(program.kernel("k").function.instrs)


def constants(*rows: Row) -> list[int | None]:
    facts, instrs = solved(*rows)
    return [facts.exec_constant(instr) for instr in instrs]


def test_exec_is_not_known_when_a_wave_starts() -> None:
    assert constants(NOP, END) == [None, None]


def test_exec_is_known_from_one_write_to_the_next() -> None:
    assert constants(("s_mov_b64", E, -1), NOP, ("s_mov_b64", E, 1), ("s_and_b64", E, E, V), END) == \
        [None, FULL, FULL, 1, None]


def test_exec_is_known_where_paths_agree() -> None:
    rows: list[Row] = [("s_mov_b64", E, -1), ("s_cbranch_scc0", "end"), ("s_mov_b64", E, -1), "end:", END]
    assert constants(*rows)[-1] == FULL
    rows[2] = ("s_mov_b64", E, 0)
    assert constants(*rows)[-1] is None


def test_halves_of_exec_are_known_when_both_are() -> None:
    assert constants(("s_mov_b32", sgpr(EXEC), -1), END)[-1] is None
    assert constants(("s_mov_b64", E, -1), ("s_mov_b32", sgpr(EXEC), 1), END)[-1] == 0xFFFFFFFF00000001


def test_what_is_made_of_a_known_exec_is_known() -> None:
    assert constants(("s_mov_b64", E, -1), ("s_and_saveexec_b64", sgpr(4, 2), 15), ("s_not_b64", E, E),
                     ("s_or_b64", E, E, V), END) == [None, FULL, 15, FULL - 15, None]


def some_lane(*rows: Row) -> list[bool]:
    facts, instrs = solved(*rows)
    return [facts._state(instr).some_lane for instr in instrs]


def test_some_lane_is_active_where_a_mask_that_has_one_is_restored() -> None:
    save: Row = ("s_and_saveexec_b64", sgpr(4, 2), V)
    assert some_lane(save, ("s_or_b64", E, E, sgpr(4, 2)), END) == [True, False, True]
    assert some_lane(save, ("s_or_b64", E, E, 5), END) == [True, False, True]
    assert some_lane(save, ("s_mov_b64", sgpr(4, 2), 0), ("s_or_b64", E, E, sgpr(4, 2)), END)[-1] is False


def test_one_register_of_a_mask_may_be_the_empty_one() -> None:
    save: Row = ("s_and_saveexec_b64", sgpr(4, 2), V)
    low: list[Row] = [("s_mov_b32", sgpr(6), sgpr(4)), ("s_mov_b32", sgpr(7), 0), ("s_mov_b64", E, sgpr(6, 2)), END]
    assert some_lane(save, *low)[-1] is False


def test_stretches_end_where_exec_is_written_and_at_calls() -> None:
    program = lifted(NOP, ("s_and_saveexec_b64", sgpr(4, 2), V), NOP, ("s_call_b64", sgpr(30, 2), "f"), NOP, NOP, END,
                     f=[("s_setpc_b64", sgpr(30, 2))])
    (block,) = program.kernel("k").function.blocks
    assert analyse(program).stretches(block) == ((0, 2), (2, 4), (4, 7))
    program = lifted(NOP, ("s_branch", "end"), "end:", ("v_cmpx_lt_u32", V, vgpr(0), vgpr(1)), END)
    facts = analyse(program)
    assert [facts.stretches(b) for b in program.kernel("k").function.blocks] == [((0, 2),), ((0, 1), (1, 2))]


def test_where_vector_code_has_no_place() -> None:
    skip: Row = ("s_setvskip", sgpr(0), 1)
    facts, instrs = solved(("s_set_gpr_idx_on", sgpr(0), 1), NOP, ("s_set_gpr_idx_off",), skip, END)
    assert [(facts.obstacle(i) or "-").split("(")[-1] for i in instrs] == \
        ["-", "s_set_gpr_idx_on)", "s_set_gpr_idx_on)", "-", "s_setvskip)"]
    assert "s_set_gpr_idx_on" in (facts.obstacle(instrs[0], after=True) or "")
    mode = 1 | 27 << 6  # hwreg(HW_REG_MODE, 27, 1)
    facts, instrs = solved(("s_setreg_b32", mode, sgpr(0)), END)
    assert facts.obstacle(instrs[0]) is None and facts.obstacle(instrs[1]) is not None
    facts, instrs = solved(("s_setreg_b32", 1 | 4 << 6 | 3 << 11, sgpr(0)), END)  # denormals
    assert facts.obstacle(instrs[1]) is None
    facts, instrs = solved(("s_setreg_imm32_b32", 1 | 7 << 11, 0x10F0), END)  # gfx1250 has banks there
    assert facts.obstacle(instrs[1]) is None


@pytest.mark.parametrize("off", [(0, 0), (0, 31), (0, sgpr(9)), (2, 0), (-2, 32)])
def test_skipping_ends_where_a_constant_says_so(off: tuple[object, object]) -> None:
    """Not at once: s_setvskip wants a wait state before the next vector instruction (Vega ISA 12.4)."""
    rows: list[Row] = [("s_setvskip", sgpr(20), 3), NOP, ("s_setvskip", *off), NOP, NOP, END]  # type: ignore[list-item]
    facts, instrs = solved(*rows)
    assert [facts.obstacle(i) is None for i in instrs] == [True, False, False, False, True, True]
    assert facts.obstacle(instrs[2], after=True) is not None and facts.obstacle(instrs[3], after=True) is None


@pytest.mark.parametrize("on", [(1, 0), (2, 1), (2, 33), (-1, 7), (sgpr(20), 0), (1, sgpr(9))])
def test_skipping_that_may_be_on(on: tuple[object, object]) -> None:
    facts, instrs = solved(("s_setvskip", *on), NOP, NOP, END)  # type: ignore[arg-type]
    assert [facts.obstacle(i) is None for i in instrs] == [True, False, False, False]


def test_skipping_that_ends_on_one_of_two_ways() -> None:
    rows: list[Row] = [("s_setvskip", sgpr(20), 0), ("s_cbranch_scc0", "end"), ("s_setvskip", 0, 0), "end:", NOP, END]
    facts, instrs = solved(*rows)
    assert facts.obstacle(instrs[-1]) is not None
    rows[1:3] = [("s_cbranch_scc0", "other"), ("s_setvskip", 0, 0), ("s_branch", "end"), "other:", ("s_setvskip", 0, 0)]
    facts, instrs = solved(*rows)
    assert facts.obstacle(instrs[-2]) is not None and facts.obstacle(instrs[-1]) is None


def test_agprs_that_are_said_to_start_behind_what_is_allocated() -> None:
    gfx90a = target("gfx90a")
    descriptor = KernelDescriptor(bytes(64)).with_vgpr_count(gfx90a, 64).with_accum_offset(256)
    assert (descriptor.arch_vgpr_count(gfx90a), descriptor.agpr_count(gfx90a)) == (64, 0)
    assert RegSet(compute_allocated_registers(gfx90a, descriptor)) - RegSet(SCALARS) == RegSet.by_file(
        0, (1 << 64) - 1, 0
    )


def test_there_are_256_agprs_though_granules_allocate_more() -> None:
    gfx90a = target("gfx90a")
    descriptor = KernelDescriptor(bytes(64)).with_accum_offset(236).with_vgpr_count(gfx90a, 236 + 256)
    assert (descriptor.vgpr_count(gfx90a), descriptor.agpr_count(gfx90a)) == (496, 256)
    used = RegSet.of(vgpr(0, 256), agpr(0, 256))
    assert grow_register_counts(gfx90a, descriptor, used).vgpr_count(gfx90a) == 512


def test_touched_registers() -> None:
    chain: list[Row] = [("s_getpc_b64", sgpr(6, 2)), ("s_add_u32", sgpr(6), sgpr(6), "f"),
                        ("s_addc_u32", sgpr(7), sgpr(7), "f"), ("s_swappc_b64", sgpr(30, 2), sgpr(6, 2))]
    program = lifted(*chain, END, f=[("v_mov_b32", vgpr(3), sgpr(40)), ("s_setpc_b64", sgpr(30, 2))])
    facts, kernel = analyse(program), program.kernel("k").function
    assert str(facts.touched([kernel])) == "s[6:7] s[30:31] exec scc mode"
    assert str(facts.touched(program.reachable(kernel))) == "s[6:7] s[30:31] s40 exec scc mode v3"


def test_an_indexed_register_may_be_any() -> None:
    program = lifted(("s_set_gpr_idx_on", sgpr(0), 1), ("v_mov_b32", vgpr(0), vgpr(1)), ("s_set_gpr_idx_off",), END)
    assert vgpr(0, 256) in collect_accessed_registers(program.functions) and sgpr(M0) in collect_accessed_registers(
        program.functions
    )
    assert agpr(0, 256) in collect_accessed_registers(program.functions)  # those behind the VGPRs, too


def test_skipping_touches_no_other_registers() -> None:
    program = lifted(("s_setvskip", sgpr(0), 1), ("v_mov_b32", vgpr(0), vgpr(1)), ("s_setvskip", 0, 0), END)
    assert collect_accessed_registers(program.functions).vectors == RegSet.of(vgpr(0, 2))


def test_what_is_not_known_touches_everything() -> None:
    program = lifted(b"\xff\xff\xff\xff")
    assert (
        RegSet.of(vgpr(0, 256), sgpr(0, 100), sgpr(EXEC, 2)) - collect_accessed_registers(program.functions) == RegSet()
    )


def test_registers_that_a_wave_starts_with() -> None:
    descriptor = KernelDescriptor(bytes(64)).replace(
        user_sgpr_count=6, enable_sgpr_workgroup_id_x=1, enable_sgpr_workgroup_id_z=1, enable_private_segment=1,
        enable_vgpr_workitem_id=1,
    )
    always = RegSet.of(sgpr(EXEC, 2), sgpr(M0))
    assert initial_registers(target("gfx900"), descriptor) - always == RegSet.of(sgpr(0, 9), vgpr(0, 2), sgpr(129))
    packed = initial_registers(target("gfx90a"), descriptor)
    assert vgpr(0) in packed and vgpr(1) not in packed
    assert sgpr(8) not in initial_registers(target("gfx942"), descriptor)  # scratch is set up by the hardware
    assert sgpr(6) not in initial_registers(target("gfx1200"), descriptor)  # ids come in TTMPs


def test_the_kernel_entry_reads_nothing_that_is_not_there(sample_programs: list[Program]) -> None:
    """Of scalar registers that no callee saves for its caller."""
    for program in sample_programs:
        facts = analyse(program)
        for kernel in program.kernels:
            live = facts.live_before(kernel.function.blocks[0].instrs[0])
            assert not live & RegSet.of(sgpr(0, 30)) - facts.initial(kernel), (kernel.name, str(live))


def test_wave32_exec_is_one_register() -> None:
    isa = instruction_set(target("gfx1030"), 32)
    rows: list[Row] = [("s_mov_b32", sgpr(EXEC), -1), ("v_mov_b32", vgpr(1), 0), END]
    program = lift(build({"k": rows}, gpu="gfx1030", wave_size=32))
    facts, (_, second, _) = analyse(program), program.kernel("k").function.instrs
    assert program.isa is isa and facts.exec_constant(second) == 0xFFFFFFFF
