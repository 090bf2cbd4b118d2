"""Calls of one of several functions: the proof knows which these are, as lifting does."""

from __future__ import annotations

import pytest
from emulated import ISA, code_object
from synthetic import Row, assemble

from luthier_py import Lane, Mutator, Tool, Variable, hook, ptr, u32
from luthier_py.intrinsics import atomic_add
from luthier_py.isa import sgpr, vgpr
from luthier_py.proof.addresses import AddressFlow, follow
from luthier_py.proof.code import decode_functions
from luthier_py.proof.graph import body
from luthier_py.rewrite.pipeline import instrument

END: Row = ("s_endpgm", 0)
RETURN: list[Row] = [("s_nop", 0), ("s_setpc_b64", sgpr(30, 2))]
CALL: Row = ("s_swappc_b64", sgpr(30, 2), sgpr(10, 2))
VGPRS = 8
FREE = range(4, VGPRS)
FUNCTIONS = {"f": 0x4000, "g": 0x5000}


def address(of: str) -> list[Row]:
    return [("s_getpc_b64", sgpr(10, 2)), ("s_add_u32", sgpr(10), sgpr(10), of),
            ("s_addc_u32", sgpr(11), sgpr(11), of)]


def one_of(first: str, second: str) -> list[Row]:
    """Leaves in s[10:11] the address of what s6 chooses."""
    chosen = f"{first} or {second}"
    return [*address(first), ("s_cmp_eq_u32", sgpr(6), 0), ("s_cbranch_scc1", chosen), *address(second), f"{chosen}:"]


class Sums(Tool):
    """A hook that needs a register of its own, before each call of the kernel."""

    total = Variable(u32)

    @hook
    def add(total: ptr[u32], x: Lane[u32], y: Lane[u32]) -> None:
        atomic_add(total, x * u32(77) + y)

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            for instr in m.instrs(function):
                if instr.inst.op.base == "S_SWAPPC_B64":
                    m.before(instr, self.add, self.total, vgpr(0), vgpr(1))


@pytest.mark.parametrize("apart", [False, True])
def test_what_is_live_behind_calls_of_others_is_free_before_this_one(apart: bool) -> None:
    """v[4:7] are written behind the first call and read behind the second, which goes to other functions."""
    uses: list[Row] = [("v_add_u32", vgpr(0), vgpr(0), vgpr(k)) for k in range(1, VGPRS)]
    written: list[Row] = [("v_mov_b32", vgpr(k), 0) for k in FREE]
    kernel = [*one_of("f", "g"), CALL, *written, *one_of("h", "i"), CALL, *uses, END]
    data = code_object({"k": kernel, **dict.fromkeys("fghi", RETURN)}, vgprs=VGPRS)
    assert instrument(data, Sums(), apart=apart).patched.report[0].sites == 2


def followed(rows: list[Row], touched: int = 0) -> tuple[AddressFlow, int]:
    """Where a kernel's calls go, and the number of the last one. ``touched``: by all that it calls."""
    raw = assemble(ISA, rows, 0x1000, labels := dict(FUNCTIONS))  # labels that are ahead
    raw = assemble(ISA, rows, 0x1000, labels)
    code = decode_functions(ISA, [("k", [(0x1000, len(raw))])], lambda start, size: raw)[0]
    each = body("k", 0x1000, code, [0x1000], True, 0x1000 + len(raw))
    goes = follow(each, lambda at: (code.inst(at), code.pcs[at]), False, lambda to: touched)
    return goes, max(goes.targets)


BOTH = frozenset(FUNCTIONS.values())
MOVED: dict[str, tuple[list[Row], frozenset[int]]] = {
    "not": ([], BOTH),
    "to another pair and back": ([("s_mov_b64", sgpr(20, 2), sgpr(10, 2)), ("s_mov_b64", sgpr(10, 2), 0),
                                  ("s_mov_b64", sgpr(10, 2), sgpr(20, 2))], BOTH),
    "after a call": ([CALL], BOTH),
    "by a sum": ([("s_add_u32", sgpr(10), sgpr(10), 4), ("s_addc_u32", sgpr(11), sgpr(11), 0)], frozenset()),
    "by a mask": ([("s_and_b32", sgpr(10), sgpr(10), -4)], frozenset()),
    "as halves exchanged": ([("s_mov_b32", sgpr(20), sgpr(10)), ("s_mov_b32", sgpr(10), sgpr(11)),
                             ("s_mov_b32", sgpr(11), sgpr(20))], frozenset()),
    "from memory on one way": ([("s_cbranch_scc0", "kept"), ("s_load_dwordx2", sgpr(10, 2), sgpr(4, 2), 0), "kept:"],
                               frozenset()),
}


@pytest.mark.parametrize(("rows", "expected"), MOVED.values(), ids=MOVED)
def test_one_of_several_is_moved_and_no_more(rows: list[Row], expected: frozenset[int]) -> None:
    goes, at = followed([*one_of("f", "g"), *rows, CALL, END])
    assert goes.find_targets(at) == expected


def test_what_a_callee_touches_is_lost() -> None:
    goes, at = followed([*one_of("f", "g"), CALL, CALL, END], touched=1 << 10)
    assert goes.find_targets(at) == frozenset()
    assert goes.find_targets(at - 1) == BOTH


def test_two_registers_with_one_of_the_same_are_not_equal() -> None:
    """s[12:13] has f's where s[10:11] has g's; a comparison says nothing of what is added then."""
    swapped: list[Row] = [*one_of("f", "g"), ("s_mov_b64", sgpr(20, 2), sgpr(10, 2)), *one_of("g", "f"),
                          ("s_sub_u32", sgpr(12), sgpr(20), sgpr(10))]
    goes, at = followed([*swapped, *address("f"), ("s_add_u32", sgpr(10), sgpr(10), sgpr(12)),
                         ("s_addc_u32", sgpr(11), sgpr(11), 0), CALL, END])
    assert goes.find_targets(at) == frozenset()
