"""Values of instructions as hooks are given them: against what the kernel was written to compute, and on the samples
against memory itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pytest
from emulated import ISA, LANES, code_object
from given import given

from luthier_py.base.errors import EditConflict, HookError
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented
from luthier_py.intrinsics import atomic_add, popcount, read_first_lane
from luthier_py.isa import EXEC, VCC, AccessKind, OpFlag, Space, agpr, sgpr, vgpr
from luthier_py.program.ir import Instr, lift
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import (
    Lane,
    LaunchResult,
    Mutator,
    Place,
    Tool,
    Variable,
    WaveVariable,
    access_bytes,
    access_kind,
    active_lanes,
    address,
    destination,
    hook,
    opcode_id,
    ptr,
    site_id,
    source,
    taken_lanes,
    u32,
    u64,
)
from luthier_py.samples import SAMPLES, sample

Asked: TypeAlias = Callable[[Instr], Sequence[tuple[Place, Any, int]]]
FULL = (1 << 64) - 1
START: list[Any] = [("s_mov_b32", sgpr(20), 7), ("s_mov_b32", sgpr(21), 1), ("v_mov_b32", vgpr(1), 0x10000),
                    ("v_mul_u32_u24", vgpr(2), 3, vgpr(0)), ("v_or_b32", vgpr(1), vgpr(1), vgpr(0))]


def values(row: Any, asked: Asked, before: Sequence[Any] = (), **kernel: Any) -> list[tuple[int, ...]]:
    """What hooks at ``row`` see."""
    at = len(START) + len(before)
    rows = [*START, *before, row, ("s_nop", 0)]
    return given(rows, lambda m, instrs: [(instrs[at], *each) for each in asked(instrs[at])], **kernel)[0]


def made(name: str, *operands: Any, **modifiers: int) -> bytes:
    return ISA.make(name, *operands, **modifiers).raw


def lanes(value: Callable[[int], int]) -> tuple[int, ...]:
    return tuple(map(value, range(LANES)))


def test_sources_and_destinations() -> None:
    seen = values(("v_add_u32", vgpr(2), 40, vgpr(2)), lambda instr: [
        (Place.BEFORE, source(instr), 32), (Place.BEFORE, source(instr, "src1"), 32),
        (Place.AFTER, destination(instr), 32), (Place.AFTER, source(instr, 0), 64)])
    assert seen == [(40,) * LANES, lanes(lambda x: 3 * x), lanes(lambda x: 3 * x + 40), (40,) * LANES]


def test_literals_scalars_and_constants_of_64_bits() -> None:
    seen = values(("v_add_u32", vgpr(3), 0x12345678, vgpr(2)), lambda instr: [(Place.BEFORE, source(instr), 32)])
    assert seen == [(0x12345678,) * LANES]
    seen = values(made("v_add_f64", vgpr(4, 2), 1.0, vgpr(6, 2)), lambda instr: [
        (Place.BEFORE, source(instr), 64), (Place.BEFORE, source(instr, 0, dword=1), 32)])
    assert seen == [(0x3FF0000000000000,) * LANES, (0x3FF00000,) * LANES]
    for op_sel_hi, bits in (0, 0x3F800000), (8, 0x3C00):  # 1.0 of a MIX instruction as f32, or as f16
        mixed = made("v_fma_mix_f32", vgpr(3), 1.0, vgpr(1), vgpr(2), src0_modifiers=op_sel_hi)
        assert values(mixed, lambda instr: [(Place.BEFORE, source(instr), 32)]) == [(bits,) * LANES]
    seen = values(("s_lshl_b64", sgpr(22, 2), sgpr(20, 2), 4), lambda instr: [
        (Place.BEFORE, source(instr), 64), (Place.AFTER, destination(instr), 64),
        (Place.AFTER, destination(instr, "scc"), 32), (Place.AFTER, destination(instr, "sdst", dword=1), 32)])
    assert seen == [(1 << 32 | 7,) * LANES, (16 << 32 | 112,) * LANES, (1,) * LANES, (16,) * LANES]


@pytest.mark.parametrize(("row", "which", "value"), [
    (made("v_add_u32_sdwa", vgpr(3), vgpr(1), vgpr(2), dst_sel=6, src0_sel=5, src1_sel=6), 0, lambda x: 1),
    (made("v_add_u32_sdwa", vgpr(3), vgpr(1), vgpr(2), dst_sel=6, src0_sel=4, src1_sel=1), 0, lambda x: x),
    (made("v_add_u32_sdwa", vgpr(3), vgpr(1), vgpr(2), dst_sel=6, src0_sel=4, src1_sel=0), 1, lambda x: 3 * x),
    (("v_add_f16", vgpr(3), vgpr(1), vgpr(2)), 0, lambda x: x),
    (("v_add_f16", vgpr(3), vgpr(2), vgpr(1)), 1, lambda x: x),
    (("v_cmp_lt_u16_e32", sgpr(VCC, 2), vgpr(2), vgpr(1)), 1, lambda x: x),
    (made("v_mad_i16", vgpr(3), vgpr(1), vgpr(2), vgpr(2), src0_modifiers=4), 0, lambda x: 1),
    (("v_add_f32", vgpr(3), vgpr(1), vgpr(2)), 0, lambda x: 0x10000 | x),
])
def test_parts_of_registers(row: Any, which: int, value: Callable[[int], int]) -> None:
    assert values(row, lambda instr: [(Place.BEFORE, source(instr, which), 32)]) == [lanes(value)]


def test_masks_flags_and_accumulators() -> None:
    less = ("v_cmp_gt_u32_e64", sgpr(VCC, 2), 9, vgpr(0))
    seen = values(made("v_cndmask_b32_e32", vgpr(3), vgpr(1), vgpr(2), sgpr(VCC, 2)), lambda instr: [
        (Place.BEFORE, source(instr, "vcc"), 64), (Place.BEFORE, active_lanes(instr), 64)], [less])
    assert seen == [(511,) * LANES, (FULL,) * LANES]
    less = ("v_cmp_gt_u32_e64", sgpr(VCC, 2), 40, vgpr(0))
    seen = values(made("v_cndmask_b32_e32", vgpr(3), vgpr(1), vgpr(2), sgpr(VCC, 2)), lambda instr: [
        (Place.BEFORE, source(instr, "vcc", dword), 32) for dword in (0, 1)], [less])
    assert seen == [(0xFFFFFFFF,) * LANES, (0xFF,) * LANES]
    seen = values(("s_addc_u32", sgpr(22), sgpr(20), sgpr(20)), lambda instr: [
        (Place.BEFORE, source(instr, "scc"), 32), (Place.AFTER, destination(instr), 32)],
        [("s_cmp_eq_u32", sgpr(20), 7)])
    assert seen == [(1,) * LANES, (15,) * LANES]
    seen = values(("v_accvgpr_read_b32", vgpr(3), agpr(5)), lambda instr: [
        (Place.BEFORE, source(instr), 32), (Place.AFTER, destination(instr), 32)],
        [("v_accvgpr_write_b32", agpr(5), vgpr(2)), ("s_nop", 4)], agprs=8)
    assert seen == [lanes(lambda x: 3 * x)] * 2


def test_matrix_operands_dword_by_dword() -> None:
    filled = [row for k in range(4) for row in (("v_mov_b32", vgpr(3), k), ("s_nop", 1),
                                               ("v_accvgpr_write_b32", agpr(k), vgpr(3)))]
    row = made("v_mfma_f32_4x4x1f32", agpr(0, 4), vgpr(1), vgpr(2), agpr(0, 4))
    seen = values(row, lambda instr: [(Place.BEFORE, source(instr, "src2", dword=k), 32) for k in range(4)],
                  [*filled, ("s_nop", 4)], agprs=8)
    assert seen == [(k,) * LANES for k in range(4)]


@pytest.mark.parametrize(("branch", "before", "taken"), [
    ("s_cbranch_scc1", ("s_cmp_eq_u32", sgpr(20), 7), FULL), ("s_cbranch_scc1", ("s_cmp_eq_u32", sgpr(20), 8), 0),
    ("s_cbranch_scc0", ("s_cmp_eq_u32", sgpr(20), 8), FULL), ("s_cbranch_vccnz", ("s_mov_b64", sgpr(VCC, 2), 0), 0),
    ("s_cbranch_vccz", ("s_mov_b64", sgpr(VCC, 2), 0), FULL), ("s_cbranch_vccnz", ("s_mov_b64", sgpr(VCC, 2), 2), FULL),
    ("s_branch", ("s_nop", 0), FULL),
])
def test_the_lanes_that_a_branch_takes(branch: str, before: Any, taken: int) -> None:
    assert values((branch, 0), lambda instr: [(Place.BEFORE, taken_lanes(instr), 64)], [before]) == [(taken,) * LANES]


def test_a_branch_that_no_lane_takes_is_refused() -> None:
    """It is taken where no lane is active: 0 would say nothing. Its opposite is taken by all active ones."""
    with pytest.raises(HookError, match="s_cbranch_execz is taken where no lane is active.*active_lanes"):
        values(("s_cbranch_execz", 0), lambda instr: [(Place.BEFORE, taken_lanes(instr), 64)])
    seen = values(("s_cbranch_execnz", 0), lambda instr: [(Place.BEFORE, taken_lanes(instr), 64)])
    assert seen == [(FULL,) * LANES]


def test_only_active_lanes_are_taken() -> None:
    narrow = [("s_mov_b64", sgpr(EXEC, 2), 5), ("s_cmp_eq_u32", sgpr(20), 7)]
    (seen,) = values(("s_cbranch_scc1", 0), lambda instr: [(Place.BEFORE, taken_lanes(instr), 64)], narrow)
    assert [seen[lane] for lane in (0, 2)] == [5, 5] and sum(seen) == 10


def test_numbers() -> None:
    program = lift(load(sample("reduce").path.read_bytes()))
    instrs = [instr for function in program.functions for instr in function.instrs]
    assert len({site_id(instr) for instr in instrs}) == len(instrs)
    assert all(program.isa.op(opcode_id(instr)).mnemonic == instr.op.mnemonic for instr in instrs)


def test_what_is_refused() -> None:
    row = ("v_add_u32", vgpr(2), 40, vgpr(2))
    for ask, error, message in [
        (lambda i: (Place.BEFORE, destination(i), 32), EditConflict, "vdst of v_add_u32_e32 is there after"),
        (lambda i: (Place.AFTER, source(i, 1), 32), EditConflict, "overwrites v2, which source src1 of v_add_u32_e32"),
        (lambda i: (Place.BEFORE, source(i, 2), 32), HookError, "has no source 2; it has src0, src1"),
        (lambda i: (Place.BEFORE, source(i, "scc"), 32), HookError, "has no source scc"),
        (lambda i: (Place.BEFORE, source(i, "src1", dword=1), 32), HookError, "has 1 dwords; 1 is none"),
        (lambda i: (Place.BEFORE, source(i, "src0", dword=1), 32), HookError, "has 1 dwords; 1 is none"),
        (lambda i: (Place.BEFORE, source(i, "src0", dword=-1), 32), HookError, "has 1 dwords; -1 is none"),
        (lambda i: (Place.BEFORE, taken_lanes(i), 64), HookError, "v_add_u32_e32 is no branch"),
    ]:
        with pytest.raises(error, match=message):
            values(row, lambda instr, ask=ask: [ask(instr)])
    half = made("v_mad_i16", vgpr(3), vgpr(1), vgpr(2), vgpr(2), src0_modifiers=4)
    with pytest.raises(HookError, match="source src0 of v_mad_i16 has 1 dwords; 1 is none"):
        values(half, lambda instr: [(Place.BEFORE, source(instr, 0, 1), 32)])
    with pytest.raises(HookError, match="source src0 of v_add_f64 has 2 dwords; 2 is none"):
        values(made("v_add_f64", vgpr(4, 2), 1.0, vgpr(6, 2)), lambda instr: [(Place.BEFORE, source(instr, 0, 2), 32)])
    rows = [bytes.fromhex("fd02047e"), bytes.fromhex("eb02047e"), ("s_endpgm", 0)]  # src_scc, src_shared_base to v2
    flag, aperture = list(lift(load(code_object({"k": rows}))).kernel("k").function.instrs)[:2]
    assert str(source(flag)) == "scc of v_mov_b32_e32"
    with pytest.raises(HookError, match="source src0 of v_mov_b32_e32 cannot be given to a hook"):
        source(aperture)


class Looks(Tool):
    """Whether memory holds, at the address of each access, what the access loads or has stored."""

    right, wrong = Variable(u32), Variable(u32)
    there = WaveVariable(u32)

    @hook
    def look(where: Lane[ptr[u32]]) -> u32:
        return read_first_lane(where[0])

    @hook
    def compare(right: ptr[u32], wrong: ptr[u32], there: u32, data: Lane[u32], active: u64) -> None:
        if active != 0:
            if read_first_lane(data) == there:
                atomic_add(right, u32(1))
            else:
                atomic_add(wrong, u32(1))

    @hook
    def check(right: ptr[u32], wrong: ptr[u32], where: Lane[ptr[u32]], data: Lane[u32], active: u64) -> None:
        if popcount(active) != 0:
            if where[0] == data:
                atomic_add(right, u32(1))
            else:
                atomic_add(wrong, u32(1))

    def instrument(self, m: Mutator) -> None:
        for instr in (instr for function in m.functions() for instr in m.instrs(function)):
            op = instr.op
            if op.spaces & ~(Space.GLOBAL | Space.SCALAR) or not op.flags & (OpFlag.VMEM | OpFlag.SMEM):
                continue
            if access_bytes(instr) < 4:
                continue
            kind, state = access_kind(instr), (self.right, self.wrong)
            if kind is AccessKind.LOAD:
                m.before(instr, self.look, address(instr), into=self.there)
                m.after(instr, self.compare, *state, self.there, destination(instr, dword=0), active_lanes(instr))
            elif kind is AccessKind.STORE:
                data = source(instr, "vdata", dword=0)
                m.after(instr, self.check, *state, address(instr), data, active_lanes(instr))

    def report(self, launch: LaunchResult) -> tuple[int, int]:
        return launch[self.right], launch[self.wrong]

    def text(self, launch: LaunchResult, report: object) -> str:
        return ""


@pytest.mark.parametrize("one", SAMPLES, ids=lambda one: one.name)
def test_memory_holds_at_each_address_what_is_loaded_and_stored(one: Any) -> None:
    code = one.path.read_bytes()
    tool = Looks()
    device = EmulatorDevice(load(code, one.name).target)
    ran = run_instrumented(device, instrument(code, tool), tool, launch_of(one))
    right, wrong = ran.report
    assert right > 0 and wrong == 0
