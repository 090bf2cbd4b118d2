"""Wait states between application and inserted code."""

from __future__ import annotations

from luthier_py.inject.model import Clone, Item
from luthier_py.inject.seams import settle
from luthier_py.ir.model import instr_at
from luthier_py.isa import instruction_set, sgpr, target, vgpr
from luthier_py.isa.columns import read_columns

ISA = instruction_set(target("gfx90a"))


APPLICATION = instr_at(*read_columns(ISA, [(0, ISA.make("s_nop", 0).raw)]), 0)  # its items have an origin


def items(*made):
    return [Item(inst) for inst in made]


def text(clone):
    return [ISA.text(item.inst) for item in clone.items]


def test_a_scalar_that_a_vector_instruction_wrote_waits_before_memory_reads_it():
    code = items(
        ISA.make("v_readfirstlane_b32", sgpr(4), vgpr(0)),
        ISA.make("global_load_dword", vgpr(1), vgpr(2), sgpr(4, 2)),
    )
    clone = Clone(None, "f", code, {})
    settle(ISA, [clone])
    assert text(clone)[1] == "s_nop 4"  # five wait states (Vega ISA, table of manually inserted wait states)


def test_distance_that_is_there_already_counts():
    code = items(
        ISA.make("v_readfirstlane_b32", sgpr(4), vgpr(0)),
        *(ISA.make("s_mov_b32", sgpr(8), 0) for _ in range(3)),
        ISA.make("global_load_dword", vgpr(1), vgpr(2), sgpr(4, 2)),
    )
    clone = Clone(None, "f", code, {})
    settle(ISA, [clone])
    assert text(clone)[4] == "s_nop 1"


def test_every_way_in_is_looked_at_and_branches_reach_the_wait():
    load = Item(ISA.make("global_load_dword", vgpr(1), vgpr(2), sgpr(4, 2)))
    code = [
        Item(ISA.make("v_readfirstlane_b32", sgpr(4), vgpr(0))),
        Item(ISA.make("s_cbranch_scc1", 0), jump=0x40),
        *items(*(ISA.make("s_mov_b32", sgpr(8), 0) for _ in range(8))),
        load,
    ]
    clone = Clone(None, "f", code, {0x40: load})
    settle(ISA, [clone])
    assert text(clone)[-2] == "s_nop 3" and clone.labels[0x40] is clone.items[-2]


def test_nothing_is_inserted_without_a_hazard():
    clone = Clone(None, "f", items(*(ISA.make("s_mov_b32", sgpr(i), 0) for i in range(4))), {})
    settle(ISA, [clone])
    assert len(clone.items) == 4


def test_two_instructions_of_the_application_are_its_own_business():
    code = items(
        ISA.make("v_readfirstlane_b32", sgpr(4), vgpr(0)),
        ISA.make("global_load_dword", vgpr(1), vgpr(2), sgpr(4, 2)),
    )
    for item in code:
        item.origin = APPLICATION
    clone = Clone(None, "f", code, {})
    settle(ISA, [clone])
    assert len(clone.items) == 2


def test_a_loop_carries_what_is_owed_back_to_its_head():
    head = Item(ISA.make("global_load_dword", vgpr(1), vgpr(2), sgpr(4, 2)))
    code = [
        head,
        Item(ISA.make("v_readfirstlane_b32", sgpr(4), vgpr(0))),
        Item(ISA.make("s_cbranch_scc1", 0), jump=0x40),
        Item(ISA.make("s_endpgm")),
    ]
    clone = Clone(None, "f", code, {0x40: head})
    settle(ISA, [clone])
    assert text(clone)[0] == "s_nop 3" and clone.labels[0x40] is clone.items[0]


def test_a_function_may_be_entered_behind_anything_of_the_others():
    caller = Clone(None, "k", items(ISA.make("v_readfirstlane_b32", sgpr(4), vgpr(0)), ISA.make("s_endpgm")), {})
    callee = Clone(None, "f", items(ISA.make("global_load_dword", vgpr(1), vgpr(2), sgpr(4, 2))), {})
    settle(ISA, [caller, callee])
    assert text(callee)[0] == "s_nop 4"


GFX10, GFX11, GFX12 = (instruction_set(target(name), size) for name, size in (
    ("gfx1010", 32), ("gfx1100", 64), ("gfx1201", 32)))


def settled(isa, *lines):
    """Lines of the application start with "app: "; what stands there in the end."""
    code = [Item(isa.parse(line.removeprefix("app: ")), APPLICATION if line.startswith("app: ") else None)
            for line in lines]
    clone = Clone(None, "f", code, {})
    settle(isa, [clone])
    return [isa.text(item.inst) for item in clone.items if item not in code]


def test_a_scalar_that_outstanding_memory_reads_is_not_overwritten_by_inserted_code():
    load = "global_load_dword v1, v2, s[4:5]"
    assert settled(GFX10, f"app: {load}", "s_mov_b32 s4, 0") == ["s_waitcnt_depctr depctr_vm_vsrc(0)"]
    assert settled(GFX10, load, "app: s_mov_b32 s4, 0") == ["s_waitcnt_depctr depctr_vm_vsrc(0)"]
    assert settled(GFX10, f"app: {load}", "app: s_mov_b32 s4, 0") == []


def test_what_inserted_code_begins_waits_between_instructions_of_the_application():
    """A vector instruction that reads s4 is enough for a later write and read of s4 to need a wait on gfx12."""
    later = ("app: s_mov_b32 s4, 0", "app: v_mov_b32 v1, s4")
    assert settled(GFX12, "v_mov_b32 v2, s4", *later) == ["s_wait_alu depctr_sa_sdst(0)"]
    assert settled(GFX12, "v_mov_b32 v2, s8", *later) == []
    assert settled(GFX12, "app: v_mov_b32 v2, s4", *later) == []


def test_exec_that_changes_in_inserted_code_between_vector_instructions_of_the_application():
    before, after = "app: v_mov_b32 v1, 0", ("app: v_mov_b32 v2, 0", "app: v_add_f32 v3, v1, v2")
    assert settled(GFX11, before, "s_mov_b64 exec, -1", *after) == ["s_waitcnt_depctr depctr_va_vdst(0)"]
    assert settled(GFX11, before, "s_mov_b64 s[4:5], -1", *after) == []


def test_a_called_function_may_have_read_every_scalar():
    code = [Item(GFX12.parse("s_swappc_b64 s[30:31], s[4:5]"), APPLICATION), Item(GFX12.parse("s_mov_b32 s40, 0")),
            Item(GFX12.parse("v_mov_b32 v1, s40"))]
    caller, callee = Clone(None, "k", code, {}), Clone(None, "f", items(GFX12.parse("s_setpc_b64 s[30:31]")), {})
    settle(GFX12, [caller, callee])
    assert [GFX12.text(item.inst) for item in caller.items][-2] == "s_wait_alu depctr_sa_sdst(0)"
