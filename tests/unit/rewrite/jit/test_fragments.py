"""Machine code of hooks: what instrumentation costs, where arguments are, and that all of it is fit for inlining."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from luthier_py.base.errors import HookError, Unsupported
from luthier_py.intrinsics import (
    active_mask,
    all_,
    any_,
    as_bits,
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_exchange,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_sub,
    atomic_xor,
    ballot,
    clock,
    count_trailing_zeros,
    from_bits,
    is_first_lane,
    lane_id,
    mbcnt,
    popcount,
    read_first_lane,
    read_lane,
    wave_size,
)
from luthier_py.isa import EXEC, SCC, OpFlag, RegFile, RegSet, instruction_set, sgpr, target, vgpr
from luthier_py.rewrite.jit import fragment
from luthier_py.rewrite.jit.convention import Seat
from luthier_py.rewrite.jit.object import Code
from luthier_py.rewrite.jit.python.frontend import HookIr
from luthier_py.rewrite.tool import U32, Hook, Lane, f32, f64, hook, i32, ptr, u32, u64

TARGETS = [
    ("gfx906", 64), ("gfx908", 64), ("gfx90a", 64), ("gfx942", 64), ("gfx950", 64), ("gfx1030", 32), ("gfx1030", 64),
    ("gfx1100", 32), ("gfx1100", 64), ("gfx1201", 32), ("gfx1250", 32),
]
Assembly = Callable[..., list[str]]


@hook
def count_wave(count: u64, n: u32) -> u64:
    return count + n


@hook
def count_lanes(count: u64, n: u32) -> u64:
    return count + popcount(active_mask()) * n


@hook(lanes="one")
def flush(total: ptr[u64], count: u64) -> None:
    atomic_add(total, count)


@hook
def trace(buffer: ptr[u64], cursor: ptr[u32], address: Lane[u64]) -> None:
    mask = active_mask()
    base = u32(0)
    if is_first_lane():
        base = atomic_add(cursor, popcount(mask))
    buffer[read_first_lane(base) + mbcnt(mask)] = address


@hook(lanes="one")
def reserve(cursor: ptr[u32], buffer: ptr[u64], value: u64) -> u32:
    slot = atomic_add(cursor, 1)
    if slot < 100:
        buffer[slot] = value
    return slot


@hook
def divergent(p: ptr[u32], x: Lane[u32]) -> Lane[u32]:
    y = x
    while y > 3:
        if y == 77:
            break
        y //= 2
        p[y] = x
    return y if y > 1 else x


@hook
def wave_loop(count: u64, n: u32, p: ptr[u32]) -> u64:
    for i in range(n):
        if p[i] == 3:
            continue
        count += p[i]
    return count


@hook(lanes="all")
def everything(p: ptr[u32], q: ptr[i32], x: u32, y: f32) -> tuple[u64, u32, f32]:
    lane = lane_id()
    odd = ballot(lane % 2 == 1)
    p[lane] = as_bits(y) + wave_size()
    atomic_max(q, i32(lane))
    atomic_min(q, 3)
    atomic_sub(p, x)
    atomic_and(p, 1)
    atomic_or(p, 2)
    atomic_xor(p, 3)
    atomic_exchange(p, 4)
    old = read_first_lane(atomic_cas(p, 5, x))
    many = u32(any_(lane > 3)) + u32(all_(lane > 3)) + read_lane(lane, x) + count_trailing_zeros(odd)
    return odd + clock(), old + many, from_bits(x) * y


@hook
def doubles(x: Lane[f64], y: f64) -> tuple[Lane[f64], f64]:
    return x * y, y + 1


def stays() -> u64:
    n = u64(1)
    while u32(2) > 1:
        n = n * 3
    return n


HOOKS = [value for value in list(globals().values()) if isinstance(value, Hook)]


@pytest.mark.parametrize(("name", "wave_size"), TARGETS)
@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook.name)
def test_every_hook_is_a_fragment_on_every_target(hook: Hook, name: str, wave_size: int, compiled: Any) -> None:
    payload = compiled(hook, name, wave_size)
    flags = OpFlag.NONE
    for inst in payload.instrs:
        flags |= inst.op.flags
    assert payload.instrs and not flags & (OpFlag.END | OpFlag.CALL | OpFlag.INDIRECT | OpFlag.BARRIER)
    for slot in (*payload.params, *payload.results):
        assert slot.reg.dwords == 1 or slot.reg.index % 2 == 0 or not slot.uniform
    for slot in payload.results:
        assert slot.reg in payload.writes | RegSet.of(*(s.reg for s in payload.params))


@pytest.mark.parametrize(("name", "wave_size"), TARGETS)
def test_a_wave_counter_costs_two_scalar_instructions(name: str, wave_size: int, assembly: Assembly) -> None:
    add, carry = ("s_add_co_u32", "s_add_co_ci_u32") if name == "gfx1201" else ("s_add_u32", "s_addc_u32")
    scalar = [f"{add} s0, s0, 12", f"{carry} s1, s1, 0"]
    wide = ["s_add_nc_u64 s[0:1], s[0:1], 12"]
    assert assembly(count_wave, name, wave_size, None, 12) in (scalar, wide)


def test_a_lane_counter_costs_four_scalar_instructions(assembly: Assembly) -> None:
    lines = assembly(count_lanes, "gfx90a", 64, None, 12)
    assert lines[:2] == ["s_bcnt1_i32_b64 s2, exec", "s_mul_i32 s2, s2, 12"]
    assert [line.split()[0] for line in lines[2:]] == ["s_add_u32", "s_addc_u32"]
    lines = assembly(count_lanes, "gfx1100", 32, None, 12)
    assert [line for line in lines if "delay" not in line][0] == "s_bcnt1_i32_b32 s2, exec_lo"


def test_flush_is_one_bare_atomic(assembly: Assembly) -> None:
    assert assembly(flush) == [
        "v_mov_b32_e32 v0, s2", "v_mov_b32_e32 v1, s3", "v_mov_b32_e32 v2, 0",
        "global_atomic_add_x2 v2, v[0:1], s[0:1]",
    ]


@pytest.mark.parametrize(("name", "wave_size"), TARGETS)
def test_atomics_are_single_instructions(name: str, wave_size: int, compiled: Any) -> None:
    atomics = [inst for inst in compiled(everything, name, wave_size).instrs if inst.op.flags & OpFlag.ATOMIC]
    assert len(atomics) == 8
    assert sum(bool(inst.op.flags & OpFlag.ATOMIC_RETURN) for inst in atomics) == 1  # only cas is used


def test_plain_loads_are_vector_loads(assembly: Assembly) -> None:
    """The scalar cache does not see what the wave itself stored."""
    assert not [line for line in assembly(wave_loop) if line.startswith("s_load")]


def test_stores_are_not_waited_for(assembly: Assembly) -> None:
    for storing, waits in ((flush, 0), (trace, 1), (reserve, 1), (divergent, 0), (wave_loop, 1)):
        lines = assembly(storing)
        assert sum(line.startswith("s_waitcnt") for line in lines) == waits, storing.name
        assert not lines[-1].startswith("s_waitcnt")


def test_slots_say_where_arguments_are(compiled: Any) -> None:
    payload = compiled(wave_loop)
    assert [slot.reg for slot in payload.params] == [sgpr(0, 2), sgpr(4), sgpr(2, 2)]
    assert [(slot.reg, slot.uniform) for slot in payload.results] == [(sgpr(0, 2), True)]
    payload = compiled(divergent)
    assert [(slot.reg, slot.uniform) for slot in payload.params] == [(sgpr(0, 2), True), (vgpr(0), False)]
    assert [slot.reg for slot in payload.results] == [vgpr(0)]
    assert [slot.reg for slot in compiled(doubles).results] == [vgpr(0, 2), sgpr(0, 2)]
    assert [slot.reg for slot in compiled(flush).results] == []


def test_what_a_fragment_changes(compiled: Any) -> None:
    assert compiled(count_wave).writes == RegSet.of(sgpr(0, 2), sgpr(SCC))
    assert compiled(flush).writes == RegSet.of(vgpr(0, 3))
    assert sgpr(EXEC, 2) in compiled(divergent).writes
    assert sgpr(EXEC, 2) in compiled(count_lanes).reads


def test_scalars_made_by_vector_code_need_an_active_lane(compiled: Any) -> None:
    assert {hook.name: compiled(hook).needs_lane for hook in HOOKS} == {
        "count_wave": False, "count_lanes": False, "flush": False, "trace": True, "reserve": False, "divergent": True,
        "wave_loop": True, "everything": False, "doubles": True,
    }


def test_constants_are_compiled_in_once_each(compiled: Any, assembly: Assembly) -> None:
    assert assembly(count_wave, "gfx90a", 64, None, 1000)[0] == "s_add_u32 s0, s0, 0x3e8"
    assert len(compiled(count_wave, "gfx90a", 64, None, 7).params) == 1
    assert assembly(count_wave, "gfx90a", 64, 5, 7) == ["s_mov_b32 s0, 12", "s_mov_b32 s1, 0"]


def made(*lines: tuple[Any, ...]) -> bytes:
    isa = instruction_set(target("gfx90a"), 64)
    return b"".join(isa.make(*line).raw for line in lines)


@pytest.mark.parametrize(
    ("code", "what"),
    [
        (made(("s_endpgm",)), "ends the wave"),
        (made(("s_getpc_b64", sgpr(0, 2))), "constant data or a stack"),
        (made(("s_setpc_b64", sgpr(0, 2))), "calls code outside of itself"),
        (made(("s_barrier",)), "has a barrier"),
        (made(("s_branch", 5)), "branches out of itself"),
        (made(("s_mov_b64", sgpr(EXEC, 2), 1)), "which lanes are active"),
        (made(("scratch_load_dword", vgpr(0), vgpr(1), "off")), "needs a stack"),
    ],
)
def test_unfit_code_is_refused(code: bytes, what: str) -> None:
    isa = instruction_set(target("gfx90a"), 64)
    seats = (Seat(0, U32, RegFile.SGPR, 0),)
    with pytest.raises(Unsupported, match=f"test_fragments.py:.*count_wave .*{what}"):
        fragment.payload(count_wave, Code(code), HookIr("", frozenset(), seats, ()), isa)


def test_a_hook_that_never_ends_is_told_so(compiled: Any) -> None:
    with pytest.raises(HookError, match=r"test_fragments.py:\d+: hook stays never comes to its end"):
        compiled(hook(stays), "gfx90a", 64)
