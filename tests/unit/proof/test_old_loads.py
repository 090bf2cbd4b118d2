"""Loads that many others came behind: what inserted code waits for makes their results ready, and the proof sees it.

A counter does not count above the highest number that a wait can name, so waiting for that number is no wait.
"""

from __future__ import annotations

import pytest
from each_target import EACH_TARGET
from emulated import LANES, Bench, code_object
from shown_kernels import END, POINTERS, S, V, instrumented

from luthier_py import Lane, Variable, hook, ptr, u32
from luthier_py.intrinsics import atomic_add
from luthier_py.isa import Inst, InstructionSet, RegSet, Target, instruction_set, vgpr
from luthier_py.program.analysis import Pending
from luthier_py.program.analysis.waits import NONE_PENDING, wait_for
from luthier_py.proof.pending import NOTHING, collect_pending_registers, step_pending

V4 = RegSet.of(vgpr(4))


def in_order(isa: InstructionSet, number: int) -> list[Inst]:
    """A load of a register for each counter whose operations finish in the order of their issue."""
    generation, v = isa.target.generation, f"v{number}"
    if generation < 11:
        found = [f"ds_read_b32 {v}, v0", f"buffer_load_dword {v}, off, s[0:3], 0"]
    else:
        found = [f"ds_load_b32 {v}, v0", f"buffer_load_b32 {v}, off, s[0:3], {'null' if generation == 12 else 0}"]
    if (generation, isa.target.minor) == (12, 0):
        found += [f"image_sample {v}, v0, s[0:7], s[8:11] dmask:0x1 dim:SQ_RSRC_IMG_1D",
                  f"image_bvh_intersect_ray v[{number}:{number + 3}], [v0, v1, v[8:10], v[11:13], v[14:16]], s[0:3]"]
    return [isa.parse(text) for text in found]


@pytest.mark.parametrize("row", EACH_TARGET)
def test_however_many_came_behind(row: Target) -> None:
    isa = instruction_set(row)
    for load, other in zip(in_order(isa, 4), in_order(isa, 20), strict=True):
        pending, proved = Pending(NONE_PENDING).after(isa, load), step_pending(isa, load, NOTHING)
        for behind in range(80):
            seen, shown = pending, proved
            assert seen.registers.overlaps(V4) and collect_pending_registers(shown) & V4.bits
            for inst in wait_for(isa, pending, V4):
                seen, shown = seen.after(isa, inst), step_pending(isa, inst, shown)
            assert not seen.registers.overlaps(V4), (isa.text(load), behind)
            assert not collect_pending_registers(shown) & V4.bits, (isa.text(load), behind)
            pending, proved = pending.after(isa, other), step_pending(isa, other, proved)


@hook
def note(slot: ptr[u32], x: Lane[u32]) -> None:
    atomic_add(slot, x)


def test_a_hook_reads_what_many_stores_came_behind() -> None:
    """s_waitcnt vmcnt(63) would wait for nothing."""
    stores = [("global_store_dword", V(3), V(0), S(2, 2))] * 70
    rows = [*POINTERS, ("v_lshlrev_b32", V(3), 2, V(0)), ("global_load_dword", V(4), V(3), S(0, 2)), *stores, END]

    def visit(tool, m):
        m.before(list(m.functions()[0].instrs)[-1], note, tool.slot, V(4))

    tool, made = instrumented(code_object({"k": rows}), visit, slot=Variable(u32, name="slot"))
    bench = Bench(bytes([1, 0, 0, 0] * LANES), bytes(4 * LANES))
    assert bench.run(made.data, "k.luthier")[tool.slot] == LANES


def test_a_hook_where_loads_will_write_every_register() -> None:
    """They are waited for, and put aside; all come back."""
    last = V(255)
    loads = [("global_load_dword", V(k), last, S(0, 2)) for k in range(256)]
    sums = [("v_add_u32", V(0), V(0), V(k)) for k in range(1, 256)]
    shown = [("v_mbcnt_lo_u32_b32", V(1), -1, 0), ("v_mbcnt_hi_u32_b32", V(1), -1, V(1)),
             ("v_lshlrev_b32", V(1), 2, V(1)), ("global_store_dword", V(1), V(0), S(2, 2))]
    rows = [*POINTERS, ("v_lshlrev_b32", last, 2, V(0)), *loads, ("s_nop", 0), ("s_waitcnt", 0), *sums, *shown, END]

    def visit(tool, m):
        m.before(next(i for i in m.functions()[0].instrs if i.inst.op.base == "S_NOP"), note, tool.slot, V(4))

    tool, made = instrumented(code_object({"k": rows}, vgprs=256), visit, slot=Variable(u32, name="slot"))
    assert [name for name in made.patched.report[0].schemes if name.endswith("once all is loaded")]
    bench = Bench(bytes([1, 0, 0, 0] * LANES), bytes(4 * LANES))
    ran = bench.run(made.data, "k.luthier")
    assert ran[tool.slot] == LANES
    assert ran.buffers[1] == bytes([0, 1, 0, 0] * LANES)
