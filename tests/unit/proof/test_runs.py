"""Inserted code on terms: what is saved and restored is, what is not is found."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pytest

from luthier_py.base.errors import CheckFailed, LuthierError
from luthier_py.isa import EXEC, SCC, VCC, InstructionSet, LaneOf, Reg, RegFile, instruction_set, sgpr, target, vgpr
from luthier_py.isa.model.registers import AGPR_SHIFT, VGPR_SHIFT
from luthier_py.proof.claim import ClonedFunction, InCell
from luthier_py.proof.insertions import Duty, settle
from luthier_py.proof.liveness import Live
from luthier_py.proof.pending import NOTHING, step_pending
from luthier_py.proof.runs import Runner, Tool

S, V, A = (lambda n: 1 << n), (lambda n: 1 << VGPR_SHIFT + n), (lambda n: 1 << AGPR_SHIFT + n)
ISA = instruction_set(target("gfx90a"))
NO_HOMES: Mapping[str | int, Reg | LaneOf | InCell] = {}
FIELD, OTHER_FIELD, WIDER = 1 | 7 << 11, 1 | 1 << 11, 1 | 9 << 11
KEEP, ALTER, RESTORE = f"s_getreg_b32 s30, {FIELD}", f"s_setreg_imm32_b32 {FIELD}, 0xf0", f"s_setreg_b32 {FIELD}, s30"

INTO, BACK = "v_writelane_b32 v3, s5, 7", "v_readlane_b32 s5, v3, 7"
OTHERS = "s_not_b64 exec, exec"
TO_0, TO_1 = "s_cmp_lg_u32 0, 0", "s_cmp_eq_u32 0, 0"  # the flag
FORK = "s_cbranch_scc0 there\n{}\ns_branch end\nthere:\n{}\nend:\ns_nop 0"
TWICE = "s_cbranch_scc0 there\ns_nop 0\nthere:\n{}\ns_cbranch_vccz end\ns_nop 0\nend:\ns_nop 0"
ASIDE = "v_mov_b32_e32 v4, v3\nv_mov_b32_e32 v3, 0"
IN_SOME = "s_and_saveexec_b64 s[4:5], vcc\n{}\ns_mov_b64 exec, s[4:5]"
PUT_ASIDE = f"v_accvgpr_write_b32 a1, v3\n{OTHERS}\nv_accvgpr_write_b32 a1, v3\n{OTHERS}"


def run(
    listing: str, active: int = 0, inactive: int = 0, before: str = "", plain: bool = True, isa=ISA,
    application: tuple[int, ...] = (), location: Reg | LaneOf | InCell | None = None, locations=NO_HOMES,
) -> None:
    """Raises CheckFailed. ``before``: what the application has issued; ``application``: where it is, else behind."""
    pending = step_pending(isa, isa.parse(before), NOTHING) if before else NOTHING
    runner = runner_of(listing, isa, application, locations if location is None else {0: location})
    settle(runner, runner.run(0, pending), Duty(Live(active | 3 << EXEC, inactive), plain, False), 0, 0)


def runner_of(listing: str, isa=ISA, application: tuple[int, ...] = (), locations=NO_HOMES) -> Runner:
    code = isa.assemble(listing)
    return Runner(isa, Tool((), {}, {}, {}), lambda pc: isa.decode(code + isa.make("s_nop", 0).raw, pc),
                  lambda pc: pc in (application or (len(code),)),
                  ClonedFunction("k", 0, "k", 64, (), (), locations, private=range(16, 32)))


@pytest.mark.parametrize(("listing", "live"), [
    ("s_mov_b32 s4, s5\ns_mov_b32 s5, 0\ns_mov_b32 s5, s4", S(5)),
    ("s_mov_b64 s[4:5], vcc\ns_mov_b64 vcc, 0\ns_mov_b64 vcc, s[4:5]", 3 << VCC),
    ("s_cselect_b32 s4, 1, 0\ns_add_u32 s5, s5, 1\ns_cmp_lg_u32 s4, 0", S(SCC)),
    ("s_mov_b64 s[4:5], exec\ns_mov_b64 exec, -1\ns_mov_b64 exec, s[4:5]", 0),
    ("s_and_saveexec_b64 s[4:5], vcc\nv_mov_b32_e32 v3, 0\ns_or_b64 exec, exec, s[4:5]", V(4)),
    ("v_accvgpr_write_b32 a1, v3\nv_mov_b32_e32 v3, 0\nv_accvgpr_read_b32 v3, a1", V(3)),
    ("s_cbranch_execz there\ns_mov_b32 s4, 0\nthere:\ns_nop 0", S(5)),
    (f"{INTO}\ns_mov_b32 s5, 0\n{BACK}", S(5)),
    (f"{INTO}\nv_writelane_b32 v3, s6, 8\ns_mov_b32 s5, s6\n{BACK}\nv_readlane_b32 s6, v3, 8", S(5) | S(6)),
    (f"{INTO}\ns_cbranch_scc0 there\ns_mov_b32 s5, 0\nthere:\n{BACK}", S(5)),
    (f"{PUT_ASIDE}\n{INTO}\nv_accvgpr_read_b32 v3, a1\n{OTHERS}\nv_accvgpr_read_b32 v3, a1\n{OTHERS}", V(3)),
    (f"s_cbranch_scc0 there\n{INTO}\ns_mov_b32 s5, 0\n{BACK}\nthere:\ns_nop 0", S(5)),
    (f"v_readlane_b32 s6, v3, 7\n{INTO}\nv_writelane_b32 v3, s6, 7", V(3)),
    (FORK.format(TO_1, TO_0), S(SCC)), (f"{ASIDE}\nv_mov_b32_e32 v3, v4", V(3)),
    (f"{KEEP}\n{ALTER}\n{RESTORE}", 0), (f"{KEEP}\n{ALTER}\n{ALTER}\n{RESTORE}", 0),
    (f"{KEEP}\ns_mov_b32 s31, s30\n{ALTER}\ns_mov_b32 s30, 0\ns_setreg_b32 {FIELD}, s31", 0),
])
def test_what_is_restored_passes(listing: str, live: int) -> None:
    run(listing, live)


@pytest.mark.parametrize(("listing", "live", "why"), [
    ("s_mov_b32 s5, 0", S(5), "s5 is live"),
    ("s_mov_b32 s4, s5\ns_mov_b32 s5, 0\ns_mov_b32 s5, s6", S(5), "s5 is live"),
    ("s_add_u32 s5, s5, 1", S(SCC), "scc is live"),
    ("s_cselect_b32 s4, 0, 1\ns_add_u32 s5, s5, 1\ns_cmp_lg_u32 s4, 0", S(SCC), "scc is live"),
    *((FORK.format(*flags), S(SCC), "scc is live") for flags in ((TO_0, TO_0), (TO_1, TO_1), (TO_0, TO_1))),
    *((TWICE.format(flag), S(SCC), "scc is live") for flag in (TO_0, TO_1)),
    ("s_mov_b32 m0, 0", S(124), "m0 is live"),
    (f"{INTO}\ns_mov_b32 s5, 0\nv_readlane_b32 s5, v3, 8", S(5), "s5 is live"),
    (f"{INTO}\ns_mov_b32 s5, 0\nv_readlane_b32 s5, v4, 7", S(5), "s5 is live"),
    (f"{INTO}\ns_mov_b32 s5, 0\nv_readlane_b32 s5, v3, s7", S(5), "s5 is live"),
    (f"{INTO}\nv_writelane_b32 v3, s6, 7\ns_mov_b32 s5, 0\n{BACK}", S(5), "s5 is live"),
    (f"{INTO}\nv_writelane_b32 v3, s6, m0\ns_mov_b32 s5, 0\n{BACK}", S(5), "s5 is live"),
    (f"{INTO}\nv_mov_b32_e32 v3, v4\ns_mov_b32 s5, 0\n{BACK}", S(5), "s5 is live"),
    (f"{INTO}\nv_mov_b32_e32 v3, v4\n{BACK}", S(5), "s5 is live"),
    (f"v_mov_b32_e32 v3, v4\n{INTO}\nv_mov_b32_e32 v3, v4\n{BACK}", S(5), "s5 is live"),
    (f"s_cbranch_scc0 there\n{INTO}\nthere:\ns_mov_b32 s5, 0\n{BACK}", S(5), "s5 is live"),
    (f"{INTO}\ns_cbranch_scc0 there\nv_mov_b32_e32 v3, v4\nthere:\ns_mov_b32 s5, 0\n{BACK}", S(5), "s5 is live"),
    (INTO, V(3), "v3 is live"), (f"v_readlane_b32 s6, v3, 8\n{INTO}\nv_writelane_b32 v3, s6, 7", V(3), "v3 is live"),
    (f"{ASIDE}\n{IN_SOME.format('v_mov_b32_e32 v3, v4')}", V(3), "v3 is live"),
    (f"{PUT_ASIDE}\n{INTO}\n{OTHERS}\nv_accvgpr_read_b32 v3, a1\n{OTHERS}", V(3), "v3 is live"),
    (f"{PUT_ASIDE}\n{INTO}\nv_accvgpr_read_b32 v3, a1", V(3), "v3 is still needed"),
    ("s_mov_b64 exec, -1", 0, "EXEC"), ("s_andn2_b64 exec, exec, vcc", 0, "EXEC"),
    ("s_mov_b32 exec_lo, 0", 0, "EXEC"),
    ("v_mov_b32_e32 v3, 0", V(3), "v3"), ("v_accvgpr_write_b32 a1, 0", A(1), "a1"),
    ("s_cbranch_execz there\ns_mov_b32 s5, 0\nthere:\ns_nop 0", S(5), "s5 is live"),
    *((f"v_mov_b32_e32 v4, v3\nv_mov_b32_e32 v3, 0\n{copy}", V(3), "v3 is live") for copy in (
        "v_add_u16_e32 v3, 0, v4", "v_add_f32_e32 v3, 0, v4", "v_add_f16_e32 v3, 0, v4", "v_and_b32_sdwa v3, v4, v4",
        "v_add_u32_e64 v3, v4, 0 clamp", "v_cndmask_b32_e64 v3, -v4, -v4, vcc")),
    (f"{KEEP}\n{ALTER}", 0, "MODE"), (f"{ALTER}\n{KEEP}\n{RESTORE}", 0, "MODE"),
    (f"{KEEP}\n{ALTER}\ns_mov_b32 s30, 0\n{RESTORE}", 0, "MODE"), (RESTORE, 0, "MODE"),
    (f"{KEEP}\ns_setreg_imm32_b32 {WIDER}, 0\n{RESTORE}", 0, "MODE"),
    (f"s_getreg_b32 s30, {OTHER_FIELD}\n{ALTER}\n{RESTORE}", 0, "MODE"),
    ("s_load_dword s4, s[6:7], 0x0", 0, "more than compute"), ("ds_write_b32 v0, v1", 0, "more than compute"),
    ("global_store_dword v[0:1], v2, off", 0, "more than compute"), ("s_endpgm", 0, "more than compute"),
    ("s_trap 2", 0, "more than compute"), ("s_sendmsg 1", 0, "more than compute"),
    ("s_barrier", 0, "more than compute"),
    ("s_setprio 1", 0, "more than compute"), ("s_setvskip s0, 1", 0, "more than compute"),
    ("s_set_gpr_idx_on s0, gpr_idx(SRC0)", 0, "more than compute"), ("s_setpc_b64 s[4:5]", 0, "more than compute"),
    ("there:\ns_nop 0\ns_cbranch_scc0 there", 0, "circle"),
])
def test_what_is_not_restored_or_does_more_is_found(listing: str, live: int, why: str) -> None:
    with pytest.raises(CheckFailed, match=why):
        run(listing, live)


@pytest.mark.parametrize(("listing", "why"), [
    ("v_writelane_b32 v3, 0, 8", ""), ("v_writelane_b32 v3, 0, 7", "v3 lane 7 is live"),
    ("v_mov_b32_e32 v3, 0", "v3 lane 7 is live"), ("s_nop 0", ""),
    ("v_readlane_b32 s5, v3, 7\nv_writelane_b32 v3, s5, 7", ""),
    ("v_readlane_b32 s5, v3, 7\nv_writelane_b32 v3, s5, 7\nv_mov_b32_e32 v3, 0", "v3 lane 7 is live"),
    ("v_readlane_b32 s5, v3, 8\nv_writelane_b32 v3, s5, 7", "v3 lane 7 is live"),
    ("s_cbranch_scc0 there\nv_readlane_b32 s5, v3, 7\nv_writelane_b32 v3, s5, 7\ns_branch end\nthere:\n"
     "v_mov_b32_e32 v3, 0\nv_writelane_b32 v3, s5, 7\nend:\ns_nop 0", "v3 lane 7 is live"),
])
def test_lanes_that_the_tool_keeps(listing: str, why: str) -> None:
    """Lane 7 of v3, which the application does not use."""
    location = LaneOf(vgpr(3), 7)
    if not why:
        return run(listing, location=location)
    with pytest.raises(CheckFailed, match=why):
        run(listing, location=location)


def test_lanes_are_followed_through_moves_alone() -> None:
    """Of what is computed of a register that has them nothing is known, even if it comes to the same."""
    listing = f"{INTO}\n{{}}\ns_mov_b32 s5, 0\n{BACK}"
    run(listing.format("v_mov_b32_e32 v4, v3\nv_mov_b32_e32 v3, 0\nv_mov_b32_e32 v3, v4"), S(5))
    with pytest.raises(CheckFailed, match="s5 is live"):
        run(listing.format("v_not_b32_e32 v4, v3\nv_not_b32_e32 v3, v4"), S(5))
    run("v_not_b32_e32 v4, v3\nv_not_b32_e32 v3, v4", V(3))


def test_each_way_to_the_application_counts() -> None:
    """One of them comes back through an island that lies behind."""
    listing = "s_cbranch_scc0 island\n{}\nhere:\ns_nop 0\nisland:\ns_branch here"
    for first, why in (("s_mov_b32 s5, 0", "s5 is live|circle"), ("s_nop 0", "circle")):
        with pytest.raises(CheckFailed, match=why):
            run(listing.format(first), S(5), application=(8,))
    run("s_branch there\nhere:\ns_nop 0\nthere:\ns_branch here", S(5), application=(4,))


def test_inserted_code_goes_to_one_place() -> None:
    """A branch that is not in the original would be one that is inserted."""
    two = "s_cbranch_scc0 there\ns_nop 0\ns_nop 0\nthere:\ns_nop 0"
    with pytest.raises(CheckFailed, match="several places"):
        run(two, application=(8, 12))
    with pytest.raises(CheckFailed, match="circle"):  # to none
        run("there:\ns_nop 0\ns_branch there")


def test_lanes_that_are_switched_off_count() -> None:
    wide = "s_mov_b64 s[4:5], exec\ns_mov_b64 exec, -1\nv_mov_b32_e32 v3, 0\ns_mov_b64 exec, s[4:5]"
    run("v_mov_b32_e32 v3, 0", inactive=V(3))
    run(wide, inactive=V(4))
    for listing in (wide, "v_writelane_b32 v3, s0, 1", "s_or_saveexec_b64 s[4:5], vcc\nv_mov_b32_e32 v3, 0\n"
                    "s_mov_b64 exec, s[4:5]"):
        with pytest.raises(CheckFailed, match="v3 is still needed"):
            run(listing, inactive=V(3))


def test_what_a_load_will_write_is_left_alone() -> None:
    load = "global_load_dword v3, v[0:1], off"
    run("v_mov_b32_e32 v4, 0", before=load)
    run("s_waitcnt vmcnt(0)\nv_mov_b32_e32 v3, 0", before=load)
    for listing in ("v_mov_b32_e32 v3, 0", "v_mov_b32_e32 v4, v3"):
        with pytest.raises(CheckFailed, match="may still write v3"):
            run(listing, before=load)
    scalar = "s_load_dword s3, s[0:1], 0x0"
    run("s_mov_b32 s4, 0", before=scalar)
    for listing in ("s_mov_b32 s3, 0", "s_waitcnt lgkmcnt(1)\ns_mov_b32 s3, 0"):
        with pytest.raises(CheckFailed, match="may still write s3"):
            run(listing, before=scalar)


def test_what_one_of_two_ways_overwrites_is_lost_where_they_meet() -> None:
    way = "s_cbranch_scc0 there\n{}\nthere:\ns_nop 0"
    wide = "s_mov_b64 s[4:5], exec\ns_mov_b64 exec, -1\nv_mov_b32_e32 v3, 0\ns_mov_b64 exec, s[4:5]"
    run(way.format(wide), inactive=V(4))
    near = "v_mov_b32_e32 v3, 0"
    for listing, live in ((wide, {"inactive": V(3)}), (wide, {"active": V(3)}), (near, {"active": V(3)})):
        with pytest.raises(CheckFailed, match="v3 is (still needed|live)"):
            run(way.format(listing), **live)


def test_what_the_tool_keeps_in_registers_is_needed_too() -> None:
    run("s_mov_b32 s9, 0", location=sgpr(8))
    with pytest.raises(CheckFailed, match="s9 is live"):
        run("s_mov_b32 s9, 0", location=sgpr(9))


def test_no_vector_code_where_it_would_mean_something_else() -> None:
    run("s_mov_b32 s4, 0", plain=False)
    with pytest.raises(CheckFailed, match="something else"):
        run("v_mov_b32_e32 v3, 0", plain=False)


def test_masks_of_32_lanes() -> None:
    isa = instruction_set(target("gfx1100"), 32)
    run("s_mov_b64 s[4:5], exec\ns_mov_b64 exec, 1\ns_mov_b64 exec, s[4:5]", isa=isa)
    run("s_and_saveexec_b32 s4, vcc_lo\ns_or_b32 exec_lo, exec_lo, s4", isa=isa)
    with pytest.raises(CheckFailed, match="EXEC"):
        run("s_mov_b64 s[4:5], exec\ns_mov_b64 exec, 1\ns_mov_b64 exec, s[6:7]", isa=isa)


LODGED = {
    "accumulator": (LaneOf(Reg(RegFile.AGPR, 1), 7), "v_accvgpr_read_b32 v3, a1", "v_accvgpr_write_b32 a1, v3",
                    "v_accvgpr_write_b32 a2, v3"),
    "private memory": (InCell(1, 7), "scratch_load_dword v3, off, s8 offset:4\ns_waitcnt vmcnt(0)",
                       "scratch_store_dword off, v3, s8 offset:4", "scratch_store_dword off, v3, s8 offset:8"),
}
WHOLE, AGAIN = "s_mov_b64 s[4:5], exec\ns_mov_b64 exec, -1", "s_mov_b64 exec, s[4:5]"


@pytest.mark.parametrize("slot", LODGED)
@pytest.mark.parametrize(("listing", "why"), [
    (f"{WHOLE}\nLOAD\n{AGAIN}\nv_readlane_b32 s6, v3, 7\nv_writelane_b32 v3, s6, 7\n{WHOLE}\nSTORE\n{AGAIN}", ""),
    (f"{WHOLE}\nLOAD\n{AGAIN}\nv_writelane_b32 v3, 0, 8\n{WHOLE}\nSTORE\n{AGAIN}", ""),
    (f"{WHOLE}\nLOAD\nSTORE\nASIDE\n{AGAIN}", ""),
    (f"{WHOLE}\nLOAD\n{AGAIN}\nv_writelane_b32 v3, 0, 7\n{WHOLE}\nASIDE\n{AGAIN}", ""),
    (f"{WHOLE}\nLOAD\n{AGAIN}\nv_writelane_b32 v3, 0, 7\n{WHOLE}\nSTORE\n{AGAIN}", "lane 7 is live"),
    (f"LOAD\n{WHOLE}\nSTORE\n{AGAIN}", "lane 7 is live"),
    (f"{WHOLE}\nLOAD\n{AGAIN}\nv_readlane_b32 s6, v3, 6\nv_writelane_b32 v3, s6, 7\nSTORE", "lane 7 is live"),
    (f"{WHOLE}\nLOAD\n{AGAIN}\nv_mov_b32_e32 v3, 0\n{WHOLE}\nSTORE\n{AGAIN}", "lane 7 is live"),
    ("s_not_b64 exec, exec\nv_mov_b32_e32 v3, 0\nSTORE\ns_not_b64 exec, exec", "lane 7 is live"),
    ("v_mov_b32_e32 v3, 0\nSTORE", "lane 7 is live"),
])
def test_lanes_of_what_is_brought_and_taken_back(slot: str, listing: str, why: str) -> None:
    location, load, store, aside = LODGED[slot]
    code = f"s_mov_b32 s8, 16\n{listing}".replace("LOAD", load).replace("STORE", store).replace("ASIDE", aside)
    if not why:
        return run(code, location=location)
    with pytest.raises(CheckFailed, match=why):
        run(code, location=location)


@pytest.mark.parametrize("target_of", ["gfx90a", "gfx942", "gfx1100"])
def test_private_memory_holds_whole_registers_alone(target_of: str) -> None:
    """Narrower and wider stores and loads are no copies of a register, nor do they leave what lies beside it."""
    isa = instruction_set(target(target_of))
    spill = "s_mov_b32 s8, 16\n{} off, v3, s8 offset:4\nv_mov_b32_e32 v3, 0\n{} v3, off, s8 offset:4\ns_waitcnt 0"
    accepted = []
    for store, load in product(named(isa, "SCRATCH_STORE"), named(isa, "SCRATCH_LOAD")):
        try:
            run(spill.format(store, load), V(3), isa=isa)
            accepted.append((store, load))
        except (CheckFailed, LuthierError):
            pass
    width = "b32" if isa.target.generation >= 11 else "dword"
    assert accepted == [(f"scratch_store_{width}", f"scratch_load_{width}")]


def named(isa: InstructionSet, start: str) -> list[str]:
    return sorted({op.mnemonic for op in isa.ops if op.base.startswith(start)})


def test_mode_is_not_set_where_vector_operands_mean_others() -> None:
    """gfx1250's s_setreg of MODE writes what they mean as well."""
    listing = f"{KEEP}\n{ALTER}\n{RESTORE}"
    run(listing)
    with pytest.raises(CheckFailed, match="mean something else"):
        run(listing, plain=False)


def test_what_the_hardware_looks_at_is_guarded() -> None:
    """Nothing of the application reads it."""
    runner = runner_of("s_mov_b32 s5, 0")
    duty = Duty(Live(3 << EXEC, 0), True, False)
    settle(runner, runner.run(0, NOTHING), duty, 0, 0, guarded=S(4))
    with pytest.raises(CheckFailed, match="s5 is live and not restored"):
        settle(runner, runner.run(0, NOTHING), duty, 0, 0, guarded=S(5))
