"""Hand-written kernels branch over a distance that a scalar register holds: their copies go the same ways.

In: kernels in the form that Tensile writes, and forms like it. Each is lifted, instrumented, proved and run; memory, in
which the offsets are, too, and counts are those of the original. What is not known for certain is refused by name.
"""

from __future__ import annotations

from itertools import product

import pytest
from assembled import BUFFER_BYTES, assembled

from luthier_py import Mutator, Tool, hook, u32
from luthier_py.base.errors import CheckFailed, EditConflict
from luthier_py.binary.loader import load
from luthier_py.binary.patch import FixupKind
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.run.launch import Launch, run_instrumented, run_original
from luthier_py.features.run.specs import parse_argument
from luthier_py.isa import OpFlag, sgpr, target
from luthier_py.program.ir import Ending, lift, verify
from luthier_py.rewrite.inject import clone as cloning
from luthier_py.rewrite.inject.items import Referent, Single
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool

TARGETS = "gfx90a", "gfx942", "gfx1100"
FORWARD = """
 s_getpc_b64 s[8:9]
 s_add_i32 s10, .Lover, 4
 s_add_u32 s8, s8, s10
 s_addc_u32 s9, s9, 0
 s_setpc_b64 s[8:9]
 v_mov_b32 v2, 99
.Lover:
"""
BACK = """
 s_movk_i32 s20, 3
.Lagain:
 {add} v2, s14, v2
 s_sub_u32 s20, s20, 1
 s_cmp_eq_u32 s20, 0
 s_cbranch_scc1 .Lout
 s_getpc_b64 s[12:13]
 s_add_i32 s14, .Lagain, 4
 s_abs_i32 s14, s14
 v_mov_b32 v3, s20
 s_sub_u32 s12, s12, s14
 s_subb_u32 s13, s13, 0
 s_setpc_b64 s[12:13]
 v_mov_b32 v2, 99
.Lout:
"""
COMPUTED = """
 s_movk_i32 s18, 3
 s_mul_i32 s18, s18, 3
 s_cmp_lg_u32 s18, 9
 s_cselect_b32 s18, 0, s18
 s_lshl_b32 s18, s18, 2
 s_sub_i32 s19, s18, 16
 s_getpc_b64 s[16:17]
 s_add_u32 s16, s16, s19
 s_addc_u32 s17, s17, 0
 s_setpc_b64 s[16:17]
 v_mov_b32 v2, 99
 s_nop 0
 s_nop 0
"""
"""Distances in s10, s14, and s19, which end in memory."""
CHOSEN = """
 s_movk_i32 s21, 0
.Lturn:
 s_cmp_eq_u32 s21, 1
 s_cbranch_scc1 .Lsecond
 s_getpc_b64 s[24:25]
 s_add_i32 s26, .Lone, 4
 s_add_u32 s24, s24, s26
 s_addc_u32 s25, s25, 0
 s_branch .Lcall
.Lsecond:
 s_getpc_b64 s[24:25]
 s_add_i32 s26, .Ltwo, 4
 s_add_u32 s24, s24, s26
 s_addc_u32 s25, s25, 0
.Lcall:
 s_swappc_b64 s[30:31], s[24:25]
 s_add_u32 s21, s21, 1
 s_cmp_lt_u32 s21, 3
 s_cbranch_scc1 .Lturn
 s_branch .Lfinish
.Lone:
 {add} v2, 5, v2
 s_setpc_b64 s[30:31]
.Ltwo:
 {add} v2, 7, v2
 {add} v2, s26, v2
 s_setpc_b64 s[30:31]
.Lfinish:
"""
"""One of two functions that have no symbol, as activation functions of hipBLASLt's kernels have none."""
ALL = FORWARD + BACK + COMPUTED
KERNEL = """
 {load} s[2:3], s[0:1], 0x0
 v_lshlrev_b32 v1, 2, v0
 v_mov_b32 v2, 0
 s_mov_b32 s14, 0
 s_waitcnt lgkmcnt(0)
 {body}
 {add} v2, s10, v2
 {add} v2, s19, v2
 {store} v1, v2, s[2:3]
 s_endpgm
"""


@pytest.fixture(scope="module")
def made(require_tool, tmp_path_factory):
    """A kernel of some lines, for a target."""
    def kernel(gpu: str, body: str) -> bytes:
        new = target(gpu).generation >= 10
        words = {"load": "s_load_b64" if new else "s_load_dwordx2", "add": "v_add_nc_u32" if new else "v_add_u32",
                 "store": "global_store_b32" if new else "global_store_dword"}
        text = KERNEL.format(body=body, **words).format(**words)
        return assembled(require_tool("clang-22"), tmp_path_factory.mktemp("long"), gpu, text)

    return kernel


LAUNCH = Launch("k", (2, 1, 1), (64, 1, 1), (parse_argument(f"inout:u32[{BUFFER_BYTES // 4}]=arange"),))


@pytest.mark.parametrize("gpu", TARGETS)
def test_distances_in_registers_are_followed(made, gpu: str) -> None:
    program = lift(load(made(gpu, ALL)))
    verify(program)
    (function,) = program.functions
    assert function.incomplete is None
    jumps = [block for block in function.blocks if OpFlag.SETS_PC in block.instrs[-1].op.flags]
    assert [block.ending for block in jumps] == [Ending.BRANCH] * 3
    assert [builder.back for builder in function.pc_builders] == [False, True, False]
    assert [len(builder.offset) for builder in function.pc_builders] == [1, 2, 6]


@pytest.mark.parametrize(("gpu", "options"), [
    *((gpu, {}) for gpu in TARGETS), ("gfx90a", {"COUNT_WARP_LEVEL": 0}), ("gfx90a", {"mode": "instruction"})], ids=str)
def test_a_copy_goes_the_same_ways(made, gpu: str, options: dict[str, object]) -> None:
    device, tool, data = EmulatorDevice(target(gpu)), load_tool("instr_count", options), made(gpu, ALL + CHOSEN)
    before = run_original(device, data, LAUNCH)
    profile = device.profile
    assert profile is not None
    after = run_instrumented(device, instrument(data, tool), tool, LAUNCH)
    assert {n: each.tobytes() for n, each in before.outputs.items()} == {
        n: each.tobytes() for n, each in after.outputs.items()}
    wanted = profile.total_lanes if options.get("COUNT_WARP_LEVEL") == 0 else profile.total
    assert after.report["instructions"] == wanted


def test_a_copy_without_the_original_is_proved_too(made) -> None:
    assert instrument(made("gfx90a", ALL), "instr_count", apart=True).patched.report


def test_functions_without_symbols_are_those_that_calls_go_to(made) -> None:
    program = lift(load(made("gfx90a", CHOSEN)))
    kernel, one, two = program.functions
    (call,) = program.calls(kernel)
    assert call.indirect and not call.unknown and call.targets == (one, two)
    assert program.address_taken == {one.address, two.address}


@pytest.mark.parametrize("behind", ["s_cselect_b32 s20, 1, 0", "s_cbranch_scc0 .Lend\n.Lend:"])
def test_what_a_sum_leaves_in_scc_is_not_the_same_in_a_copy(made, behind: str) -> None:
    with pytest.raises(CheckFailed, match="an address of code is used in a way that is not understood"):
        instrument(made("gfx90a", FORWARD + behind), "instr_count")


def with_another_offset(apart):
    found = ITEMS(apart)
    for builder in apart.function.pc_builders:
        instr = builder.offset[0]
        if instr.inst.literal is not None:
            found[instr.pc] = (Single(apart.isa.with_field(instr.inst, "literal", instr.inst.literal + 4), instr),)
    return found


def four_bytes_more(kind, distance):
    near, low = abs(distance) < 1 << 10, kind in (FixupKind.REL32_LO, FixupKind.BACK32_LO)
    return STORED(kind, distance + 4 * (near and low))


ITEMS, REBUILT, HALVES, STORED = (cloning._Apart.items, cloning._Apart.make_relocatable, cloning._HALVES,
                                  FixupKind.encode_distance)
WRONG = {
    "a distance is 4 bytes more": (FixupKind, "encode_distance", four_bytes_more),
    "a distance counts from elsewhere": (
        cloning._Apart, "make_relocatable",
        lambda apart, instr, builder, base: REBUILT(apart, instr, builder, next(iter(apart.labels.values())))),
    "halves are the other way round": (cloning, "_HALVES", {
        (back, high): (HALVES[back, not high][0], make) for (back, high), (_, make) in HALVES.items()}),
    "it adds what is to be subtracted": (cloning, "_HALVES", {
        (back, high): (kind, HALVES[False, high][1]) for (back, high), (kind, _) in HALVES.items()}),
    "it adds the distance where the original subtracts": (cloning, "_HALVES", {
        (back, high): HALVES[False, high] for back, high in HALVES}),
    "it subtracts what is to be added": (cloning, "_HALVES", {
        (back, high): (kind, HALVES[True, high][1]) for (back, high), (kind, _) in HALVES.items()}),
    "it goes to the original": (
        cloning._Apart, "target", lambda apart, builder: Referent(address=builder.value)),
    "it goes to another block": (
        cloning._Apart, "target", lambda apart, builder: Referent(label=next(iter(apart.labels.values())))),
    "it goes as far as the original": (
        cloning._Apart, "make_relocatable", lambda apart, instr, builder, base: Single(instr.inst, instr)),
    "the register has another number": (cloning._Apart, "items", with_another_offset),
}


BODIES = {"forward": FORWARD, "back": BACK}
RIGHT = {("back", "it subtracts what is to be added"), ("forward", "it adds what is to be subtracted"),
         ("forward", "it adds the distance where the original subtracts")}


@pytest.mark.parametrize(("way", "wrong"), [each for each in product(BODIES, WRONG) if each not in RIGHT])
def test_wrong_distances_are_refused(made, monkeypatch, way: str, wrong: str) -> None:
    data = made("gfx90a", BODIES[way])
    monkeypatch.setattr(*WRONG[wrong])
    with pytest.raises(CheckFailed):
        instrument(data, "instr_count")


UNKNOWN = {
    "loaded": "s_load_dword s10, s[2:3], 0x0\n s_waitcnt lgkmcnt(0)",
    "one of two": "s_cmp_eq_u32 s20, 0\n s_cselect_b32 s10, 24, 28",
    "on one of two ways": "s_movk_i32 s10, 24\n s_cbranch_scc0 .Lhere\n s_movk_i32 s10, 28\n.Lhere:",
    "of a lane": "v_readfirstlane_b32 s10, v0",
}


@pytest.mark.parametrize("how", UNKNOWN)
def test_what_is_not_known_is_refused_by_name(made, how: str) -> None:
    body = FORWARD.replace(" s_add_i32 s10, .Lover, 4", UNKNOWN[how])
    (function,) = lift(load(made("gfx90a", body))).functions
    assert function.incomplete is not None
    assert "may go anywhere" in function.incomplete or "not understood" in function.incomplete


class Changing(Tool):
    """A result in a register, before or after an instruction of the first address that is made."""

    @hook
    def other(x: u32) -> u32:
        return x + 4

    def __init__(self, number: int, place: str, register: int) -> None:
        super().__init__()
        self.number, self.place, self.register = number, place, register

    def instrument(self, m: Mutator) -> None:
        (function,) = m.functions()
        builder = function.pc_builders[0]
        instr = (*builder.offset, builder.lo, builder.hi)[self.number]
        at, register = (m.before if self.place == "before" else m.after), sgpr(self.register)
        at(instr, self.other, register, into=register)


@pytest.mark.parametrize(("number", "place"), [(0, "after"), (1, "before"), (1, "after"), (2, "before")])
def test_no_hook_may_change_what_is_added_to_the_pc(made, number: int, place: str) -> None:
    with pytest.raises(EditConflict, match="s10 is a part of an address here"):
        instrument(made("gfx90a", FORWARD), Changing(number, place, 10))


@pytest.mark.parametrize(("number", "place", "register"), [(0, "before", 10), (2, "after", 10), (1, "before", 20)])
def test_hooks_may_change_it_before_and_behind(made, number: int, place: str, register: int) -> None:
    instrument(made("gfx90a", FORWARD), Changing(number, place, register))


def test_nothing_else_may_stand_for_what_makes_it(made) -> None:
    class Replacing(Changing):
        def instrument(self, m: Mutator) -> None:
            (function,) = m.functions()
            m.remove(function.pc_builders[0].offset[0])

    with pytest.raises(EditConflict, match="makes an address"):
        instrument(made("gfx90a", FORWARD), Replacing(0, "", 0))
