"""Registers that are put aside, whole or in active lanes, in accumulators or in the tool's private memory."""

from __future__ import annotations

import pytest
from test_runs import BACK, INTO, A, S, V, run, runner_of

from luthier_py.base.errors import CheckFailed
from luthier_py.isa import SCC, VCC, instruction_set, sgpr, target, vgpr
from luthier_py.proof.code import CELLS, number
from luthier_py.proof.initial_state import RESOURCE
from luthier_py.proof.meanings import UNKNOWN
from luthier_py.proof.now import Now
from luthier_py.proof.pending import NOTHING

GFX942, GFX803 = instruction_set(target("gfx942")), instruction_set(target("gfx803"))
STORE, LOAD = "scratch_store_dword off, v3, off offset:16", "scratch_load_dword v3, off, off offset:16"
FAR_STORE, FAR_LOAD = "scratch_store_dword off, v3, s9 offset:4", "scratch_load_dword v3, off, s9 offset:4"
WAIT, NOT, ALL = "s_waitcnt 0", "s_not_b64 exec, exec", "s_mov_b64 exec, -1"
KEEP, BACK_EXEC = "s_mov_b64 s[4:5], exec", "s_mov_b64 exec, s[4:5]"
WRITE, READ, CLOBBER = "v_accvgpr_write_b32 a1, v3", "v_accvgpr_read_b32 v3, a1", "v_mov_b32_e32 v3, 0"


def lines(*listing: str) -> str:
    return "\n".join(listing)


GOOD = {
    "in memory": (lines(STORE, CLOBBER, LOAD, WAIT), V(3), 0),
    "in memory, by a scalar": (lines("s_movk_i32 s9, 20", FAR_STORE, CLOBBER, FAR_LOAD, WAIT), V(3), 0),
    "in all lanes": (lines(KEEP, ALL, STORE, CLOBBER, LOAD, WAIT, BACK_EXEC), V(3), V(3)),
    "first in some lanes, then in the others": (
        lines(STORE, NOT, STORE, NOT, INTO, "s_mov_b32 s5, 0", BACK, LOAD, WAIT, NOT, LOAD, WAIT, NOT),
        V(3) | S(5), V(3)),
    "in an accumulator, in some lanes and in the others": (
        lines(WRITE, NOT, WRITE, NOT, INTO, "s_mov_b32 s5, 0", BACK, READ, NOT, READ, NOT), V(3) | S(5), V(3)),
}
BAD = {
    "other lanes are lost": (lines(STORE, ALL, CLOBBER, LOAD, WAIT), V(3), V(3), "EXEC|overwritten"),
    "what is loaded was not stored in all lanes": (
        lines(STORE, KEEP, ALL, CLOBBER, LOAD, WAIT, BACK_EXEC), 0, V(3), "overwritten"),
    "nothing was stored": (lines(CLOBBER, LOAD, WAIT), V(3), 0, "v3 is live"),
    "something else was stored": (
        lines("scratch_store_dword off, v4, off offset:16", CLOBBER, LOAD, WAIT), V(3), 0, "v3 is live"),
    "it comes from elsewhere": (
        lines(STORE, CLOBBER, "scratch_load_dword v3, off, off offset:20", WAIT), V(3), 0, "v3 is live"),
    "nobody waits": (lines(STORE, CLOBBER, LOAD), V(3), 0, "may still write"),
    "it is used too early": (lines(STORE, CLOBBER, LOAD, CLOBBER, WAIT), V(3), 0, "may still write"),
    "a lane is not put back": (
        lines(STORE, NOT, STORE, NOT, INTO, "s_mov_b32 s5, 0", BACK, LOAD, WAIT), V(3) | S(5), V(3), "v3"),
    "lanes are put back before they are read": (
        lines(STORE, NOT, STORE, NOT, INTO, "s_mov_b32 s5, 0", LOAD, WAIT, NOT, LOAD, WAIT, NOT, BACK),
        V(3) | S(5), V(3), "s5"),
    "the flag is lost": (lines(STORE, NOT, STORE, NOT), S(SCC), 0, "scc"),
    "memory of the application": (
        "scratch_store_dword off, v3, off offset:12", 0, 0, "private memory that is not the tool's"),
    "behind the tool's memory": (
        "scratch_store_dword off, v3, off offset:32", 0, 0, "private memory that is not the tool's"),
    "across its end": (
        "scratch_store_dwordx2 off, v[2:3], off offset:28", 0, 0, "private memory that is not the tool's"),
    "not where a dword is": (
        "scratch_store_dword off, v3, off offset:18", 0, 0, "private memory that is not the tool's"),
    "at an address of a lane": (
        "scratch_store_dword v5, v3, off offset:16", 0, 0, "private memory that is not the tool's"),
    "at an address that is not known": (FAR_STORE, 0, 0, "private memory that is not the tool's"),
    "a lane of a register that was overwritten": (
        lines("v_mov_b32_e32 v3, 7", INTO, "s_mov_b32 s5, 0", NOT, BACK, NOT), S(5) | V(3), 0, "v3"),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_is_put_back_is_there(name):
    listing, active, inactive = GOOD[name]
    run(listing, active, inactive, isa=GFX942)


@pytest.mark.parametrize("name", BAD)
def test_what_is_not_is_found(name):
    listing, active, inactive, why = BAD[name]
    with pytest.raises(CheckFailed, match=why):
        run(listing, active, inactive, isa=GFX942)


def test_accumulators_of_the_application_are_kept_too():
    with pytest.raises(CheckFailed, match="a1 is live"):
        run(lines(WRITE, CLOBBER, READ), V(3) | A(1), isa=GFX942)
    with pytest.raises(CheckFailed, match="vcc"):
        run(lines(WRITE, "s_mov_b64 vcc, 0", READ), V(3) | 3 << VCC, isa=GFX942)


def test_nothing_is_known_of_memory_where_nothing_was_stored():
    """A hook's stack may lie there, after which it holds something else."""
    now = Now(NOTHING)
    runner_of(LOAD, GFX942).onward(0, now)
    assert now.get(CELLS) == now.other(CELLS) == UNKNOWN
    assert now.get(number(vgpr(3))) == UNKNOWN


def by_resource(first: int, before: str = "") -> None:
    """v3 is put aside in private memory that is reached by four scalars; s[8:11] keep the right ones."""
    where = f"off, s[{first}:{first + 3}], 0 offset:16"
    listing = lines(before, f"buffer_store_dword v3, {where}", CLOBBER, f"buffer_load_dword v3, {where}", WAIT)
    run(listing, V(3), isa=GFX803, locations={RESOURCE: sgpr(8, 4)})


def test_private_memory_in_buffers_is_reached_by_its_resource():
    by_resource(8)
    by_resource(12, lines(*(f"s_mov_b32 s{12 + k}, s{8 + k}" for k in range(4))))


@pytest.mark.parametrize("wrong", range(4))
def test_and_by_no_other_one(wrong):
    copies = (f"s_mov_b32 s{12 + k}, {0 if k == wrong else f's{8 + k}'}" for k in range(4))
    with pytest.raises(CheckFailed, match="private memory that is not the tool's"):
        by_resource(12, lines(*copies))
