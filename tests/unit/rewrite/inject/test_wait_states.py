"""Wait states between application and inserted code."""

from __future__ import annotations

from luthier_py.isa import instruction_set, target
from luthier_py.rewrite.inject.items import Clone
from luthier_py.rewrite.inject.text import format_clone, parse_clone
from luthier_py.rewrite.inject.verify import verify
from luthier_py.rewrite.inject.wait_states import insert_wait_states

ISA = instruction_set(target("gfx90a"))
GFX10, GFX11, GFX12 = (instruction_set(target(name), size) for name, size in (
    ("gfx1010", 32), ("gfx1100", 64), ("gfx1201", 32)))
LOAD = "global_load_dword v1, v2, s[4:5]"


def clone(isa, *lines, name="f") -> Clone:
    """Lines of the application start with "app: ", labels end with a colon, a branch is followed by "-> label"."""
    text, pc = [f"clone {name} of 0x0"], 0
    for line in lines:
        mark = "=" if " -> " in line or "swappc" in line else "|"
        if line.startswith("app: "):
            text.append(f"  0x{pc:x} {mark} {line.removeprefix('app: ')}")
            pc += 8
        else:
            text.append(line if line.endswith(":") else f"  call 0 h before 0x0 * {line}")
    return parse_clone(isa, "\n".join(text))


def settled(isa, *lines) -> list[str]:
    """The waits."""
    (made,) = insert_wait_states(isa, [clone(isa, *lines)])
    return [line.partition("+ ")[2] for line in format_clone(isa, made).splitlines() if line.startswith("  wait")]


def order(isa, *lines) -> list[str]:
    """The first word of each line of what stands there in the end."""
    (made,) = insert_wait_states(isa, [clone(isa, *lines)])
    verify(made, "wait_states")
    return [line.split()[0] for line in format_clone(isa, made).splitlines()[1:]]


def test_a_scalar_that_a_vector_instruction_wrote_waits_before_memory_reads_it():
    assert settled(ISA, "v_readfirstlane_b32 s4, v0", LOAD) == ["s_nop 4"]  # five wait states (Vega ISA, the table)


def test_distance_that_is_there_already_counts():
    assert settled(ISA, "v_readfirstlane_b32 s4, v0", *["s_mov_b32 s8, 0"] * 3, LOAD) == ["s_nop 1"]


def test_the_applications_instructions_count_and_are_cut_where_something_is_missing():
    lines = "v_readfirstlane_b32 s4, v0", *["app: s_mov_b32 s8, 0"] * 3, f"app: {LOAD}", "app: s_endpgm"
    assert settled(ISA, *lines) == ["s_nop 1"]
    assert order(ISA, *lines) == ["call", "0x0", "0x8", "0x10", "wait", "0x18", "0x20"]


def test_every_way_in_is_looked_at_and_branches_reach_the_wait():
    lines = ("v_readfirstlane_b32 s4, v0", "app: s_cbranch_scc1 -> .1", *["s_mov_b32 s8, 0"] * 8, ".1:", LOAD)
    assert settled(ISA, *lines) == ["s_nop 3"]
    assert order(ISA, *lines)[-3:] == [".1:", "wait", "call"]


def test_nothing_is_inserted_without_a_hazard():
    assert settled(ISA, *(f"s_mov_b32 s{number}, 0" for number in range(4))) == []


def test_two_instructions_of_the_application_are_its_own_business():
    assert settled(ISA, "app: v_readfirstlane_b32 s4, v0", f"app: {LOAD}") == []


def test_what_the_application_owes_reaches_inserted_code_behind_a_long_slice_and_over_edges():
    far = ["app: s_mov_b32 s9, 0"] * 40
    assert settled(ISA, *far, "app: v_readfirstlane_b32 s4, v0", LOAD) == ["s_nop 4"]
    assert settled(ISA, *far, "app: v_readfirstlane_b32 s4, v0", "app: s_cbranch_scc1 -> .1", "app: s_nop 0", ".1:",
                   LOAD) == ["s_nop 3"]
    assert settled(ISA, "app: v_readfirstlane_b32 s4, v0", *far, LOAD) == []


def test_a_loop_carries_what_is_owed_back_to_its_head():
    lines = ".1:", LOAD, "v_readfirstlane_b32 s4, v0", "app: s_cbranch_scc1 -> .1", "s_endpgm"
    assert settled(ISA, *lines) == ["s_nop 3"]
    assert order(ISA, *lines)[:3] == [".1:", "wait", "call"]


def test_a_function_may_be_entered_behind_anything_of_the_others():
    caller = clone(ISA, "v_readfirstlane_b32 s4, v0", "s_endpgm", name="k")
    _, callee = insert_wait_states(ISA, [caller, clone(ISA, LOAD)])
    assert "+ s_nop 4" in format_clone(ISA, callee)


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
    caller = clone(GFX12, "app: s_swappc_b64 s[30:31], s[4:5]", "s_mov_b32 s40, 0", "v_mov_b32 v1, s40", name="k")
    made, _ = insert_wait_states(GFX12, [caller, clone(GFX12, "s_setpc_b64 s[30:31]")])
    assert format_clone(GFX12, made).splitlines()[-2].split(" + ")[1] == "s_wait_alu depctr_sa_sdst(0)"


def test_waits_stand_before_a_hooks_group_of_memory_instructions():
    group = "s_clause 0x1", "global_load_dword v1, v2, s[4:5]", "global_load_dword v3, v2, s[4:5] offset:4"
    lines = "app: ds_read_b32 v9, v10", "app: s_cbranch_scc1 -> .1", ".1:", *group, "s_waitcnt vmcnt(0)"
    (made,) = insert_wait_states(GFX10, [clone(GFX10, *lines)])
    words = [line.split("* ")[-1].split("+ ")[-1].strip() for line in format_clone(GFX10, made).splitlines()[4:]]
    assert words == ["s_waitcnt_vscnt null, 0x0", *group, "s_waitcnt vmcnt(0)"]


PIECES = [line for number in range(12) for line in (
    f"app: s_cbranch_scc1 -> .{number}", *["app: s_mov_b32 s8, 0"] * 8, f".{number}:")]
"""Code of the application with ways into it, in which nothing is inserted."""


def test_what_the_application_owes_comes_from_pieces_without_inserted_code():
    """Out of the middle of one, and through short ones; what is too far away is over."""
    wait, nothing = "app: v_readfirstlane_b32 s4, v0", "app: s_mov_b32 s8, 0"
    jump = "app: s_cbranch_scc1 -> .in", wait, ".in:", "app: s_cbranch_scc1 -> .over", *[nothing] * 20
    assert settled(ISA, *jump, *PIECES, "app: s_endpgm", ".over:", LOAD) == ["s_nop 3"]
    ways = [f"app: s_cbranch_scc1 -> .{name}" for name in "abc"]
    assert settled(ISA, *PIECES, *ways, wait, ".a:", nothing, ".b:", nothing, ".c:", LOAD) == ["s_nop 2"]
    assert settled(ISA, *PIECES, *ways, wait, ".a:", nothing, ".b:", *[nothing] * 4, ".c:", LOAD) == []
