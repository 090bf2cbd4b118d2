"""Kernels in which no register is left for what is kept for a wave: it lives in accumulators or in private memory."""

from __future__ import annotations

import emulated
import pytest
from shown_kernels import S, V, instrumented
from squeezed import crowded, lanes, marker, on, shows  # noqa: F401  (a fixture)

from luthier_py import Entry, Variable, WaveVariable, hook, ptr, u32, u64
from luthier_py.base.errors import CheckFailed
from luthier_py.binary.loader import load
from luthier_py.intrinsics import atomic_add
from luthier_py.isa import EXEC, LaneOf
from luthier_py.proof import prove
from luthier_py.proof.claim import InCell

MASKS = {"all lanes": -1, "one lane": 1, "some lanes": 0x0F0F00FF00F00F01, "no lane": 0}
PLACES = {  # of assigned locations, by target and VGPRs in use
    ("gfx90a", 256): InCell, ("gfx942", 256): InCell, ("gfx908", 256): LaneOf,
}


@hook
def add(count: u64, by: u32) -> u64:
    return count + u64(by)


@hook(lanes="one")
def bump(count: u64, other: u32) -> tuple[u64, u32]:
    return count + u64(other), other + u32(1)


@hook(lanes="all")
def unchanged(count: u64) -> u64:
    return count


@hook(lanes="one")
def flush(totals: ptr[u64], count: u64, other: u32, kernarg: ptr[u64], out: u64, group: u32) -> None:
    """``out``: the second of the kernel's arguments, which it has loaded itself."""
    atomic_add(totals, count)
    atomic_add(totals + 1, u64(other))
    atomic_add(totals + 2, u64(11) if kernarg[1] == out else u64(5))
    atomic_add(totals + 3, u64(group))


def counting(tool, m) -> None:
    place = marker(m)
    m.before(place, add, tool.count, 3, into=tool.count)
    m.before(place, bump, tool.count, tool.other, into=(tool.count, tool.other))
    m.before(place, unchanged, tool.count, into=tool.count)
    m.after(place, add, tool.count, 5, into=tool.count)
    m.after(place, bump, tool.count, tool.other, into=(tool.count, tool.other))
    for kernel in m.kernels:
        m.at_exit(kernel, flush, tool.totals, tool.count, tool.other, Entry.KERNARG_PTR, S(2, 2), Entry.WORKGROUP_ID_X)


def variables():
    return {"totals": Variable(u64, 4, name="totals"), "count": WaveVariable(u64), "other": WaveVariable(u32)}


@pytest.mark.parametrize("mask", MASKS)
def test_what_is_kept_for_a_wave_needs_no_register(on, mask):  # noqa: F811
    data = crowded(256, MASKS[mask])
    tool, made = instrumented(data, counting, **variables())
    (function,) = made.patched.claim.functions
    assert {type(location) for location in function.locations.values()} == {PLACES[emulated.ISA.target.name, 256]}
    ran = on.run(made.data, "k.luthier")
    assert shows(ran, 256)
    assert ran[tool.totals] == (3 + 0 + 5 + 1, 2, 11, 0)


def adding(tool, m) -> None:
    m.before(marker(m), add, tool.count, 3, into=tool.count)
    for kernel in m.kernels:
        m.at_exit(kernel, flush, tool.totals, tool.count, 7, Entry.KERNARG_PTR, S(2, 2), Entry.WORKGROUP_ID_X)


def test_calls_are_alike_only_where_the_same_lanes_rest(on):  # noqa: F811
    """v200 is nobody's at the first place; at the second one lanes that are off still need it. Scalars are free."""
    fill = ("v_add_u32", V(200), 7 * 200, V(0))
    scalars = [("s_mov_b32", S(i), 3 * i + 1) for i in range(80, 90)]
    middle = [("s_nop", 7), ("s_mov_b64", S(EXEC, 2), -1), fill, *lanes(0xFFFFFFFF), ("s_nop", 6), fill, *scalars]

    def visit(tool, m):
        for instr in m.functions()[0].instrs:
            if instr.inst.op.base == "S_NOP":
                m.before(instr, add, tool.count, 3, into=tool.count)
        for kernel in m.kernels:
            m.at_exit(kernel, flush, tool.totals, tool.count, 7, Entry.KERNARG_PTR, S(2, 2), Entry.WORKGROUP_ID_X)

    tool, made = instrumented(crowded(256, 0xFFFFFFFF, middle), visit,
                              totals=Variable(u64, 4, name="totals"), count=WaveVariable(u64))
    ran = on.run(made.data, "k.luthier")
    assert shows(ran, 256) and ran[tool.totals] == (6, 7, 11, 0)


def test_what_keeps_or_brings_it_is_not_left_out(on):  # noqa: F811
    """Each instruction that does: the proof refuses a copy without it, or it is not missed."""
    tool, made = instrumented(crowded(256, MASKS["some lanes"]), adding, **variables())
    isa, (source,), refused = made.program.isa, made.patched.maps, 0
    linked, own = load(made.data), set(source.instructions.values())
    symbol = linked.symbol(source.chunk)
    start = linked.elf.load_at(symbol.address).offset + symbol.address - linked.elf.load_at(symbol.address).address
    prove(made.obj.data, made.data, made.patched.claim)
    expected, at = on.run(made.data, "k.luthier")[tool.totals], 0
    while at < symbol.size:
        inst = isa.decode(made.data, start + at)
        if at not in own and inst.op.base.startswith(("SCRATCH_", "V_ACCVGPR", "V_WRITELANE")):
            damaged = bytearray(made.data)
            damaged[start + at : start + at + inst.size_bytes] = isa.make("s_nop", 0).raw * (inst.size_bytes // 4)
            try:
                prove(made.obj.data, bytes(damaged), made.patched.claim)
            except CheckFailed:
                refused += 1
            else:
                ran = on.run(bytes(damaged), "k.luthier")
                assert shows(ran, 256) and ran[tool.totals] == expected
        at += inst.size_bytes
    assert refused > 10
