"""Pointers into LDS and private memory as C++ has them: classes, in which address 0 is one as any other."""

from __future__ import annotations

import pytest
from emulated import LANES, Bench, code_object
from given import keep_narrow

from luthier_py.base.errors import HookError
from luthier_py.isa import sgpr, vgpr
from luthier_py.rewrite.clang.search import CLANG
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import Hooks, Mutator, Tool, Variable, u32

FILLED = [("v_lshlrev_b32", vgpr(4), 2, vgpr(0)), ("v_mul_u32_u24", vgpr(5), 3, vgpr(0)), ("s_mov_b32", sgpr(21), 0),
          ("ds_write_b32", vgpr(4), vgpr(5)), ("s_waitcnt", 0), ("s_nop", 0)]
AT_ZERO = r"""
#include <luthier/hooks.h>
using namespace luthier;
struct Both { lane<lds<u32>> next; lane<u32> here; };
LUTHIER_HOOK() Both at_zero(lane<lds<u32>> place, u32 never) {
    lds<u32> first = never ? lds<u32>(place) : lds<u32>(0);
    lds<u16> halves(first);
    for (++halves; halves < lds<u16>(u32(6)); halves += 1) {}
    return {lds<u32>(u32(first) + 8), first[1] + 100 * *halves + 10000 * u32(place - first) + 7 * (place == first)};
}
"""


def test_address_0_is_an_address_in_cpp(require_tool, monkeypatch) -> None:
    monkeypatch.setenv(CLANG, require_tool("clang++-22"))
    at_zero = Hooks.from_hip(AT_ZERO).at_zero

    class Zero(Tool):
        where, found = Variable(u32, LANES), Variable(u32, LANES)

        def instrument(self, m: Mutator) -> None:
            last = m.instrs(m.program.kernel("k").function)[-1]
            m.before(last, at_zero, vgpr(4), sgpr(21), into=(vgpr(4), vgpr(5)))
            m.before(last, keep_narrow, self.where, vgpr(4))
            m.before(last, keep_narrow, self.found, vgpr(5))

    data = code_object({"k": [*FILLED, ("s_endpgm", 0)]}, lds_bytes=4 * LANES + 64)
    ran = Bench(bytes(64), bytes(64), bytes(64)).run(instrument(data, Zero()).data, "k.luthier")
    assert set(ran[Zero.where]) == {8}
    assert ran[Zero.found] == tuple(3 + 100 * 0 + 10000 * lane + 7 * (lane == 0) for lane in range(LANES))


@pytest.mark.parametrize("condition", ["p", "!p", "p == nullptr"])
def test_no_pointer_into_lds_is_none_in_cpp(require_tool, monkeypatch, condition: str) -> None:
    monkeypatch.setenv(CLANG, require_tool("clang++-22"))
    with pytest.raises(HookError, match="deleted function|invalid operands"):
        _ = hooks_with(f"lds<u32> p) {{ if ({condition}) *out = 1; }}").h


def hooks_with(rest: str) -> Hooks:
    """A hook h, of a pointer ``out`` and more."""
    start = "#include <luthier/hooks.h>\nusing namespace luthier;\n"
    return Hooks.from_hip(f"{start}LUTHIER_HOOK() void h(u32 *out, {rest}\n")


@pytest.mark.parametrize(("parameter", "message"), [
    ("u32 __attribute__((address_space(3))) *p", "hooks read LDS and private memory by luthier::lds<T>"),
    ("lds<u32 *> p", "hooks read LDS and private memory"),
    ("lds<u32> *p", r"a pointer to near_pointer<unsigned int, 3> is not a device type"),
    ("const u32 __attribute__((address_space(2))) *p", r"other memory than global memory \(ptr addrspace\(2\)\)"),
])
def test_what_cpp_cannot_have(require_tool, monkeypatch, parameter: str, message: str) -> None:
    monkeypatch.setenv(CLANG, require_tool("clang++-22"))
    with pytest.raises(HookError, match=message):
        _ = hooks_with(f"{parameter}) {{}}").h
