"""What callees leave alone: the proof finds it by itself, and refuses copies of a lifting that is wrong about it."""

from __future__ import annotations

import pytest
from emulated import ISA, code_object
from synthetic import Row

from luthier_py import Lane, Mutator, Tool, hook, u32
from luthier_py.base.errors import CheckFailed
from luthier_py.isa import M0, OpFlag, instruction_set, sgpr, target, vgpr
from luthier_py.program.ir import discover
from luthier_py.proof.addresses import LOST, UNKNOWN, step
from luthier_py.proof.return_addresses import HALVES, State, move_lanes
from luthier_py.rewrite.pipeline import instrument

PAIR = 10
END: Row = ("s_endpgm", 0)
RETURN: Row = ("s_setpc_b64", sgpr(30, 2))
TOUCH: Row = ("s_mov_b32", sgpr(PAIR + 1), 0)


def address(of: str, pair: int = PAIR) -> list[Row]:
    return [("s_getpc_b64", sgpr(pair, 2)), ("s_add_u32", sgpr(pair), sgpr(pair), of),
            ("s_addc_u32", sgpr(pair + 1), sgpr(pair + 1), of)]


def call(pair: int = PAIR) -> Row:
    return "s_swappc_b64", sgpr(30, 2), sgpr(pair, 2)


KERNEL: list[Row] = [*address("f"), call(), call(), END]
G: list[Row] = [("s_mov_b64", sgpr(40, 2), sgpr(30, 2)), *address("g", 14), call(14), ("s_setpc_b64", sgpr(40, 2))]
AGAIN: list[Row] = [("s_mov_b64", sgpr(42, 2), sgpr(30, 2)), *address("f", 16), call(16), TOUCH,
                    ("s_setpc_b64", sgpr(42, 2))]
UNLESS: list[Row] = [G[0], ("s_cmp_eq_u32", sgpr(6), 0), ("s_cbranch_scc0", "out")]
CALLEES: dict[str, dict[str, list[Row]]] = {
    "itself": {"f": [TOUCH, RETURN]},
    "its callee": {"f": G, "g": [TOUCH, RETURN]},
    "where it goes over to": {"f": [*address("g", 14), ("s_setpc_b64", sgpr(14, 2))], "g": [TOUCH, RETURN]},
    "who calls it again": {"f": [*UNLESS, *G[1:-1], "out:", G[-1]], "g": AGAIN},
}


class Counts(Tool):
    """A hook before each instruction."""

    @hook
    def nothing(x: Lane[u32]) -> None:
        pass

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            for instr in m.instrs(function):
                m.before(instr, self.nothing, vgpr(0))


@pytest.mark.parametrize("callees", CALLEES.values(), ids=CALLEES)
def test_who_touches_the_address(monkeypatch: pytest.MonkeyPatch, callees: dict[str, list[Row]]) -> None:
    data = code_object({"k": KERNEL, **callees})
    assert instrument(data, Counts()).patched.report
    monkeypatch.setattr(discover, "collect_touched_scalars", lambda code: 0)
    with pytest.raises(CheckFailed, match=r"where this goes is not the same on all ways.*s_swappc_b64 .*s\[10:11\]"):
        instrument(data, Counts())


def test_a_hook_that_is_to_change_it() -> None:
    class Changes(Tool):
        """In what is called."""

        @hook
        def zero() -> u32:
            return u32(0)

        def instrument(self, m: Mutator) -> None:
            for function in m.functions():
                if not function.kernel:
                    m.before(next(iter(m.instrs(function))), self.zero, into=sgpr(PAIR))

    with pytest.raises(CheckFailed, match="where this goes is not the same on all ways"):
        instrument(code_object({"k": KERNEL, "f": [("s_nop", 0), RETURN]}), Changes())


def test_a_call_through_another_register_may_change_it_too() -> None:
    isa = instruction_set(target("gfx90a"))
    inst = isa.make("s_swappc_b64", sgpr(30, 2), sgpr(8, 2))
    assert inst.op.flags & OpFlag.CALL
    pairs = {PAIR: (("lo", 1), ("lo", 2)), PAIR + 1: (("hi", 1), ("hi", 2)), 40: (("lo", 1), ("lo", 2)), 12: (5, 5)}
    state = dict(pairs)
    step(state, 64, (inst, 0x1000), (inst, 0x2000))
    back = {30: (LOST, UNKNOWN), 31: (LOST, UNKNOWN)}
    assert state == {PAIR: (LOST, UNKNOWN), PAIR + 1: (LOST, UNKNOWN), 40: pairs[40], **back}
    state = dict(pairs)
    step(state, 64, (inst, 0x1000), (inst, 0x2000), touched=1 << PAIR + 1 | 1 << 12)
    assert state == {PAIR: pairs[PAIR], PAIR + 1: (LOST, UNKNOWN), 40: pairs[40], **back}


LINK = sgpr(30, 2)
INTO: list[Row] = [("v_writelane_b32", vgpr(9), sgpr(30), 0), ("v_writelane_b32", vgpr(9), sgpr(31), 1)]
BACK: list[Row] = [("v_readlane_b32", sgpr(30), vgpr(9), 0), ("v_readlane_b32", sgpr(31), vgpr(9), 1)]
AROUND: list[Row] = [*address("g", 14), call(14)]
FURTHER: list[Row] = [("s_add_u32", sgpr(30), sgpr(30), 4), ("s_addc_u32", sgpr(31), sgpr(31), 0)]
ON_ONE_WAY: list[Row] = [("s_mov_b32", sgpr(40), 0), ("s_cmp_eq_u32", sgpr(6), 0), ("s_cbranch_scc0", "both"),
                         ("s_mov_b32", sgpr(40), sgpr(30)), "both:"]
RETURNS: dict[str, list[Row]] = {
    "in scalar registers": [("s_mov_b64", sgpr(40, 2), LINK), *AROUND, ("s_setpc_b64", sgpr(40, 2))],
    "in lanes": [*INTO, *AROUND, *BACK, RETURN],
    "in lanes on one of two ways": [
        ("s_cmp_eq_u32", sgpr(6), 0), ("s_cbranch_scc0", "out"), *INTO, *AROUND, *BACK, "out:", RETURN],
    "in lanes of a copy": [
        *INTO, ("v_mov_b32", vgpr(8), vgpr(9)), *AROUND, ("v_mov_b32", vgpr(9), vgpr(8)), *BACK, RETURN],
    "in one that has something else on another way": [*ON_ONE_WAY, ("s_mov_b32", sgpr(40), 1), RETURN],
    "in lanes of what was put aside": [*INTO, *AROUND, ("v_mov_b32", vgpr(9), vgpr(3)), *BACK, RETURN],
}
WRONG_RETURNS: dict[str, tuple[list[Row], str]] = {
    "further": ([*FURTHER, RETURN], "computes with its return address"),
    "further, from lanes": ([*INTO, *BACK, *FURTHER, RETURN], "computes with its return address"),
    "further, from lanes that are not known": (
        [*INTO, ("v_mov_b32", vgpr(9), vgpr(3)), *BACK, *FURTHER, RETURN], "returns to an address that it computes"),
    "halves exchanged": (
        [("s_mov_b32", sgpr(40), sgpr(30)), ("s_mov_b32", sgpr(30), sgpr(31)), ("s_mov_b32", sgpr(31), sgpr(40)),
         RETURN],
        "returns to an address|where this goes"),
    "of a vector": ([("v_mov_b32", vgpr(3), sgpr(30)), RETURN], "computes with its return address"),
    "to some lane": ([("v_writelane_b32", vgpr(9), sgpr(30), sgpr(M0)), RETURN], "to a lane that is not known"),
    "over some lane": ([*INTO, ("v_writelane_b32", vgpr(9), sgpr(7), sgpr(M0)), *BACK, RETURN], "computes with lanes"),
    "of some lane": ([*INTO, ("v_readlane_b32", sgpr(7), vgpr(9), sgpr(6)), *BACK, RETURN], "computes with lanes"),
    "of lanes that were copied": ([*INTO, ("v_mov_b32", vgpr(8), vgpr(9)), ("v_add_u32", vgpr(3), vgpr(8), vgpr(8)),
                                   RETURN], "computes with lanes"),
    "of lanes in any memory": (
        [*INTO, ISA.parse("flat_store_dword v[0:1], v9").raw, ("s_waitcnt", 0), RETURN], "computes with lanes"),
    "of one way": ([*ON_ONE_WAY, ("v_mov_b32", vgpr(3), sgpr(40)), RETURN], "used in a way that is not understood"),
    "of lanes as a whole": ([*INTO, ("v_add_u32", vgpr(3), vgpr(9), vgpr(9)), RETURN], "computes with lanes"),
    "from memory": ([("s_load_dwordx2", LINK, sgpr(4, 2), 0), ("s_waitcnt", 0), RETURN], "that it computes"),
    "compared": ([("s_cmp_eq_u32", sgpr(30), 0), RETURN], "computes with its return address"),
    "where it came from last": ([*AROUND, RETURN], "not the same on all ways"),
    "of a callee": ([("s_mov_b64", sgpr(40, 2), LINK), *AROUND, ("s_mov_b32", sgpr(7), sgpr(30)),
                     ("s_setpc_b64", sgpr(40, 2))], "used in a way that is not understood|not restored"),
}
G_RETURNS: dict[str, list[Row]] = {"g": [("s_nop", 0), RETURN]}


@pytest.mark.parametrize("rows", RETURNS.values(), ids=RETURNS)
def test_return_addresses_are_moved(rows: list[Row]) -> None:
    data = code_object({"k": [*address("f"), call(), END], "f": rows, **G_RETURNS})
    assert instrument(data, Counts()).patched.report


@pytest.mark.parametrize(("rows", "why"), WRONG_RETURNS.values(), ids=WRONG_RETURNS)
def test_functions_that_compute_with_them_are_refused_by_name(rows: list[Row], why: str) -> None:
    data = code_object({"k": [*address("f"), call(), END], "f": rows, **G_RETURNS})
    with pytest.raises(CheckFailed, match=why) as caught:
        instrument(data, Counts())
    assert caught.value.where is not None and caught.value.where.kernel == "f"


def test_kernels_that_look_where_a_call_came_back_are_refused() -> None:
    kernel: list[Row] = [*address("f"), call(), ("s_mov_b32", sgpr(7), sgpr(30)), END]
    with pytest.raises(CheckFailed, match="used in a way that is not understood"):
        instrument(code_object({"k": kernel, "f": [("s_nop", 0), RETURN]}), Counts())


def test_lanes_that_have_numbers_are_as_any() -> None:
    """Numbers are followed that are added to addresses; elsewhere they are the application's data, in lanes, too."""
    isa, state = instruction_set(target("gfx90a")), State({4: (5, 5)})
    for row in (("v_writelane_b32", vgpr(9), sgpr(4), 0), ("v_add_u32", vgpr(3), vgpr(9), vgpr(9)),
                ("v_readlane_b32", sgpr(5), vgpr(9), 0), ("v_writelane_b32", vgpr(9), sgpr(4), sgpr(M0))):
        move_lanes(state, isa.make(*row), 64)
    assert state == {4: (5, 5)}


@pytest.mark.parametrize("wave_size", [32, 64])
def test_lanes_are_numbered_as_a_wave_has_them(wave_size: int) -> None:
    """v_readlane_b32 and v_writelane_b32 take the lane's number modulo the lanes of a wave."""
    isa = instruction_set(target("gfx1100"), wave_size)
    state = State({30: HALVES[:1] * 2, 31: HALVES[1:] * 2})
    for row in (("v_writelane_b32", vgpr(9), sgpr(30), 1), ("v_writelane_b32", vgpr(9), sgpr(31), 33),
                ("v_readlane_b32", sgpr(4), vgpr(9), 1), ("v_readlane_b32", sgpr(5), vgpr(9), 33)):
        move_lanes(state, isa.make(*row), wave_size)
    low, high = ((state[reg][0]) for reg in (4, 5))
    assert (low, high) == (HALVES if wave_size == 64 else HALVES[1:] * 2)
