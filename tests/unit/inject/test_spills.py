"""Kernels in which nothing is free: what hooks need is put aside and comes back, in every lane, in every bit."""

from __future__ import annotations

from functools import cache, reduce
from operator import xor

import emulated
import pytest
import shown_kernels
from emulated import LANES, Bench, code_object
from shown_kernels import END, POINTERS, WORDS, S, V, instrumented, stores, words

from luthier_py import Lane, Mutator, Variable, hook, ptr, u32, u64
from luthier_py.errors import OutOfRegisters
from luthier_py.inject import apply, policies
from luthier_py.inject.policies import Private
from luthier_py.intrinsics import atomic_add, lane_id
from luthier_py.isa import EXEC, RegSet, instruction_set, target
from luthier_py.isa.registers import SCALARS as SCALARS_MASK

SCALARS = [0, 1, *range(4, 102)]  # s[2:3] have the address of what is shown
MASKS = {"all lanes": -1, "one lane": 1, "some lanes": 0x0F0F00FF00F00F01, "no lane": 0}
FEW = SCALARS[:-1]  # gfx90a's instructions need one for an address in private memory


@hook(lanes="all")
def everywhere(rows: ptr[u64]) -> None:
    atomic_add(rows + lane_id(), u64(1))


@hook(lanes="one")
def once(total: ptr[u64]) -> None:
    atomic_add(total, u64(1))


@hook
def active(rows: ptr[u64], by: u32) -> None:
    atomic_add(rows + lane_id(), u64(by))


@hook
def doubled(x: Lane[u32]) -> Lane[u32]:
    n = x
    while n > u32(1000):
        n -= u32(7)
    return n + x


@pytest.fixture(params=["gfx90a", "gfx942", "gfx908"])
def on(request, monkeypatch):
    """Kernels for other targets than those of `emulated`."""
    name, isa = request.param, instruction_set(target(request.param))
    monkeypatch.setattr(emulated, "ISA", isa)
    monkeypatch.setattr(shown_kernels, "ISA", isa)
    monkeypatch.setattr(emulated, "base", cache(lambda: retargeted(name)))
    return Bench(bytes(range(64)), bytes(4 * WORDS * LANES))


def retargeted(name):
    """The same object, said to be for another target."""
    from luthier_py.loader import load
    from luthier_py.samples import sample

    data = bytearray(sample("vector_add").path.read_bytes())
    data[0x30] = target(name).elf_mach
    return load(bytes(data).replace(b"--gfx90a", f"--{name}".encode()))


def crowded(vgprs, mask, scalars=SCALARS):
    """All registers are written, with other numbers in lanes, and all are read behind a marker, SCC first."""
    first, *others = scalars
    vectors = range(1, vgprs)
    return code_object({"k": [
        *POINTERS, *(("s_mov_b32", S(i), 3 * i + 1) for i in scalars),
        *(("v_add_u32", V(i), 7 * i, V(0)) for i in vectors),
        ("s_cmp_eq_u32", S(2), S(2)), ("s_mov_b32", S(EXEC), mask & 0xFFFFFFFF),
        ("s_mov_b32", S(EXEC + 1), mask >> 32 & 0xFFFFFFFF), ("s_nop", 7), ("s_mov_b64", S(EXEC, 2), -1),
        ("s_cselect_b32", S(scalars[-1]), S(scalars[-1]), S(5)),
        *(("s_xor_b32", S(first), S(first), S(i)) for i in others),
        *(("v_add_u32", V(0), V(0), V(i)) for i in vectors),
        ("v_mov_b32", V(1), V(0)), ("v_mbcnt_lo_u32_b32", V(0), -1, 0), ("v_mbcnt_hi_u32_b32", V(0), -1, V(0)),
        *stores(V(1), S(first)), END]}, sgprs=102, vgprs=vgprs)


def marker(m: Mutator):
    return next(i for i in m.functions()[0].instrs if i.inst.op.base == "S_NOP")


def shows(ran, vgprs, scalars=SCALARS):
    lanes = [(lane * vgprs + 7 * vgprs * (vgprs - 1) // 2) & 0xFFFFFFFF for lane in range(LANES)]
    return list(words(ran, 0)) == lanes and set(words(ran, 1)) == {reduce(xor, (3 * i + 1 for i in scalars))}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("vgprs", [64, 256])
def test_with_every_register_in_use_hooks_run_and_nothing_is_lost(on, vgprs, mask):
    scalars = FEW if (emulated.ISA.target.name, vgprs) == ("gfx90a", 256) else SCALARS
    data = crowded(vgprs, MASKS[mask], scalars)
    assert shows(on.run(data, "k"), vgprs, scalars)

    def visit(tool, m):
        m.before(marker(m), everywhere, tool.all)
        m.before(marker(m), once, tool.total)
        m.before(marker(m), active, tool.active, 3)
        m.after(marker(m), active, tool.active, 4)

    tool, made = instrumented(data, visit, all=Variable(u64, LANES, name="all"), total=Variable(u64, name="total"),
                              active=Variable(u64, LANES, name="active"))
    ran = on.run(made.data, "k.luthier")
    assert shows(ran, vgprs, scalars)
    assert ran[tool.all] == (1,) * LANES and ran[tool.total] == 1
    assert ran[tool.active] == tuple(7 * (MASKS[mask] >> lane & 1) for lane in range(LANES))


def test_results_reach_a_register_while_others_are_put_aside(on):
    def visit(tool, m):
        m.before(marker(m), doubled, V(5), into=V(5))

    ran = on.run(instrumented(crowded(64, -1), visit)[1].data, "k.luthier")
    more = [lane + 35 for lane in range(LANES)]  # v5 was that, and is twice as much
    lanes = [lane * 64 + 7 * 64 * 63 // 2 + by for lane, by in zip(range(LANES), more, strict=True)]
    assert list(words(ran, 0)) == lanes


def test_private_memory_is_behind_the_kernels_own(on, monkeypatch):
    """And is told to those who launch it."""
    own, at_no_cost = RegSet.by_file(SCALARS_MASK, (1 << 72) - 1), policies.at_no_cost
    monkeypatch.setattr(policies, "at_no_cost", lambda *args: at_no_cost(*args) & own)
    tool, made = instrumented(crowded(72, -1, FEW), lambda tool, m: m.before(marker(m), once, tool.total),
                              total=Variable(u64, name="total"))
    (function,), (kernel,) = made.patched.claim.functions, made.patched.kernels
    old = next(k for k in made.obj.kernels if k.name == "k").descriptor
    assert function.private.start == -(-old.private_segment_fixed_size // 4) * 4 and function.private
    assert kernel.descriptor.private_segment_fixed_size == function.private.stop
    assert made.patched.report[0].before.waves == made.patched.report[0].after.waves
    assert on.run(made.data, "k.luthier")[tool.total] == 1


def test_what_cannot_be_put_aside_is_refused_with_the_reason(on, monkeypatch):
    monkeypatch.setattr(policies, "_accumulators", lambda *args: ())
    monkeypatch.setattr(apply, "private_memory", lambda program, component: Private(0, "its stack grows"))
    with pytest.raises(OutOfRegisters, match=r"256 are live.*its stack grows.*`s_nop 7`"):
        instrumented(crowded(256, -1), lambda tool, m: m.before(marker(m), once, tool.total),
                     total=Variable(u64, name="total"))
