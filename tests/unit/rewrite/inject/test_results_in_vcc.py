"""Results that go into a half of VCC, of which the other half stays, though the hook destroys all of it."""

from __future__ import annotations

import pytest
from emulated import LANES, Bench, code_object
from shown_kernels import END, POINTERS, WORDS, S, V, instrumented, stores, words

from luthier_py import Lane, hook, u32
from luthier_py.intrinsics import read_first_lane
from luthier_py.isa import VCC, RegSet


@hook
def steps(x: Lane[u32], y: u32) -> u32:
    n = u32(0)
    while x > u32(1):
        x = x // u32(2) if x % u32(2) == u32(0) else x * u32(3) + u32(1)
        n += u32(1)
    return y + read_first_lane(n)


@pytest.mark.parametrize("half", [0, 1])
def test_the_other_half_stays(half):
    low, high = S(VCC), S(VCC + 1)
    data = code_object({"k": [
        *POINTERS, ("s_mov_b32", low, 5), ("s_mov_b32", high, 77), ("v_mov_b32", V(1), 27), ("s_nop", 7),
        ("v_mov_b32", V(5), low), ("v_mov_b32", V(6), high), *stores(V(5), V(6)), END]})

    def visit(tool, m):
        place = next(instr for instr in m.functions()[0].instrs if instr.inst.op.base == "S_NOP")
        m.before(place, steps, V(1), S(VCC + half), into=S(VCC + half))

    made = instrumented(data, visit)[1]
    (payload,), isa = made.patched.claim.payloads, made.program.isa
    written, at = RegSet(), 0
    while at < len(payload.code):
        inst = isa.decode(payload.code, at)
        written, at = written | inst.writes, at + inst.size_bytes
    assert RegSet.of(S(VCC, 2)) <= written
    ran = Bench(bytes(range(64)), bytes(4 * WORDS * LANES)).run(made.data, "k.luthier")
    expected = [5, 77]
    expected[half] += 111
    assert [words(ran, 0)[0], words(ran, 1)[0]] == expected
