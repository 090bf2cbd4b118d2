"""What compiled hooks may do, and what none may, whatever the target."""

from __future__ import annotations

from dataclasses import replace

import pytest

from luthier_py.base.errors import CheckFailed
from luthier_py.isa import Reg, Space, instruction_set, sgpr, target, vgpr
from luthier_py.proof.claim import Payload
from luthier_py.proof.payloads import match_payload, summary

TARGETS = (("gfx900", 64), ("gfx90a", 64), ("gfx942", 64), ("gfx1030", 32), ("gfx1100", 32), ("gfx1200", 32),
           ("gfx1250", 32))
HARMLESS = ("s_nop 0", "s_mov_b32 s4, s5", "v_mov_b32_e32 v4, v5", "v_readfirstlane_b32 s4, v1",
            "v_add_f32_e32 v4, v5, v6", "v_readlane_b32 s4, v1, 3", "s_sleep 10")
HARMFUL = {
    "s_trap 2": "stops", "s_sethalt 1": "stops", "s_sendmsg sendmsg(MSG_INTERRUPT)": "effect",
    "s_endpgm": "elsewhere", "s_setpc_b64 s[4:5]": "elsewhere", "s_swappc_b64 s[30:31], s[4:5]": "elsewhere",
    "s_barrier": "waits", "s_barrier_signal -1": "effect|waits", "s_setprio 3": "effect",
    "s_set_gpr_idx_on s4, gpr_idx(SRC0)": "relative", "s_setvskip s4, 1": "relative", "s_icache_inv": "effect",
    "s_branch 20": "leaves", "s_cbranch_scc0 40": "leaves", "s_cbranch_scc0 65535": "for ever",
    "s_branch 65535": "for ever",
    "ds_write_b32 v4, v5": "local memory", "ds_store_b32 v4, v5": "local memory", "ds_add_u32 v4, v5": "local memory",
    "s_load_dword s4, s[8:9], 0x0": "pointer", "s_load_b32 s4, s[8:9], 0x0": "pointer",
    "global_store_dword v4, v5, s[8:9]": "pointer", "global_store_b32 v4, v5, s[8:9]": "pointer",
    "global_store_dword v[4:5], v6, off": "pointer", "flat_store_dword v[4:5], v6": "pointer",
    "flat_store_b32 v[4:5], v6": "pointer", "global_atomic_add v4, v5, s[8:9]": "pointer",
    "scratch_store_dword off, v4, s4": "its stack", "scratch_store_b32 off, v4, s4": "its stack",
    "buffer_store_dword v4, off, s[8:11], 0": "pointer", "buffer_store_b32 v4, off, s[8:11], 0": "pointer",
    "s_dcache_wb_vol": "effect", "s_incperflevel 1": "effect", "s_ttracedata": "effect", "s_setkill 1": "effect",
    "ds_gws_barrier v0 gds": "data", "exp mrt0 v0, v0, v0, v0 done vm": "data",
}


def payload(code: bytes, *pointers: int, params: tuple[Reg, ...] = ()) -> Payload:
    return Payload("hook", code, params, (), pointers, (4,) * len(pointers), None)


@pytest.mark.parametrize(("name", "wave_size"), TARGETS)
def test_harm_is_refused_and_work_is_not(name: str, wave_size: int) -> None:
    isa = instruction_set(target(name), wave_size)
    tried = 0
    for text in HARMLESS:
        summary(isa, payload(isa.parse(text).raw))
    for text, why in HARMFUL.items():
        try:
            code = isa.parse(text).raw
        except Exception:  # noqa: BLE001 (an instruction that this target does not have)
            continue
        tried += 1
        with pytest.raises(CheckFailed, match=why):
            summary(isa, payload(code))
    assert tried > 12


def test_a_way_back_is_a_loop_only_where_control_comes_again() -> None:
    """Compilers put code that seldom runs behind all other, from where a branch leads back."""
    isa = instruction_set(target("gfx90a"), 64)

    def code(third: str) -> bytes:
        lines = ("s_cbranch_scc0 2", "s_nop 0", third, "s_mov_b32 s4, s5", "s_branch 65532")
        return b"".join(isa.parse(line).raw for line in lines)

    summary(isa, payload(code("s_branch 2")))
    with pytest.raises(CheckFailed, match="for ever"):
        summary(isa, payload(code("s_nop 0")))


CACHES = {
    "gfx90a": ("buffer_invl2", "buffer_wbl2", "buffer_wbinvl1"), "gfx942": ("buffer_wbl2 sc0 sc1", "buffer_inv sc1"),
    "gfx1030": ("buffer_gl0_inv", "buffer_gl1_inv", "s_waitcnt_vscnt null, 0x0"),
    "gfx1100": ("buffer_gl0_inv", "buffer_gl1_inv", "s_waitcnt_vscnt null, 0x0"),
    "gfx1200": ("global_inv scope:SCOPE_SYS", "global_wb scope:SCOPE_SYS", "s_wait_storecnt 0x0"),
}


@pytest.mark.parametrize("name", CACHES)
def test_caches_and_waits_are_no_memory_accesses(name: str) -> None:
    """They need no pointer, and matter to nobody where no lane is active."""
    wave_size = 64 if name.startswith("gfx9") else 32
    isa = instruction_set(target(name), wave_size)
    code = b"".join(isa.parse(text).raw for text in (*CACHES[name], "v_mov_b32_e32 v4, v5"))
    assert summary(isa, payload(code)).idles


@pytest.mark.parametrize("depth", (0, 1, 2))
def test_memory_through_pointers_alone(depth: int) -> None:
    """A pointer to pointers may be followed twice, one to numbers once."""
    isa = instruction_set(target("gfx90a"))
    through = ["s_load_dwordx2 s[4:5], s[0:1], 0x0", "s_waitcnt lgkmcnt(0)", "s_add_u32 s4, s4, 16",
               "s_addc_u32 s5, s5, 0", "v_mov_b32_e32 v0, 0", "global_store_dword v0, v0, s[4:5]"]
    code = b"".join(isa.parse(text).raw for text in through)
    if depth == 2:
        summary(isa, payload(code, depth, params=(sgpr(0, 2),)))
    else:
        with pytest.raises(CheckFailed, match="pointer"):
            summary(isa, payload(code, depth, params=(sgpr(0, 2),)))


@pytest.mark.parametrize(("text", "kept"), [
    ("s_add_u32 s1, s1, 16", True), ("s_and_b32 s1, s1, 0xffff", True), ("s_cselect_b32 s1, s1, s4", True),
    ("s_not_b32 s1, s1", False), ("s_xor_b32 s1, s1, s4", False), ("s_brev_b32 s1, s1", False),
])
def test_what_is_made_of_a_pointer_is_one_or_not(text: str, kept: bool) -> None:
    isa = instruction_set(target("gfx90a"))
    texts = (text, "v_mov_b32_e32 v0, 0", "global_store_dword v0, v0, s[0:1]")
    given = payload(b"".join(isa.parse(each).raw for each in texts), 1, params=(sgpr(0, 2),))
    if kept:
        summary(isa, given)
    else:
        with pytest.raises(CheckFailed, match="not made of a pointer"):
            summary(isa, given)


@pytest.mark.parametrize(("texts", "back"), [
    (["s_and_saveexec_b64 s[4:5], vcc", "v_mov_b32_e32 v1, v0", "s_or_b64 exec, exec, s[4:5]"], True),
    (["s_and_saveexec_b64 s[4:5], vcc", "s_mov_b64 s[4:5], 0", "s_or_b64 exec, exec, s[4:5]"], False),
    (["s_mov_b64 s[4:5], exec", "s_mov_b64 exec, -1", "s_mov_b64 exec, s[4:5]"], True),
    (["s_mov_b64 exec, -1"], False),
    (["s_xor_b64 exec, exec, vcc", "s_xor_b64 exec, exec, vcc"], False),
])
def test_exec_comes_back(texts: list[str], back: bool) -> None:
    isa = instruction_set(target("gfx90a"))
    assert summary(isa, payload(b"".join(isa.parse(text).raw for text in texts))).gives_exec_back is back


def test_a_payload_is_found_in_other_registers_and_nothing_else_is() -> None:
    isa = instruction_set(target("gfx90a"))
    one = payload(isa.assemble("s_add_u32 s0, s0, s1\nv_mov_b32_e32 v0, s0"))
    known = summary(isa, one)

    def find(listing: str) -> dict[int, int]:
        code = isa.assemble(listing)
        return match_payload(isa, one, known, 0, lambda pc: isa.decode(code, pc), ())[1]

    assert find("s_add_u32 s7, s7, s9\ns_nop 3\nv_mov_b32_e32 v4, s7")[0] == 7
    for other in ("s_add_u32 s7, s7, s9\nv_mov_b32_e32 v4, s9", "s_add_u32 s7, s7, s7\nv_mov_b32_e32 v4, s7",
                  "s_sub_u32 s7, s7, s9\nv_mov_b32_e32 v4, s7", "s_add_u32 s7, s7, 9\nv_mov_b32_e32 v4, s7",
                  "s_add_u32 m0, m0, s9\nv_mov_b32_e32 v4, m0", "s_add_u32 s7, s7, s9\ns_mov_b32 s8, 0\n"
                  "v_mov_b32_e32 v4, s7"):
        with pytest.raises(CheckFailed, match="hook"):
            find(other)


def test_a_jump_of_the_payload_behind_a_group_of_islands_is_found() -> None:
    isa = instruction_set(target("gfx90a"))
    one = payload(isa.assemble("s_cbranch_scc0 other\ns_mov_b32 s0, 1\ns_branch end\nother:\ns_mov_b32 s0, 2\nend:\n"
                               "s_mov_b32 s1, s0"))
    known = summary(isa, one)
    listing = ("s_cbranch_scc0 other\ns_mov_b32 s0, 1\ns_branch behind\ns_branch far\ns_branch far\nbehind:\n"
               "s_branch {}\nother:\ns_mov_b32 s0, 2\nend:\ns_mov_b32 s1, s0\nfar:\ns_endpgm")
    code = isa.assemble(listing.format("end"))
    assert match_payload(isa, one, known, 0, lambda pc: isa.decode(code, pc), ())[0][2] == 20
    wrong = isa.assemble(listing.format("other"))
    with pytest.raises(CheckFailed, match="elsewhere"):
        match_payload(isa, one, known, 0, lambda pc: isa.decode(wrong, pc), ())


@pytest.mark.parametrize(("between", "found"), [("s_nop 3", True), ("v_nop", True), ("v_mov_b32 v6, v7", False)])
def test_hazards_of_the_applications_are_met_inside_of_a_hook(between: str, found: bool) -> None:
    """gfx1250's matrix instructions want v_nop before what uses their registers."""
    isa = instruction_set(target("gfx1250"), 32)
    lines = ["v_mov_b32 v4, v5", "v_add_f32 v5, v4, v4"]
    one = payload(isa.assemble("\n".join(lines)))
    code = isa.assemble("\n".join([lines[0], between, lines[1]]))
    places = (0, len(isa.assemble("\n".join([lines[0], between]))), len(code))
    if found:
        assert match_payload(isa, one, summary(isa, one), 0, lambda pc: isa.decode(code, pc), ())[0] == [*places]
    else:
        with pytest.raises(CheckFailed, match="is not as it was compiled"):
            match_payload(isa, one, summary(isa, one), 0, lambda pc: isa.decode(code, pc), ())


def test_islands_behind_a_jump_of_the_payload_lie_by() -> None:
    """Nothing falls into them, so code goes on behind them and not where they lead."""
    isa = instruction_set(target("gfx90a"))
    skips = isa.assemble("s_branch over\ns_mov_b32 s4, 1\nover:\ns_mov_b32 s5, 2")
    one = payload(skips)
    known = summary(isa, one)
    listing = "s_branch {}\ns_branch far\nthere:\ns_mov_b32 s4, 1\nover:\ns_mov_b32 s5, 2\ns_nop 0\nfar:\ns_nop 0"
    code = isa.assemble(listing.format("over"))
    assert match_payload(isa, one, known, 0, lambda pc: isa.decode(code, pc), ())[0] == [0, 8, 12, 16]
    astray = isa.assemble(listing.format("there"))
    with pytest.raises(CheckFailed, match="goes elsewhere"):
        match_payload(isa, one, known, 0, lambda pc: isa.decode(astray, pc), ())


IN_SOME_LANES = ("v_mov_b32_e32 v4, 1", "v_cmp_gt_u32_e32 vcc, 3, v0", "s_and_saveexec_b64 s[2:3], vcc",
                 "v_mov_b32_e32 v4, s32", "s_or_b64 exec, exec, s[2:3]")
THERE_AGAIN = ("s_and_saveexec_b64 s[2:3], vcc", "scratch_store_dword v4, v0, off", "s_or_b64 exec, exec, s[2:3]")


def on_a_stack(*lines: str) -> Payload:
    isa = instruction_set(target("gfx90a"))
    return Payload("hook", b"".join(isa.parse(text).raw for text in lines), (), (), (), (), None, stack=sgpr(32),
                   frame_bytes=16)


def test_addresses_are_those_of_the_lanes_that_use_them() -> None:
    isa = instruction_set(target("gfx90a"))
    assert summary(isa, on_a_stack(*IN_SOME_LANES, *THERE_AGAIN)).gives_exec_back
    others = ("s_andn2_b64 s[4:5], s[2:3], vcc", "s_mov_b64 exec, s[4:5]", *THERE_AGAIN[1:])
    assert summary(isa, on_a_stack(*IN_SOME_LANES, *others[:2], others[3])).gives_exec_back
    for wrong in ((*IN_SOME_LANES, THERE_AGAIN[1]), (*IN_SOME_LANES, *others)):
        with pytest.raises(CheckFailed, match="its stack"):
            summary(isa, on_a_stack(*wrong))


def test_active_lanes_do_not_leave_where_none_is_active() -> None:
    """What they have behind the branch is made for them, and what others have is used by others."""
    isa = instruction_set(target("gfx90a"))
    used = ("v_cmp_gt_u32_e32 vcc, 3, v0", "s_and_saveexec_b64 s[2:3], vcc", "s_mov_b64 s[4:5], exec",
            "s_cbranch_execz 1", "v_mov_b32_e32 v4, s32", "s_or_b64 exec, exec, s[2:3]",
            "s_and_saveexec_b64 s[2:3], s[4:5]", *THERE_AGAIN[1:])
    assert summary(isa, on_a_stack(*used)).gives_exec_back
    with pytest.raises(CheckFailed, match="its stack"):
        summary(isa, on_a_stack(*used[:3], "s_cbranch_execnz 1", *used[4:]))


def test_what_one_lane_reads_of_another_is_made_on_every_way() -> None:
    isa = instruction_set(target("gfx90a"))
    taken = ("v_readfirstlane_b32 s4, v4", "scratch_store_dword off, v0, s4")
    assert summary(isa, on_a_stack("v_mov_b32_e32 v4, s32", *taken))
    jumping = (*IN_SOME_LANES[:3], "s_cbranch_execz 1", *IN_SOME_LANES[3:], taken[0])
    for behind in (taken[1:], (THERE_AGAIN[0], taken[1], THERE_AGAIN[2])):
        with pytest.raises(CheckFailed, match="its stack"):
            summary(isa, on_a_stack(*jumping, *behind))


def test_what_is_read_of_a_lane_that_is_active_is_its_pointer() -> None:
    isa = instruction_set(target("gfx90a"))
    lines = ("v_cmp_gt_u32_e32 vcc, 3, v0", "s_and_saveexec_b64 s[2:3], vcc", "v_mov_b32_e32 v4, s0",
             "v_mov_b32_e32 v5, s1", "v_readfirstlane_b32 s4, v4", "v_readfirstlane_b32 s5, v5",
             "s_load_dword s6, s[4:5], 0x0", "s_waitcnt lgkmcnt(0)", "s_or_b64 exec, exec, s[2:3]")
    code = b"".join(isa.parse(text).raw for text in lines)
    assert summary(isa, Payload("hook", code, (sgpr(0, 2),), (), (1,), (4,), None)).gives_exec_back


def test_pointers_on_the_stack_stay_pointers() -> None:
    isa = instruction_set(target("gfx90a"))
    def back(kept: str) -> Payload:
        lines = ("v_mov_b32_e32 v4, s0", "v_mov_b32_e32 v5, s1", f"scratch_store_dwordx2 off, {kept}, s32",
                 "scratch_load_dwordx2 v[6:7], off, s32", "s_waitcnt vmcnt(0)", "global_store_dword v[6:7], v0, off")
        code = b"".join(isa.parse(text).raw for text in lines)
        return Payload("hook", code, (sgpr(0, 2),), (), (1,), (4,), None, stack=sgpr(32), frame_bytes=16)

    summary(isa, back("v[4:5]"))
    with pytest.raises(CheckFailed, match="not made of a pointer"):
        summary(isa, back("v[8:9]"))


LDS, PRIVATE, NEITHER = (Space.LDS,), (Space.SCRATCH,), (Space.NONE,)
THROUGH_NEAR = {
    "ds_read_b32 v1, v0": LDS, "ds_read_b64 v[2:3], v0 offset:8": LDS, "ds_read2_b32 v[2:3], v0 offset1:1": LDS,
    "ds_read_u8_d16_hi v1, v0": LDS, "scratch_load_dword v1, v0, off": PRIVATE,
    "scratch_load_dwordx2 v[2:3], v0, off offset:8": PRIVATE,
}


def near(space: tuple[Space, ...], *texts: str, numbers: Space = Space.NONE, **more: object) -> Payload:
    isa = instruction_set(target("gfx90a"))
    code = b"".join(isa.parse(text).raw for text in (*texts, "s_waitcnt vmcnt(0) lgkmcnt(0)"))
    return Payload("hook", code, (vgpr(0),), (), (0,), (0,), None, near=space, near_numbers=numbers, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", THROUGH_NEAR)
@pytest.mark.parametrize("made", ["s_nop 0", "v_add_u32_e32 v0, 4, v0", "v_lshl_add_u32 v0, v5, 2, v0"])
def test_near_memory_is_read_through_pointers_into_it(text: str, made: str) -> None:
    isa = instruction_set(target("gfx90a"))
    summary(isa, near(THROUGH_NEAR[text], made, text))
    for other in (LDS, PRIVATE, NEITHER, ()):
        if other != THROUGH_NEAR[text]:
            with pytest.raises(CheckFailed, match="local memory|private memory"):
                summary(isa, near(other, made, text))


@pytest.mark.parametrize("lost", ["v_mov_b32_e32 v0, v5", "v_not_b32_e32 v0, v0", "v_mov_b32_e32 v0, 0",
                                  "v_xor_b32_e32 v0, v0, v5", "ds_read_b32 v0, v0", "scratch_load_dword v0, v0, off"])
def test_what_is_no_near_pointer_any_more_leads_nowhere(lost: str) -> None:
    isa = instruction_set(target("gfx90a"))
    for text, space in THROUGH_NEAR.items():
        with pytest.raises(CheckFailed, match="local memory|private memory"):
            summary(isa, near(space, lost, text))


@pytest.mark.parametrize(("space", "text"), [
    (LDS, "ds_write_b32 v0, v1"), (LDS, "ds_add_u32 v0, v1"), (LDS, "ds_add_rtn_u32 v1, v0, v2"),
    (LDS, "ds_read_b32 v1, v0 gds"), (LDS, "ds_read_addtid_b32 v0"), (LDS, "ds_append v0"),
    (LDS, "ds_wrxchg_rtn_b32 v1, v0, v2"), (LDS, "buffer_load_dword v0, s[0:3], 0 offen lds"),
    (PRIVATE, "scratch_store_dword v0, v1, off"), (PRIVATE, "scratch_store_byte v0, v1, off"),
    (LDS, "global_load_dword v1, v0, s[0:1]"), (PRIVATE, "flat_load_dword v1, v[0:1]"),
    (LDS, "global_store_dword v0, v1, s[0:1]"),
])
def test_near_memory_is_read_only_and_nothing_else_is_touched(space: tuple[Space, ...], text: str) -> None:
    isa = instruction_set(target("gfx90a"))
    with pytest.raises(CheckFailed, match="local memory|private memory|not made of a pointer|sends data"):
        summary(isa, near(space, text))
    with pytest.raises(CheckFailed, match="local memory|private memory|not made of a pointer|sends data"):
        summary(isa, near((), "v_mov_b32_e32 v0, 0", text, numbers=space[0]))


def test_numbers_are_near_addresses_where_the_claim_says_so() -> None:
    isa = instruction_set(target("gfx90a"))
    texts = "v_mov_b32_e32 v0, 16", "ds_read_b32 v1, v0"
    summary(isa, near((), *texts, numbers=Space.LDS))
    for numbers in (Space.NONE, Space.SCRATCH):
        with pytest.raises(CheckFailed, match="local memory"):
            summary(isa, near((), *texts, numbers=numbers))


def test_one_way_without_a_near_pointer_is_enough() -> None:
    isa = instruction_set(target("gfx90a"))
    for moved, right in (("v_mov_b32_e32 v4, v5", False), ("v_mov_b32_e32 v4, v0", True)):
        texts = "v_mov_b32_e32 v4, v0", "s_cbranch_scc0 1", moved, "ds_read_b32 v1, v4"
        if right:
            summary(isa, near(LDS, *texts))
        else:
            with pytest.raises(CheckFailed, match="local memory"):
                summary(isa, near(LDS, *texts))
    two = replace(near((Space.LDS, Space.SCRATCH), "v_mov_b32_e32 v4, v0", "s_cbranch_scc0 1", "v_mov_b32_e32 v4, v1",
                       "ds_read_b32 v2, v4"), params=(vgpr(0), vgpr(1)), pointers=(0, 0), pointed=(0, 0))
    with pytest.raises(CheckFailed, match="local memory"):
        summary(isa, two)


def test_near_pointers_stay_what_they_are_on_a_stack() -> None:
    """And what is read of the application's private memory is no pointer of any kind."""
    isa = instruction_set(target("gfx90a"))
    kept = "scratch_store_dword off, {}, s32", "scratch_load_dword v4, off, s32", "s_waitcnt vmcnt(0)"
    stack = {"stack": sgpr(32), "frame_bytes": 16}
    summary(isa, near(LDS, kept[0].format("v0"), *kept[1:], "ds_read_b32 v1, v4", **stack))
    with pytest.raises(CheckFailed, match="local memory"):
        summary(isa, near(LDS, kept[0].format("v5"), *kept[1:], "ds_read_b32 v1, v4", **stack))
    with pytest.raises(CheckFailed, match="private memory"):
        summary(isa, near(PRIVATE, kept[0].format("v0"), "scratch_load_dword v4, v0, off", "s_waitcnt vmcnt(0)",
                          "scratch_load_dword v5, v4, off", **stack))
