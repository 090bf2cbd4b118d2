"""Kernels in which nothing is free: what hooks need is put aside and comes back, in every lane, in every bit."""

from __future__ import annotations

import emulated
import pytest
from shown_kernels import S, V, instrumented
from squeezed import LANES, SCALARS, crowded, marker, on, shows  # noqa: F401  (a fixture)

from luthier_py import Lane, Variable, hook, ptr, u32, u64
from luthier_py.base.errors import OutOfRegisters
from luthier_py.intrinsics import atomic_add, lane_id
from luthier_py.isa import M0, RegSet
from luthier_py.isa.model.registers import SCALARS as SCALARS_MASK
from luthier_py.rewrite.inject import apply, policies
from luthier_py.rewrite.inject.policies import Private

MASKS = {"all lanes": -1, "one lane": 1, "some lanes": 0x0F0F00FF00F00F01, "no lane": 0}


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


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("vgprs", [64, 256])
def test_with_every_register_in_use_hooks_run_and_nothing_is_lost(on, vgprs, mask):  # noqa: F811
    data = crowded(vgprs, MASKS[mask])
    assert shows(on.run(data, "k"), vgprs)

    def visit(tool, m):
        m.before(marker(m), everywhere, tool.all)
        m.before(marker(m), once, tool.total)
        m.before(marker(m), active, tool.active, 3)
        m.after(marker(m), active, tool.active, 4)

    tool, made = instrumented(data, visit, all=Variable(u64, LANES, name="all"), total=Variable(u64, name="total"),
                              active=Variable(u64, LANES, name="active"))
    ran = on.run(made.data, "k.luthier")
    assert shows(ran, vgprs)
    assert ran[tool.all] == (1,) * LANES and ran[tool.total] == 1
    assert ran[tool.active] == tuple(7 * (MASKS[mask] >> lane & 1) for lane in range(LANES))


def test_results_reach_a_register_while_others_are_put_aside(on):  # noqa: F811
    def visit(tool, m):
        m.before(marker(m), doubled, V(5), into=V(5))

    ran = on.run(instrumented(crowded(64, -1), visit)[1].data, "k.luthier")
    assert shows(ran, 64, change=[lane + 35 for lane in range(LANES)])  # v5 was that, and is twice as much


def test_private_memory_is_behind_the_kernels_own(on, monkeypatch):  # noqa: F811
    """And is told to those who launch it."""
    own, at_no_cost = RegSet.by_file(SCALARS_MASK, (1 << 72) - 1), policies.at_no_cost
    monkeypatch.setattr(policies, "at_no_cost", lambda *args: at_no_cost(*args) & own)
    tool, made = instrumented(crowded(72, -1), lambda tool, m: m.before(marker(m), once, tool.total),
                              total=Variable(u64, name="total"))
    (function,), (kernel,) = made.patched.claim.functions, made.patched.kernels
    old = next(k for k in made.obj.kernels if k.name == "k").descriptor
    assert function.private.start == -(-old.private_segment_fixed_size // 4) * 4 and function.private
    assert kernel.descriptor.private_segment_fixed_size == function.private.stop
    assert made.patched.report[0].before.waves == made.patched.report[0].after.waves
    assert on.run(made.data, "k.luthier")[tool.total] == 1


def test_what_cannot_be_put_aside_is_refused_with_the_reason(on, monkeypatch):  # noqa: F811
    monkeypatch.setattr(policies, "accumulators", lambda *args: ())
    monkeypatch.setattr(apply, "private_memory", lambda program, component, frame_bytes: Private(0, "it has no room"))
    with pytest.raises(OutOfRegisters, match=r"256 are live.*it has no room.*`s_nop 7`"):
        instrumented(crowded(256, -1), lambda tool, m: m.before(marker(m), once, tool.total),
                     total=Variable(u64, name="total"))


@pytest.mark.parametrize("scalar", SCALARS[:3])
def test_a_scalar_that_a_load_will_write_keeps_no_address(on, monkeypatch, scalar):  # noqa: F811
    monkeypatch.setattr(policies, "accumulators", lambda *args: ())
    middle = [("s_load_dword", S(scalar), S(2, 2), 0), ("s_nop", 7), ("s_waitcnt", 0),
              ("s_mov_b32", S(scalar), 3 * scalar + 1)]
    tool, made = instrumented(crowded(256, -1, middle), lambda tool, m: m.before(marker(m), once, tool.total),
                              total=Variable(u64, name="total"))
    ran = on.run(made.data, "k.luthier")
    assert shows(ran, 256) and ran[tool.total] == 1


@hook(lanes="one")
def kept(slot: ptr[u64], x: u32) -> None:
    slot[0] = u64(x)


def test_m0_that_a_hook_gets_keeps_no_address(on, monkeypatch):  # noqa: F811
    """Where every scalar is in use and addresses in private memory need one."""
    monkeypatch.setattr(policies, "accumulators", lambda *args: ())

    def visit(tool, m):
        m.before(marker(m), kept, tool.slot, S(M0))

    data = crowded(256, -1)
    if not emulated.ISA.target.scratch_needs_base:
        assert shows(on.run(instrumented(data, visit, slot=Variable(u64, name="slot"))[1].data, "k.luthier"), 256)
        return
    with pytest.raises(OutOfRegisters, match="SGPRs"):
        instrumented(data, visit, slot=Variable(u64, name="slot"))
